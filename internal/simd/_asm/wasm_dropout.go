package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// wasmDraws are the next numbers of a random stream, two in each of two vectors.
type wasmDraws struct {
	state           [2]wasm.V
	step, threshold wasm.V
	mix             [2]wasm.V
}

func newWasmDraws(f *wasmProgram) *wasmDraws {
	key := f.SplatL(f.ParamScalar(f.index("key")))
	// two returns the vector with i and j steps of the stream.
	two := func(i, j uint64) wasm.V { return f.Wide(i*golden, j*golden) }
	both := func(x uint64) wasm.V { return f.Wide(x, x) }
	return &wasmDraws{
		state: [2]wasm.V{key.AddWide(two(0, 1)), key.AddWide(two(2, 3))},
		step:  two(4, 4), threshold: f.SplatX(f.x("threshold")),
		mix: [2]wasm.V{both(0xbf58476d1ce4e5b9), both(0x94d049bb133111eb)},
	}
}

// next draws numbers for a vector of floats, and returns ones in the lanes to keep.
func (d *wasmDraws) next() wasm.V {
	var z [2]wasm.V
	for i, state := range d.state {
		z[i] = d.mixed(state)
		state.Set(state.AddWide(d.step))
	}
	return z[0].Shuffle(z[1], 1, 3, 5, 7).AtLeastInts(d.threshold) // the upper halves
}

// mixed returns Mix64 of the lanes of z.
func (d *wasmDraws) mixed(z wasm.V) wasm.V {
	z = z.Xor(z.ShrWide(30)).MulWide(d.mix[0])
	z = z.Xor(z.ShrWide(27)).MulWide(d.mix[1])
	return z.Xor(z.ShrWide(31))
}
