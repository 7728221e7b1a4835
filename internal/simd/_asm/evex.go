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

// Go's assembler and avo lack some instructions. Avo allocates their registers like those of others, and the text is
// replaced by bytes when it is printed.
const (
	dotOpcode   = "VDPBF16PS"
	roundOpcode = "VCVTNE2PS2BF16"
)

// codes are the prefix and the opcode of instructions EVEX.512.0F38.W0.
//
// Source: Intel, "Architecture Instruction Set Extensions Programming Reference", 2019, chapter 2.
var codes = map[string][2]byte{dotOpcode: {2, 0x52}, roundOpcode: {3, 0x72}} // F3 and F2

// dotPairs adds to each float of sum the products of the pairs of bfloat16 in a and b: first that of the upper halves,
// then that of the lower ones, each fused. Numbers below 2^-126 in magnitude count as 0.
func dotPairs(a, b, sum operand.Op) { missing(dotOpcode, a, b, sum, a, b, sum) }

// roundVectors sets the lower half of dst to the bfloat16 nearest to the floats of low, and the upper half to those of
// high.
func roundVectors(low, high, dst operand.Op) { missing(roundOpcode, low, high, dst, low, high) }

// missing writes an instruction with three operands, which sets the last one and reads the inputs.
func missing(opcode string, a, b, dst operand.Op, inputs ...operand.Op) {
	build.Instruction(&ir.Instruction{
		Opcode: opcode, Operands: []operand.Op{a, b, dst}, Inputs: inputs, Outputs: []operand.Op{dst},
	})
}

var missingLine = regexp.MustCompile(`(?m)^\t(` + dotOpcode + `|` + roundOpcode + `)\s+Z(\d+), Z(\d+), Z(\d+)$`)

// encodeMissing replaces the instructions by their codes.
func encodeMissing(text string) string {
	text = shortLine.ReplaceAllStringFunc(text, encodeShort)
	return missingLine.ReplaceAllStringFunc(text, func(line string) string {
		parts := missingLine.FindStringSubmatch(line)
		z := registers(parts[2:])
		code := codes[parts[1]]
		rm, vvvv, r := z[0], z[1], z[2]
		bit := func(register byte, n int) byte { return ^register >> n & 1 }
		// 0x62; the inverted fourth and fifth bits of the registers in ModRM, with the map 0F38 (2); the
		// inverted lower bits of the second source between W0 and the prefix; 512 bits, with its inverted
		// fifth bit; opcode; ModRM for three registers. The fifth bit of rm is where an address has its
		// index.
		bytes := []byte{0x62, bit(r, 3)<<7 | bit(rm, 4)<<6 | bit(rm, 3)<<5 | bit(r, 4)<<4 | 2, ^vvvv&15<<3 | 4 | code[0],
			0x40 | bit(vvvv, 4)<<3, code[1], 0xc0 | r&7<<3 | rm&7}
		return fmt.Sprintf("\tLONG $0x%08x; WORD $0x%04x // %s Z%d, Z%d, Z%d", binary.LittleEndian.Uint32(bytes),
			binary.LittleEndian.Uint16(bytes[4:]), parts[1], rm, vvvv, r)
	})
}

// shortOpcode is VPDPBUSD with a VEX prefix, which processors without AVX-512 have. Go's assembler knows the instruction
// of AVX-512.
const shortOpcode = "VPDPBUSDVEX"

// dotShort adds to each integer of sum the four products of the unsigned bytes of a and the signed bytes of b.
func dotShort(b, a, sum operand.Op) { missing(shortOpcode, b, a, sum, b, a, sum) }

var shortLine = regexp.MustCompile(`(?m)^\t` + shortOpcode + `\s+Y(\d+), Y(\d+), Y(\d+)$`)

// encodeShort replaces the instruction by its code, VEX.256.66.0F38.W0 50.
func encodeShort(line string) string {
	y := registers(shortLine.FindStringSubmatch(line)[1:])
	rm, vvvv, r := y[0], y[1], y[2]
	// 0xc4; inverted high bits of the registers, with the map 0F38; W0, the inverted second source, 256
	// bits (4) and the prefix 66 (1); opcode; ModRM for three registers.
	return fmt.Sprintf("\tLONG $0x%08x; BYTE $0x%02x // %s Y%d, Y%d, Y%d", binary.LittleEndian.Uint32([]byte{
		0xc4, (^r>>3&1)<<7 | 1<<6 | (^rm>>3&1)<<5 | 2, ^vvvv&15<<3 | 4 | 1, 0x50,
	}), 0xc0|r&7<<3|rm&7, shortOpcode, rm, vvvv, r)
}

// registers returns the numbers of three registers.
func registers(text []string) (z [3]byte) {
	for i, n := range text {
		register, err := strconv.Atoi(n)
		if err != nil {
			panic(err)
		}
		z[i] = byte(register)
	}
	return z
}
