package main

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
)

// Go's assembler and avo lack VDPBF16PS. Avo allocates the registers of the instruction like those of others, and the
// text is replaced by bytes when it is printed.
const pairsOpcode = "VDPBF16PS"

// dotPairs adds to each float of sum the products of the pairs of bfloat16 in a and b: first that of the upper halves,
// then that of the lower ones, each fused. Numbers below 2^-126 in magnitude count as 0.
func dotPairs(a, b, sum operand.Op) {
	build.Instruction(&ir.Instruction{
		Opcode: pairsOpcode, Operands: []operand.Op{a, b, sum},
		Inputs: []operand.Op{a, b, sum}, Outputs: []operand.Op{sum},
	})
}

var pairsLine = regexp.MustCompile(`(?m)^\t` + pairsOpcode + `\s+Z(\d+), Z(\d+), Z(\d+)$`)

// encodePairs replaces the instruction dotPairs by its code.
//
// Source: Intel, "Architecture Instruction Set Extensions Programming Reference", 2019, VDPBF16PS: EVEX.512.F3.0F38.W0 52.
func encodePairs(text string) string {
	return pairsLine.ReplaceAllStringFunc(text, func(line string) string {
		var z [3]byte
		for i, n := range pairsLine.FindStringSubmatch(line)[1:] {
			register, err := strconv.Atoi(n)
			if err != nil {
				panic(err)
			}
			z[i] = byte(register)
		}
		rm, vvvv, r := z[0], z[1], z[2]
		bit := func(register byte, n int) byte { return ^register >> n & 1 }
		code := []byte{0x62, bit(r, 3)<<7 | bit(rm, 4)<<6 | bit(rm, 3)<<5 | bit(r, 4)<<4 | 2, ^vvvv&15<<3 | 6, 0x40 | bit(vvvv, 4)<<3, 0x52,
			0xc0 | r&7<<3 | rm&7}
		return fmt.Sprintf("\tLONG $0x%08x; WORD $0x%04x // %s Z%d, Z%d, Z%d", binary.LittleEndian.Uint32(code),
			binary.LittleEndian.Uint16(code[4:]), pairsOpcode, rm, vvvv, r)
	})
}
