//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package simd

// stateArgs is the argument of the kernels of linear attention, for the columns of one step of them. Strides are in
// bytes. The generator reads the offsets of the fields.
type stateArgs struct {
	state, sums        *float32
	reads, adds, terms *float32 // of the first group; reads of the one after it
	values, out        *float32
	valueRow, outRow   int
	u                  *float32
	rows, groups       int
}

// stateRows is the number of rows that a call of a kernel passes through: about ten microseconds.
const stateRows = 2048

func statePassAsm(b *StateBlock) {
	t := stateArgs{valueRow: 4 * b.ValueRow, outRow: 4 * b.OutRow, rows: b.Rows}
	most := max(1, stateRows/b.Rows)
	for g := 0; g < b.Groups; g += most {
		t.groups = min(most, b.Groups-g)
		t.reads, t.adds = &b.Reads[(g+1)*b.Rows*StateReads], &b.Adds[g*b.Rows*StateAdds]
		t.terms = &b.Terms[g*StateTerms]
		token := g * StateTokens
		for c := 0; c < StateColumns; c += stateWidth() {
			t.state, t.sums = &b.State[c], &b.Sums[c]
			t.values, t.out = &b.Values[token*b.ValueRow+c], &b.Out[token*b.OutRow+c]
			if b.Erases {
				stateErasePassKernel(&t)
			} else {
				statePassKernel(&t)
			}
		}
	}
}

func stateReadAsm(sums, state, x []float32, n, rows int) {
	t := stateArgs{reads: &x[0], rows: rows}
	for c := 0; c < StateColumns; c += stateWidth() {
		if t.state, t.sums = &state[c], &sums[c]; n == StateReads {
			stateRead8Kernel(&t)
		} else {
			stateRead2Kernel(&t)
		}
	}
}

func stateAddAsm(state, adds, u []float32, rows int) {
	t := stateArgs{adds: &adds[0], rows: rows}
	for c := 0; c < StateColumns; c += stateWidth() {
		t.state, t.u = &state[c], &u[c]
		stateAddKernel(&t)
	}
}
