//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package simd

// stateArgs is the argument of the kernels of linear attention, for the columns of one step of them. Distances are in
// bytes. The generator reads the offsets of the fields.
type stateArgs struct {
	state, sums, u, own        *float32 // u of a group, and of the token of stateStep
	keys, queries, adds, adds2 *float32 // keys and queries of the group after the first
	row, next                  int      // from a vector to the next, and from the end of a group's first to the next group
	decay                      *float32
	decayRow, decayNext        int // from a row to the next, and from the end of a group to the next; or decayRow from a token to the next
	terms, products            *float32
	values, values2, out, read *float32
	valueRow, value2Row        int
	outRow, readRow            int
	rows, groups               int
}

// stateRows is the number of rows that a call of a kernel passes through: about ten microseconds.
const stateRows = 2048

func newStateArgs(b *StateBlock) stateArgs {
	t := stateArgs{row: 4 * b.Queries.Row, rows: b.Rows, decayNext: 4}
	t.next = StateTokens*t.row - 4*t.rows
	if b.DecayEach {
		t.decayRow, t.decayNext = 4, 0
	}
	if b.Factors.Data != nil {
		t.decayRow = 4 * b.Factors.Row
	}
	t.valueRow, t.value2Row, t.outRow, t.readRow = 4*b.Values.Row, 4*b.Values2.Row, 4*b.Out.Row, 4*b.Read.Row
	return t
}

func statePassAsm(b *StateBlock) { b.passes(b.Erases, false) }

func statePassTwiceAsm(b *StateBlock) { b.passes(false, true) }

func (b *StateBlock) passes(erases, twice bool) {
	t := newStateArgs(b)
	most, columns := max(1, stateRows/b.Rows), b.Factors.Data != nil
	for g := 0; g < b.Groups; g += t.groups {
		next := g + 1
		t.groups = min(most, b.Groups-g)
		if g+t.groups == b.Groups && !b.More {
			// the last group has none after it to read, and reads its own keys instead
			if t.groups == 1 {
				next = g
			} else {
				t.groups--
			}
		}
		token := g * StateTokens
		t.queries, t.adds = b.Queries.at(next*StateTokens), b.Adds.at(token)
		if erases {
			t.keys = b.Keys.at(next * StateTokens)
		}
		if twice {
			t.adds2 = b.Adds2.at(token)
		}
		for c := 0; c < StateColumns; c += stateWidth() {
			t.state, t.sums = &b.State[c], &b.Sums[c]
			t.terms = &b.Terms[g].Value[0]
			if columns {
				t.decay = b.Factors.column(token, c)
			} else {
				t.decay = &b.Decay[g*b.decays()]
			}
			t.values, t.out = b.Values.column(token, c), b.Out.column(token, c)
			if erases {
				t.read = b.Read.column(token, c)
			}
			if twice {
				t.values2 = b.Values2.column(token, c)
			}
			switch {
			case erases && columns:
				stateEraseColumnsPassKernel(&t)
			case twice && columns:
				stateTwiceColumnsPassKernel(&t)
			case columns:
				stateColumnsPassKernel(&t)
			case erases:
				stateErasePassKernel(&t)
			case twice:
				stateTwicePassKernel(&t)
			default:
				statePassKernel(&t)
			}
		}
	}
}

// decays returns the number of decays of a group.
func (b *StateBlock) decays() int {
	if b.DecayEach {
		return b.Rows
	}
	return 1
}

func (x *StateVectors) column(t, c int) *float32 { return &x.Data[x.First+t*x.Row+c] }

func stateReadAsm(sums, state []float32, x StateVectors, rows int) {
	t := stateArgs{queries: x.at(0), row: 4 * x.Row, rows: rows}
	for c := 0; c < StateColumns; c += stateWidth() {
		t.state, t.sums = &state[c], &sums[c]
		stateReadKernel(&t)
	}
}

func stateStepAsm(b *StateBlock, u []float32, token int) {
	t := stateArgs{queries: b.Queries.at(0), rows: b.Rows}
	t.terms, t.products = &b.Terms[0].Value[token], &b.Terms[0].KeyKey[token][0]
	for c := 0; c < StateColumns; c += stateWidth() {
		t.state, t.u, t.own = &b.State[c], &u[c], &u[token*StateColumns+c]
		t.values, t.out = b.Values.column(0, c), b.Out.column(0, c)
		if b.Erases {
			t.keys, t.read = b.Keys.at(0), b.Read.column(0, c)
			stateEraseStepKernel(&t)
		} else {
			stateStepKernel(&t)
		}
	}
}

func stateAddAsm(b *StateBlock, u []float32) {
	t := newStateArgs(b)
	t.row = 4 * b.Adds.Row
	t.adds, t.decay, t.terms = b.Adds.at(0), &b.Decay[0], &b.Terms[0].Value[0]
	for c := 0; c < StateColumns; c += stateWidth() {
		t.state, t.u = &b.State[c], &u[c]
		stateAddKernel(&t)
	}
}

func stateProductsAsm(terms []StateTerms, queries bool, x, y StateVectors, n int) {
	t := stateArgs{queries: x.at(0), adds: y.at(0), row: 4 * x.Row, next: 4 * StateTokens * x.Row, rows: n, groups: len(terms)}
	t.terms = &terms[0].products(queries)[0][0]
	stateProductsKernel(&t)
}

func stateDecayedProductsAsm(d *StateDecays, terms []StateTerms, queries bool, n int) {
	t := stateArgs{row: 4 * d.X.Row, rows: n}
	for g := range terms {
		token := g * StateTokens
		t.queries, t.adds, t.decay, t.sums = d.X.at(token), d.Y.at(token), d.Factors.at(token), &d.Decay[g*n]
		t.out, t.read, t.terms = d.Reads.at(token), d.Adds.at(token), &terms[g].products(queries)[0][0]
		stateDecayedProductsKernel(&t)
	}
}
