//go:build !purego

package simd

import "golang.org/x/sys/cpu"

// hasQuads reports whether the processor multiplies fours of integers (the dot-product extension). Only tests change it.
var hasQuads = cpu.ARM64.HasASIMDDP

// usesQuads reports whether a kernel multiplies integers.
func usesQuads() bool { return active != generic && hasQuads }

// quadTile returns the tiles of the kernel for integers.
func quadTile() quadShape { return quadShape{tileRows, panelWidth(), false} }

// Reduced returns the names of the instructions by which products in bfloat16 and int8 are faster than in float32.
func Reduced() (names []string) {
	if hasQuads && active != generic {
		names = append(names, "DOTPROD")
	}
	return names
}

// gemmQuads calls the kernel for integers.
func gemmQuads(t *tileArgs) { gemmQuadsNEON(t) }
