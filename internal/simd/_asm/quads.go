package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Products of 8-bit integers, in groups of 64 steps. The layouts of rows of A and of panels of B are in package simd.
const (
	groupWords = 16                   // of four integers each
	groupOfA   = 4 * (2 + groupWords) // bytes
	groupOfB   = 64 * 4 * (1 + groupWords)
)

// gemmQuads writes the kernel: tiles of up to six rows and two vectors. The twelve sums of a group are integers; twelve
// more are the sums of the groups so far, as floats.
func gemmQuads(s avxProgram) {
	t := arguments{s, pointer("t"), tileArg}
	a, aRow, b, c, cRow := t.general("a"), t.general("aRow"), t.general("b"), t.general("c"), t.general("cRow")
	columns := s.amxColumns(t.general("last"))
	p := &avxProduct{avxProgram: s, aRow: aRow, aRow3: GP64(), aRow5: GP64()}
	LEAQ(Mem{Base: aRow, Index: aRow, Scale: 2}, p.aRow3)
	LEAQ(Mem{Base: aRow, Index: aRow, Scale: 4}, p.aRow5)
	t.eachHeight(s.tiling().rows, func(rows int) {
		var sums [6][2]reg.VecVirtual
		for r := range rows {
			sums[r] = [2]reg.VecVirtual{s.reg(), s.reg()}
		}
		s.ifElse(t.is("start", startBias), func() {
			bias := t.general("bias")
			for v := range 2 {
				s.readAt(Mem{Base: bias, Disp: 64 * v}, &columns[v], sums[0][v])
				for r := 1; r < rows; r++ {
					VMOVUPS(sums[0][v], sums[r][v])
				}
			}
		}, func() {
			for r := range rows {
				s.setZero(sums[r][0])
				s.setZero(sums[r][1])
			}
		})
		s.repeat(t.field("depth"), func() { p.group(a, b, sums[:rows]) })
		for r := range rows {
			for v := range 2 {
				s.writeAt(sums[r][v], &columns[v], Mem{Base: c, Disp: 64 * v})
			}
			ADDQ(cRow, c)
		}
		s.end()
	})
}

// group writes the code for a group of steps and moves a and b behind it.
func (p *avxProduct) group(a, b reg.GPVirtual, sums [][2]reg.VecVirtual) {
	at := func(r, disp int) Mem {
		m := p.rowOfA(a, nil, r)
		m.Disp = disp
		return m
	}
	var integers [6][2]reg.VecVirtual
	for r := range sums {
		integers[r] = [2]reg.VecVirtual{p.reg(), p.reg()}
		VPBROADCASTD(at(r, 4), integers[r][0])
		VMOVDQA64(integers[r][0], integers[r][1])
	}
	scales := [2]reg.VecVirtual{p.reg(), p.reg()}
	for k := range groupWords {
		row := [2]reg.VecVirtual{p.reg(), p.reg()}
		for v := range row {
			VMOVDQU32(Mem{Base: b, Disp: 256*(1+k) + 64*v}, row[v])
		}
		for r := range sums {
			x := p.reg()
			VPBROADCASTD(at(r, 8+4*k), x)
			for v := range row {
				VPDPBUSD(x, row[v], integers[r][v])
			}
		}
	}
	for v := range scales {
		VMOVUPS(Mem{Base: b, Disp: 64 * v}, scales[v])
	}
	for r := range sums {
		x := p.reg()
		VBROADCASTSS(at(r, 0), x)
		for v, i := range integers[r] {
			VCVTDQ2PS(i, i)
			VMULPS(scales[v], i, i)
			VFMADD231PS(x, i, sums[r][v])
		}
	}
	ADDQ(U8(groupOfA), a)
	ADDQ(I32(groupOfB), b)
}

// toQuads writes the loop that rounds groups of 64 floats to integers.
func toQuads(s avxProgram) {
	dst, x, groups := pointer("dst"), pointer("x"), pointer("n")
	notSign, least, inverse127, most := s.bitsReg(1<<31-1), s.numReg(0x1p-119), s.numReg(1./127), s.numReg(127)
	// spread combines the lanes, so that all have the result.
	spread := func(v reg.VecVirtual, op func(a, b, dst Op)) {
		for i := range 4 {
			other := s.reg()
			if i < 2 {
				VSHUFI32X4(U8([]uint8{0x4e, 0xb1}[i]), v, v, other)
			} else {
				VPSHUFD(U8([]uint8{0x4e, 0xb1}[i-2]), v, other)
			}
			op(other, v, v)
		}
	}
	s.repeat(groups, func() {
		v, magnitudes := s.vecs(4), s.vecs(4)
		for i := range v {
			VMOVUPS(Mem{Base: x, Disp: 64 * i}, v[i])
			VPANDD(notSign, v[i], magnitudes[i])
		}
		largest := magnitudes[0]
		for _, m := range magnitudes[1:] {
			VPMAXSD(m, largest, largest)
		}
		spread(largest, func(a, b, dst Op) { VPMAXSD(a, b, dst) })
		scale, inverse, nan, enough := s.reg(), s.reg(), s.reg(), K()
		VCMPPS(U8(0x0d), least, largest, enough) // at least, and no NaN
		VSUBPS(largest, largest, nan)            // 0, or NaN if a number is not finite
		VMULPS_Z(inverse127, largest, enough, scale)
		VADDPS(nan, scale, scale)
		VDIVPS_Z(largest, most, enough, inverse)
		VMOVD(scale.AsX(), Mem{Base: dst})
		for i := range v {
			VMULPS(inverse, v[i], v[i])
			VCVTPS2DQ(v[i], v[i])
			VPMOVSDB(v[i], Mem{Base: dst, Disp: 8 + 16*i})
		}
		sum := v[0]
		for _, i := range v[1:] {
			VPADDD(i, sum, sum)
		}
		spread(sum, func(a, b, dst Op) { VPADDD(a, b, dst) })
		VPSLLD(U8(7), sum, sum)
		zero := s.reg()
		s.setZero(zero)
		VPSUBD(sum, zero, sum)
		VMOVD(sum.AsX(), Mem{Base: dst, Disp: 4})
		ADDQ(U8(groupOfA), dst)
		ADDQ(I32(256), x)
	})
	s.end()
}
