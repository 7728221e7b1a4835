package simd

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every half is converted to its value, a NaN with its bits, at every position in a vector.
func TestFromFloat16(t *testing.T) {
	onEach(t, func(t *testing.T) {
		all := make([]uint16, 1<<16)
		for i := range all {
			all[i] = uint16(i)
		}
		for first := range 17 {
			x, dst := all[first:], make([]float32, len(all)-first+1)
			dst[len(x)] = guard
			FromFloat16(dst[:len(x)], x)
			for i, h := range x {
				want := uint32(h&0x8000) << 16
				switch exponent, mantissa := uint32(h>>10&31), uint32(h&1023); exponent {
				case 0:
					want |= math.Float32bits(float32(math.Ldexp(float64(mantissa), -24)))
				case 31:
					want |= 255<<23 | mantissa<<13
				default:
					want |= (exponent+112)<<23 | mantissa<<13
				}
				if got := math.Float32bits(dst[i]); got != want {
					t.Fatalf("%04x, %d of %d: %08x, want %08x", h, i, len(x), got, want)
				}
			}
			if dst[len(x)] != guard {
				t.Fatal("written beyond the end")
			}
		}
	})
}

// packedForms returns k×n matrices of weights in all formats without groups, and a function that reports whether the
// memory around them is unchanged.
func packedForms(k, n int) (forms []*Panels, intact func() bool) {
	const around = 32
	memories := make([][]byte, 0, BFloat16)
	for f := Float32; f <= BFloat16; f++ {
		forms = append(forms, NewPanels(k, n, f, false, func(size int) []byte {
			memory := bytes.Repeat([]byte{0x77}, size+2*around*f.Size())
			memories = append(memories, memory)
			return memory[around*f.Size():][:size]
		}))
	}
	return forms, func() bool {
		for i, memory := range memories {
			outside := around * (Float32 + Format(i)).Size()
			for j := range outside {
				if memory[j] != 0x77 || memory[len(memory)-1-j] != 0x77 {
					return false
				}
			}
		}
		return true
	}
}

// SetBFloat16 gives the same result as Set with the columns as floats. Floats and bfloat16 keep
// their bits exactly.
func TestPackedSetBFloat16(t *testing.T) {
	const nan = 0x7fc1
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, size := range [][2]int{{1, 1}, {2, 3}, {3, 16}, {5, 17}, {31, 64}, {67, 83}, {128, 48}, {129, 131}, {257, 64}, {521, 193}} {
			k, n := size[0], size[1]
			x := make([]uint16, k*n)
			for i := range x {
				x[i] = uint16(r.Uint32()) & 0xbfff // magnitudes of at most 2
				if r.IntN(5*k) == 0 {
					x[i] = nan
				}
			}
			floats := make([]float32, len(x))
			FromBFloat16(floats, x)
			got, intact := packedForms(k, n)
			want, _ := packedForms(k, n)
			// Whole panels at once, and parts of panels.
			cuts := []int{0, n / 2, n}
			if r.IntN(2) == 0 {
				cuts = []int{0, n}
			}
			for form := range got {
				for i, j := range cuts[1:] {
					first := cuts[i]
					got[form].SetBFloat16(first, j-first, x[first*k:])
					want[form].Set(first, j-first, RowMajor(floats[first*k:], k).T())
				}
				a, b := make([]float32, k), make([]float32, k)
				for j := range n {
					got[form].Column(a, j)
					want[form].Column(b, j)
					if !slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
						t.Fatalf("%d×%d, form %d: column %d is %v, want %v", k, n, form, j, a, b)
					}
					for i, v := range x[j*k:][:k] {
						if math.Float32bits(a[i]) != uint32(v)<<16 {
							t.Fatalf("%d×%d, form %d: element %d of column %d is %v, want %04x", k, n, form, i, j, a[i], v)
						}
					}
				}
				if !intact() {
					t.Fatalf("%d×%d, form %d: written beyond the ends", k, n, form)
				}
			}
		}
	})
}

func BenchmarkPackedSetBFloat16(b *testing.B) {
	benchEach(b, func(b *testing.B) {
		const k, n = 576, 64
		x := make([]uint16, k*n)
		for i := range x {
			x[i] = uint16(i)&0x7fff | 0x3c00
		}
		forms, _ := packedForms(k, n)
		for i, name := range []string{"float32", "bfloat16"} {
			b.Run(name, func(b *testing.B) {
				b.SetBytes(2 * k * n)
				for b.Loop() {
					forms[i].SetBFloat16(0, n, x)
				}
			})
		}
	})
}
