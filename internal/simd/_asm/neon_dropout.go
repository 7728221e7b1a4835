package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// neonDraws are the next numbers of a random stream, two in each of two vectors.
type neonDraws struct {
	f               *neonProgram
	state           [2]a64.V
	step, threshold a64.V
	mix             [2]neonFactor
}

func newNeonDraws(f *neonProgram) *neonDraws {
	step := uint64(f.lanes)
	d := &neonDraws{f: f, step: f.inRegister(wide4(step*golden, step*golden)), threshold: f.V()}
	for i := range d.state {
		first := uint64(2 * i)
		d.state[i] = f.inRegister(wide4(first*golden, (first+1)*golden))
	}
	f.Scope(func() {
		x, key := f.pointer("key").(a64.X), f.V()
		f.DUPX(key, x)
		for _, v := range d.state {
			f.ADDD(v, v, key)
		}
		f.Do("MOVWU", f.Param("threshold"), x)
		f.DUPW(d.threshold, x)
	})
	d.mix = [2]neonFactor{f.factor(0xbf58476d1ce4e5b9), f.factor(0x94d049bb133111eb)}
	return d
}

// next draws numbers for a vector of floats, and returns ones in the lanes to keep.
func (d *neonDraws) next() a64.V {
	f, kept := d.f, d.f.V()
	f.Scope(func() {
		var z [2]a64.V
		for i, state := range d.state {
			z[i] = d.mixed(state)
			f.ADDD(state, state, d.step)
		}
		f.UZP2(kept, z[0], z[1]) // the upper halves
		// NEON compares without signs, so nothing is flipped as on AVX2
		f.CMHS(kept, kept, d.threshold)
	})
	return kept
}

// mixed returns Mix64 of the lanes of x.
func (d *neonDraws) mixed(x a64.V) a64.V {
	f, z := d.f, d.f.copy(x).(a64.V)
	f.shiftXor(30, z)
	d.mix[0].times(z)
	f.shiftXor(27, z)
	d.mix[1].times(z)
	f.shiftXor(31, z)
	return z
}

// shiftXor sets z to z ^ z>>n.
func (f *neonProgram) shiftXor(n int, z a64.V) {
	f.Scope(func() {
		t := f.V()
		f.USHRD(t, z, n)
		f.EOR(z, z, t)
	})
}

// A neonFactor is a constant of 64 bits to multiply by.
type neonFactor struct {
	f       *neonProgram
	low     a64.V // the lower half of the factor, in the lower half of a vector
	swapped a64.V // the whole factor, with its halves swapped
}

func (f *neonProgram) factor(c uint64) neonFactor {
	return neonFactor{f, f.inRegister(bits4(uint32(c))), f.inRegister(wide4(c<<32|c>>32, c<<32|c>>32))}
}

// times multiplies x by the factor, modulo 2⁶⁴. It multiplies halves, because NEON cannot multiply
// 64-bit integers.
func (n neonFactor) times(x a64.V) {
	f := n.f
	f.Scope(func() {
		cross, low := f.V(), f.V()
		f.MUL(cross, x, n.swapped) // low·high and high·low
		f.XTN(low, x)
		// adds both cross products; only their lower 32 bits reach the result
		f.UADDLP(x, cross)
		f.SHLD(x, x, 32)
		f.UMLAL(x, low, n.low)
	})
}
