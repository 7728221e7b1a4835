//go:build !purego

package simd

import "golang.org/x/sys/cpu"

func hasAVX2() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 }

func hasAVX512() bool {
	x := &cpu.X86
	return hasAVX2() && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL
}

// hasAMX reports whether the processor multiplies tiles of bfloat16 and the system lets programs
// request tile units, which permitTiles does.
func hasAMX() bool {
	return hasAVX512() && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && offersTiles()
}

// dotRows and dotColumns are the numbers of rows and columns that dots processes.
const dotRows = 4

func dotColumns() int { return vectorLanes() }
