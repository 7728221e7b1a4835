package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// golden is the step of SplitMix64; see Mix64 in package simd.
const golden = 0x9e3779b97f4a7c15

func dropout(p program) {
	dst, x, keep := p.pointer("dst"), p.pointer("x"), p.broadcast("keep")
	draw := p.draws()
	p.along("n", dst, x).each(1, func(s step) {
		v := s.load(x)
		p.mulWhere(draw(), v, keep)
		s.store(v, dst)
	})
	p.end()
}

func dropoutAdd(p program) {
	dst, x, y, keep := p.pointer("dst"), p.pointer("x"), p.pointer("y"), p.broadcast("keep")
	draw := p.draws()
	p.along("n", dst, x, y).each(1, func(s step) {
		v, sum := s.load(x), s.load(y)
		p.mul(sum, sum, keep) // rounded before it is added, as in generic Go
		p.addWhere(draw(), sum, v)
		s.store(v, dst)
	})
	p.end()
}

// draws are the next numbers of a random stream. They take two vectors, because their lanes are
// twice as wide as the lanes of floats.
type draws struct {
	s         avxProgram
	state     [2]reg.VecVirtual
	step      Op
	threshold reg.VecVirtual
	mix       [2]factor
}

// start starts with draw 0 of a key.
func (d *draws) start(key reg.GPVirtual) {
	s := d.s
	// The draws in the lanes. For AVX2 the order compensates for a later shuffle, which works on
	// each half of a vector separately.
	lanes := [2][]uint64{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}
	if s.lanes == 8 {
		lanes = [2][]uint64{{0, 1, 4, 5}, {2, 3, 6, 7}}
	}
	all := s.reg()
	if s.lanes == 16 {
		VPBROADCASTQ(key, all)
	} else {
		x := XMM()
		VMOVQ(key, x)
		VPBROADCASTQ(x, all)
	}
	for i, v := range d.state {
		for j := range lanes[i] {
			lanes[i][j] *= golden
		}
		VPADDQ(wide(lanes[i]...), all, v)
	}
}

// unstarted returns draws that must be started before use.
func (s avxProgram) unstarted() *draws {
	d := &draws{s: s, state: [2]reg.VecVirtual{s.reg(), s.reg()}}
	step := uint64(s.lanes)
	d.step = s.inRegister(wide(step * golden))
	d.mix = [2]factor{s.factor(0xbf58476d1ce4e5b9), s.factor(0x94d049bb133111eb)}
	t := Load(Param("threshold"), GP32()).(reg.GPVirtual)
	if s.lanes == 16 {
		SHLQ(U8(32), t.As64())
		d.threshold = s.reg()
		VPBROADCASTQ(t.As64(), d.threshold)
	} else {
		XORL(I32(math.MinInt32), t)
		x := XMM()
		VMOVD(t, x)
		d.threshold = s.reg()
		VPBROADCASTD(x, d.threshold)
	}
	return d
}

// next draws numbers for a vector of floats, and returns the lanes to keep. For AVX2 these are the
// lanes that are not in the register, which suits its instructions.
func (d *draws) next() mask {
	var z [2]reg.VecVirtual
	for i, state := range d.state {
		z[i] = d.mixed(state)
		VPADDQ(d.step, state, state)
	}
	if d.s.lanes == 16 {
		// The threshold is in the upper half, above zeros.
		// Comparing all 64 bits gives the same result as comparing the upper half.
		low, high := K(), K()
		VPCMPUQ(U8(notLess), d.threshold, z[0], low)
		VPCMPUQ(U8(notLess), d.threshold, z[1], high)
		KUNPCKBW(low, high, low)
		return mask{k: low}
	}
	v := YMM()
	VSHUFPS(U8(0xdd), z[1], z[0], v) // the upper halves of all lanes
	VPXOR(constant(signBit), v, v)   // because there is no unsigned comparison
	VPCMPGTD(v, d.threshold, v)
	return mask{y: v, others: true}
}

// mixed returns Mix64 of the lanes of x.
func (d *draws) mixed(x reg.VecVirtual) reg.VecVirtual {
	s, z, t := d.s, d.s.reg(), d.s.reg()
	s.shiftXor(30, x, t, z)
	d.mix[0].times(z)
	s.shiftXor(27, z, t, z)
	d.mix[1].times(z)
	s.shiftXor(31, z, t, z)
	return z
}

// shiftXor sets dst to x ^ x>>n.
func (s avxProgram) shiftXor(n uint8, x, t, dst reg.VecVirtual) {
	VPSRLQ(U8(n), x, t)
	if s.lanes == 16 {
		VPXORQ(t, x, dst)
	} else {
		VPXOR(t, x, dst)
	}
}

// A factor is a constant of 64 bits to multiply by.
type factor struct {
	s         avxProgram
	low, high Op // the whole factor, and its upper half shifted down
}

func (s avxProgram) factor(c uint64) factor {
	f := factor{s: s, low: s.inRegister(wide(c))}
	if s.lanes == 8 {
		f.high = wide(c >> 32)
	}
	return f
}

// times multiplies x by the factor, modulo 2⁶⁴. AVX2 can only multiply halves.
// The product of the upper halves is a multiple of 2⁶⁴, so three of four products are enough.
func (f factor) times(x reg.VecVirtual) {
	if f.s.lanes == 16 {
		VPMULLQ(f.low, x, x)
		return
	}
	cross, upper := YMM(), YMM()
	VPMULUDQ(f.high, x, cross)
	VPSRLQ(U8(32), x, upper)
	VPMULUDQ(f.low, upper, upper)
	VPADDQ(upper, cross, cross)
	VPSLLQ(U8(32), cross, cross)
	VPMULUDQ(f.low, x, x)
	VPADDQ(cross, x, x)
}

// inRegister returns a constant as an operand: for AVX-512, in a register.
func (s avxProgram) inRegister(m Mem) Op {
	if s.lanes == 8 {
		return m
	}
	v := s.reg()
	VMOVUPS(m, v)
	return v
}

// wide returns eight lanes of 64 bits in memory, with the given numbers repeated.
func wide(x ...uint64) Mem {
	var all []Constant
	for i := range 8 {
		all = append(all, U64(x[i%len(x)]))
	}
	return inMemory(fmt.Sprintf("w%016x_%d", x[len(x)-1], len(x)), all...)
}
