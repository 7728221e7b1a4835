package main

// An implementation is one way to compute the functions of package simd. Package simd has a
// constant with its name.
type implementation struct {
	name   string          // as users write it
	suffix string          // of the names of its kernels
	goarch string          // where it runs; empty for plain Go
	needs  string          // required of the processor, for comments
	or     *implementation // fallback for kernels that it lacks

	// The widths of its kernels.
	lanes    int // floats in a vector
	panel    int // columns of a panel of a matrix
	additive int // keys of a panel of additive scores
	state    int // columns of a state at a time
}

var (
	generic = &implementation{name: "generic", suffix: "Generic", needs: "plain Go"}

	avx2 = &implementation{name: "avx2", suffix: "AVX2", goarch: "amd64", or: generic,
		needs: "AVX2, FMA and BMI2", lanes: 8, panel: 2 * 8, additive: 8, state: 8}

	avx512 = &implementation{name: "avx512", suffix: "AVX512", goarch: "amd64", or: avx2,
		needs: "AVX-512 with F, BW, DQ and VL", lanes: 16, panel: 4 * 16, additive: 2 * 16, state: 2 * 16}

	neon = &implementation{name: "neon", suffix: "NEON", goarch: "arm64", or: generic,
		needs: "any arm64 processor", lanes: 4, panel: 4 * 4, additive: 2 * 4, state: 2 * 4}

	wasmVectors = &implementation{name: "wasm", suffix: "WASM", goarch: "wasm", or: generic,
		needs: "vectors of WebAssembly", lanes: 4, panel: 2 * 4, additive: 2 * 4, state: 4}
)

// implementations lists all implementations, generic first. Within an architecture, better ones
// come later.
var implementations = []*implementation{generic, avx2, avx512, neon, wasmVectors}

// A tiling contains the sizes of the tiles whose sums are kept in registers. avxProduct, neonProduct
// and wasmProduct say why. The drivers in package simd use the same sizes.
type tiling struct {
	rows   int // of the largest tile of several vectors
	narrow int // of the largest tile of one vector
	// groups is the number of vectors of columns of B that gemvTransposed processes at a time. With
	// fewer, its sums would have to wait for one another.
	groups int
}

// tilings has the tiling of each architecture.
var tilings = map[string]tiling{
	"amd64": {rows: 6, narrow: 12, groups: 2},
	"arm64": {rows: 6, narrow: 12, groups: 4},
	"wasm":  {rows: 4, narrow: 6, groups: 2},
}

func (i *implementation) tiling() tiling { return tilings[i.goarch] }

// impl and by are methods of every program, which embeds its implementation.
func (i *implementation) impl() *implementation { return i }

func (i *implementation) by(amd64, neon, wasm int) int {
	return map[string]int{"amd64": amd64, "arm64": neon, "wasm": wasm}[i.goarch]
}

// A family is related kernels. The file with the name of the family writes their code to a file
// with the same name in package simd.
type family struct {
	name    string
	about   string
	kernels []kernel
	drivers []driver

	// choice is the function that calls one of the byHand kernels. It tests their conditions from
	// the last kernel to the first.
	choice string
}

// A kernel is a function of package simd that has assembly. There are three kinds, by how package
// simd calls it:
//
//   - With op it is an operation on slices. Generic Go of the same name also computes it; the
//     function that chooses and calls is generated.
//   - Without op a driver calls it, through a function whose name ends in Kernel, which is also
//     generated.
//   - With byHand a driver calls it by its full name, or the family has a choice.
type kernel struct {
	name string
	does string // the comment, starting with the verb, with a formula
	op   string // parameters and results in Go
	asm  string // parameters and results of the assembly, unless they follow from op
	code code

	// with gives the Go expressions of the parameters of the assembly that op does not have. For
	// slices of op, the assembly has pointers to their first element, and n is the length of the
	// first slice.
	with map[string]string

	pieces bool   // may be called for a few elements of all slices at a time
	sum    bool   // the result is the sum of the results of pieces; generic Go also gets one piece at a time
	then   string // a statement after such a piece of n elements
	whole  int    // if not 0, n must be a multiple of it; generic Go computes the rest
	unless string // the condition for generic Go to compute everything

	byHand bool
	when   string // the condition for the choice of the family to call it; the first has none
}

// code says how to write a kernel, for each implementation that has one. When it is called, the
// function of package simd is already started.
type code map[*implementation]func()

// avx is for kernels whose code is the same for AVX2 and AVX-512.
func avx(write func(avxProgram)) code {
	return code{
		avx512: func() { write(avxProgram{avx512}) },
		avx2:   func() { write(avxProgram{avx2}) },
	}
}

// only is for kernels of a single implementation for amd64.
func only(i *implementation, write func(avxProgram)) code {
	return code{i: func() { write(avxProgram{i}) }}
}

// A driver is an operation of package simd whose kernels need more preparation than can be
// generated: a handwritten function whose name ends in Asm. Generic Go of the same name also
// computes it; the function that chooses is generated.
type driver struct {
	name  string
	does  string
	op    string
	calls []string // kernels; the driver is for implementations that have all of them
}

// Signatures that several kernels have.
const (
	mapOp       = "(dst, x []float32)"
	zipOp       = "(dst, x, y []float32)"
	tileAsm     = "(t *tileArgs)"
	scoreAsm    = "(t *scoreArgs)"
	distanceAsm = "(t *distanceArgs)"
	stateAsm    = "(t *stateArgs)"
	distancesOp = "(c, q Mat, m int, k *Panels, j0, j1 int, w []float32)"
	rowsOp      = "(dst []float32, dstStride int, x []float32, stride, rows, cols int)"
	rowsAsm     = "(dst *float32, dstStride int, x *float32, n, rows, stride int)"
	tileOp      = "(c []float32, cRow int, q *AdditiveQueries, i0, i1 int, k *AdditiveKeys, j0, j1 int)"
	tileGrad    = "(a *AdditiveKeysGrad, ds []float32, dsRow int, q *AdditiveQueries, i0, i1, j0, j1 int)"
	mulPanels   = "(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool, chain int)"
)

var families = []family{
	{
		name:   "gemm",
		choice: "gemmKernel(t *tileArgs, kernel int)",
		about: `Tiles of matrix products. A kernel computes a column of tiles of C = A·B, one below the
other, each a few rows high and as wide as a panel of B, which is one or more vectors. The sums of a tile stay in
registers for all steps of k.`,
		kernels: []kernel{
			{name: "gemm1", asm: tileAsm, byHand: true, code: shared(gemm(1)),
				does: "sets C = A·B + start for panels of one vector. On AVX2 and NEON that vector must be full."},
			{name: "gemm1masked", asm: tileAsm, byHand: true, when: "kernel == 1 && t.last < lanes",
				code: shared(gemmMasked(1)).without(avx512),
				does: "sets C = A·B + start for panels of one vector, full or not."},
			{name: "gemm2", asm: tileAsm, byHand: true, when: "kernel == 2",
				code: shared(gemm(2)),
				does: "sets C = A·B + start for panels of two vectors. On AVX2 and NEON the second must be full."},
			{name: "gemm2masked", asm: tileAsm, byHand: true, when: "kernel == 2 && t.last < lanes",
				code: shared(gemmMasked(2)).without(avx512),
				does: "sets C = A·B + start for panels of two vectors, the second full or not."},
			{name: "gemm3", asm: tileAsm, byHand: true, when: "kernel == 3",
				code: shared(gemm(3)).without(avx2, wasmVectors),
				does: "sets C = A·B + start for panels of three vectors. On NEON the third must be full."},
			{name: "gemm4", asm: tileAsm, byHand: true, when: "kernel >= 4",
				code: shared(gemm(4)).without(avx2, wasmVectors),
				does: "sets C = A·B + start for panels of four vectors. On NEON the fourth must be full."},
			{name: "gemm3masked", asm: tileAsm, byHand: true, when: "kernel == 3 && t.last < lanes",
				code: shared(gemmMasked(3)).without(avx2, avx512, wasmVectors),
				does: "sets C = A·B + start for panels of three vectors, the third not full."},
			{name: "gemm4masked", asm: tileAsm, byHand: true, when: "kernel >= 4 && t.last < lanes",
				code: shared(gemmMasked(4)).without(avx2, avx512, wasmVectors),
				does: "sets C = A·B + start for panels of four vectors, the fourth not full."},
			{name: "gemmBFloat16", asm: tileAsm, byHand: true, when: "kernel == kernelBFloat16",
				code: shared(gemmStored(bfloat16)),
				does: "sets C = A·B + start for whole panels of bfloat16, each the upper half of a float."},
			{name: "gemmInt8", asm: tileAsm, byHand: true, when: "kernel == kernelInt8",
				code: shared(gemmStored(int8s)),
				does: "sets C = A·B + start for whole panels of 8-bit integers."},
			{name: "gemmFloat32", asm: tileAsm, byHand: true, when: "kernel == kernelFloat32",
				code: shared(gemmStored(float32s)).without(neon),
				does: "sets C = A·B + start for whole panels of floats that are read once, and from memory instead of a cache."},
			{name: "gemmPairs1", asm: tileAsm, byHand: true, when: "kernel == kernelPairs+1", code: gemmPairs(1, false),
				does: "is gemm1 for pairs of bfloat16, whose products are added to a float."},
			{name: "gemmPairs2", asm: tileAsm, byHand: true, when: "kernel == kernelPairs+2", code: gemmPairs(2, false),
				does: "is gemm2 for pairs of bfloat16."},
			{name: "gemmPairs3", asm: tileAsm, byHand: true, when: "kernel == kernelPairs+3", code: gemmPairs(3, false),
				does: "is gemm3 for pairs of bfloat16."},
			{name: "gemmPairs4", asm: tileAsm, byHand: true, when: "kernel == kernelPairs+4", code: gemmPairs(4, false),
				does: "is gemm4 for pairs of bfloat16."},
			{name: "gemmPairsStream", asm: tileAsm, byHand: true, when: "kernel == kernelPairsStream", code: gemmPairs(4, true),
				does: "is gemmFloat32 for pairs of bfloat16."},
			{name: "gemmQuads", asm: tileAsm, byHand: true, when: "kernel == kernelQuads", code: code{
				avx512: func() { gemmQuads(quadTile{6, 2, dotLong, true})(avxProgram{avx512}) },
				avx2:   func() { gemmQuads(quadTile{6, 1, nil, false})(avxProgram{avx2}) },
			}.neon((*neonProgram).gemmQuads), does: `adds A·B to C for groups of 8-bit integers, a tile of up to six rows and a whole panel. For each group, integers
are multiplied and added as integers; the sum is multiplied by the scales and added to a float.`},
			{name: "gemmQuadsDot", asm: tileAsm, byHand: true, when: "kernel == kernelQuadsDot", code: only(avx2, gemmQuads(quadTile{12, 1, dotShort, false})),
				does: "is gemmQuads for up to twelve rows, for processors with AVX-VNNI."},
		},
		drivers: []driver{
			{name: "readsDirectly", op: "(p *Product) bool", calls: []string{"gemm1"},
				does: "reports whether the kernels read B in place."},
			{name: "block", op: "(p *Product, a Mat, i0, i1, j0, j1, k0, k1 int, b *blockOfB)",
				calls: []string{"gemm1"},
				does: `computes rows i0 to i1 and columns j0 to j1 of C for the steps k0 to k1. a and b contain A and B for
these steps.`},
			{name: "storedPanel",
				op:    "(c, a Mat, m, n, depth int, b *Panels, at int, accumulate bool, chain int) bool",
				calls: []string{"gemm1"},
				does: `computes m rows and n columns of C from depth rows of a panel of b. The first row is at index at. The sums
are computed in chains of chain rows. It reports whether it could.`},
			{name: "multiplyPanel",
				op:    "(c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int, next stored)",
				calls: []string{"gemm1"},
				does: `computes m rows of C = A·B for a panel b, or of C += A·B if more. Sums start with the biases, unless
these are nil, and are computed in chains of chain steps. It prefetches the numbers at next, as many as b has.`},
			{name: "multiplyPanels", op: mulPanels, calls: []string{"gemm1"},
				does: "is MultiplyPanels, for m and j1-j0 that are not 0, in chains of chain steps."},
		},
	},
	{
		name:  "tile_units",
		about: "Products of words on tile units.",
		kernels: []kernel{
			{name: "addPairTiles", asm: "(t *tileUnitArgs)", byHand: true, code: only(avx512, addTiles(tileDotPairs)),
				does: "sets C += A·B for pairs of bfloat16."},
			{name: "quadTiles", asm: "(t *quadTileArgs)", byHand: true, code: only(avx512, quadTiles),
				does: "sets rows of a panel's columns of C to A·B for fours of integers."},
			{name: "sortQuads", asm: "(dst, floats, words *float32, n int)", byHand: true, code: only(avx512, sortQuads),
				does: `copies the n words of integers of a row to dst, with zeros behind them up to a whole group, and the other words
to floats.`},
		},
	},
	{
		name: "transpose",
		about: `Matrices whose columns are contiguous. They are transposed in registers, square by square. The
result is either written as rows or multiplied at once.`,
		kernels: []kernel{
			{name: "transpose", asm: "(dst *float32, dstRow int, src *float32, srcRow, rows, depth int)",
				code: avx(transpose).neon((*neonProgram).transpose).wasm((*wasmProgram).transpose),
				does: `sets dst[k·dstRow+i] = src[i·srcRow+k] for all lanes i of a vector and k < depth. src has only
rows values of i; the results for the others are undefined. The distances of rows are in bytes.`},
			{name: "transposeBFloat16", asm: "(dst *uint16, dstRow int, src *uint16, srcRow, rows, pairs int)",
				code: avx(transposePairs(false)),
				does: "is transpose for rows of bfloat16, with depth 2·pairs."},
			{name: "transposeWiden", asm: "(dst *float32, dstRow int, src *uint16, srcRow, rows, pairs int)",
				code: avx(transposePairs(true)), does: "is transposeBFloat16 but writes floats."},
			{name: "gemvTransposed", asm: tileAsm,
				code: avx(gemvTransposed).neon((*neonProgram).gemvTransposed).wasm((*wasmProgram).gemvTransposed),
				does: `adds to c[j] the sum of a[k]·b[j][k] for k < depth and j < last, where rows of b are bRow
bytes apart.`},
		},
		drivers: []driver{
			{name: "packPanel", op: "(dst []float32, m Mat, rows, cols, width int)",
				calls: []string{"gemm1", "transpose"},
				does:  "copies a matrix of rows×cols to rows that are width apart."},
			{name: "packBFloat16", op: "(dst, x []uint16, stride, depth, cols, width int)",
				calls: []string{"transposeBFloat16"},
				does:  "copies columns of bfloat16, stride elements apart and each of depth, to rows that are width apart."},
			{name: "packWiden", op: "(dst []float32, x []uint16, stride, depth, cols, width int)",
				calls: []string{"transposeWiden"}, does: "is packBFloat16 but writes floats."},
			{name: "blockOfA", op: "(p *Product, i0, i1, cols, k0, k1 int, s *scratch) Mat",
				calls: []string{"gemm1", "transpose"},
				does:  "returns rows i0 to i1 and steps k0 to k1 of A for a kernel to read, for use with cols columns."},
			{name: "singleRow", op: "(p *Product, j0, j1 int, s *scratch) bool", calls: []string{"gemvTransposed"},
				does: `computes columns j0 to j1 of a product whose A is one row and whose B has contiguous columns. For any
other product it returns false.`},
		},
	},
	{
		name:  "storage",
		about: "Stored numbers, as in a KV cache and in the weights of models.",
		kernels: []kernel{
			{name: "fromBFloat16", op: "(dst []float32, x []uint16)", pieces: true, whole: 16,
				code: shared(fromStored(bfloat16)),
				does: "sets dst[i] to the float whose upper half is x[i]."},
			{name: "fromFloat16", op: "(dst []float32, x []uint16)", pieces: true, whole: 16, code: avx(fromFloat16),
				does: "sets dst[i] to the value of the half x[i]."},
			{name: "fromInt8", op: "(dst []float32, x []int8)", pieces: true, whole: 16,
				code: shared(fromStored(int8s)),
				does: "sets dst[i] = x[i]."},
			{name: "toBFloat16", op: "(dst []uint16, x []float32)", pieces: true, whole: 16, code: avx(toBFloat16),
				does: "sets dst[i] to the bfloat16 nearest to x[i]."},
			{name: "toPairs", asm: "(dst *float32, dstRow int, x *float32, xRow, rows, n int)", byHand: true, code: only(avx512, toPairs),
				does: `rounds rows of n floats to pairs of bfloat16. The upper half of word i is nearest to x[2i], and the lower
half to x[2i+1], or 0 after the row. Strides are in bytes.`},
			{name: "pairRows", asm: "(dst *float32, dstRow int, x, y *float32, xRow, rows, n int)", byHand: true,
				code: only(avx512, pairRows),
				does: `rounds n floats of rows of x and of y to pairs of bfloat16. The upper half of word i is nearest to x[i], and
the lower half to y[i]. Strides are in bytes.`},
			{name: "toQuads", op: "(dst, x []float32, groups int)", asm: "(dst, x *float32, n int)",
				with: map[string]string{"n": "groups"}, unless: "groups == 0", code: avx(toQuads).neon((*neonProgram).toQuads),
				does: `rounds n groups of 128 floats to integers. A group becomes 34 words: its scale, -scale times its zero
point, and 32 times four integers.`},
			{name: "toInt8", op: "(dst []int8, x []float32, inverse float64)",
				asm: "(dst *int8, x *float32, inverse float64, n int)", pieces: true, whole: 16, code: avx(toInt8),
				does: "sets dst[i] to the integer from -127 to 127 nearest to x[i]·inverse."},
		},
	},
	{
		name:  "linear",
		about: "Loops that multiply and add element by element.",
		kernels: []kernel{
			{name: "axpy", op: "(a float32, x, y []float32)", pieces: true,
				code: shared(axpy),
				does: "sets y[i] += a·x[i]."},
			{name: "scale", op: "(dst []float32, a float32, x []float32)", pieces: true,
				code: shared(scale), does: "sets dst[i] = a·x[i]."},
			{name: "scaleShift", op: "(dst []float32, a float32, x []float32, b float32)",
				asm: "(dst *float32, a float32, x *float32, b float32, n int)", pieces: true,
				code: shared(scaleShift),
				does: "sets dst[i] = a·x[i] + b."},
			{name: "add", op: zipOp, pieces: true, code: shared(add),
				does: "sets dst[i] = x[i] + y[i]."},
			{name: "mul", op: zipOp, pieces: true, code: shared(mul),
				does: "sets dst[i] = x[i]·y[i]."},
			{name: "mulAdd", op: zipOp, pieces: true, code: shared(mulAdd),
				does: "sets dst[i] += x[i]·y[i]."},
		},
	},
	{
		name: "reduce",
		about: `Loops that reduce a slice to one number. They add in lanes: element i is added to lane i%64, and
the lanes are then added in pairs, the furthest apart first. They are called with 1 to piece elements.`,
		kernels: []kernel{
			{name: "sum", op: "(x []float32) float32", sum: true, code: shared(sum),
				does: "returns Σ x[i]."},
			{name: "dot", op: "(x, y []float32) float32", sum: true,
				code: shared(dot),
				does: "returns Σ x[i]·y[i]."},
			{name: "maximum", op: "(x []float32) float32",
				code: avx(maximum).neon((*neonProgram).maximum).wasm((*wasmProgram).maximum),
				does: "returns the largest x[i], and NaN if any is NaN."},
			{name: "finite", op: "(x []float32) bool", pieces: true,
				code: shared(finite),
				does: "reports whether x[i] - x[i] = 0 for all i, which is false for NaN and infinities."},
			{name: "magnitude", op: "(x []float32) float32", code: avx(magnitude).wasm((*wasmProgram).magnitude),
				does: "returns the largest |x[i]|, and NaN if any is NaN."},
		},
	},
	{
		name: "exp",
		about: `The exponential function and related functions. They factor out a power of two, by adding a large
number that rounds, and approximate the rest by a polynomial:

	n = round(x/ln2)    r = x - n·ln2    exp(x) = 2^n·exp(r)    |r| <= ln2/2`,
		kernels: []kernel{
			{name: "exp", op: mapOp, pieces: true, code: shared(exp),
				does: "sets dst[i] = exp(x[i])."},
			{name: "expSum", op: "(dst, x []float32, shift float32) float32", sum: true,
				code: shared(expSum),
				does: "sets dst[i] = exp(x[i]-shift) and returns Σ dst[i]. Element i is added to lane i%16."},
			{name: "sigmoid", op: mapOp, pieces: true, code: shared(sigmoid),
				does: "sets dst[i] = 1/(1+exp(-x[i]))."},
			{name: "tanh", op: mapOp, pieces: true, code: shared(tanh),
				does: "sets dst[i] = tanh(x[i]) = sign(x[i])·e/(e+2), where e = exp(2·|x[i]|)-1."},
		},
	},
	{
		name: "normal",
		about: `GELU, computed from the tail of the normal distribution: with u >= 0 and t = 1/(1+c·u),

	Φ(-u) = exp(-u²/2)·t·P(t)`,
		kernels: []kernel{
			{name: "gelu", op: mapOp, pieces: true, code: shared(gelu),
				does: "sets dst[i] = x[i]·Φ(x[i]) = max(x[i], 0) - u·Φ(-u), where u = |x[i]|."},
			{name: "geluGrad", op: mapOp, pieces: true, code: shared(geluGrad),
				does: "sets dst[i] = Φ(x[i]) + x[i]·exp(-x[i]²/2)/√(2π)."},
		},
	},
	{
		name:   "additive",
		choice: "additiveTileKernel(t *scoreArgs, vectors int)",
		about: `Additive scores of some queries with many keys, and their gradients. The exponentials of
queries and keys are computed once, so that a pair of them takes a sum and a quotient:

	tanh(q+k) = 1 - 2·G/(G+E)    E = exp(2q)·c, G = exp(-2k)·c`,
		kernels: []kernel{
			{name: "additiveExp", op: "(dst, x []float32, limit, factor float32) bool", pieces: true,
				code: shared(additiveExp),
				does: `sets dst[i] = exp(2·x[i])·factor, with x[i] clamped to ±limit and NaN replaced by limit, and reports
whether no element was changed.`},
			{name: "additiveKeys", asm: "(panel, w *float32, h, vectors int)",
				code: shared(additiveKeys),
				does: `replaces k by G in the first half of each row f of a panel of keys and sets the second half to w[f]·G,
for the first vectors of the panel.`},
			{name: "additiveTile1", asm: scoreAsm, byHand: true,
				code: shared(additiveTile(1)),
				does: `sets c[i][j] = sum + factor·Σ w·G[j][f]/(G[j][f]+E[i][f]) for up to additiveRows queries i and one
vector of keys j.`},
			{name: "additiveTile2", asm: scoreAsm, byHand: true, when: "vectors == 2",
				code: shared(additiveTile(2)).without(avx2),
				does: "is additiveTile1 for two vectors of keys."},
			{name: "additiveTileGrad", asm: "(t *gradArgs)",
				code: shared(additiveTileGrad),
				does: `adds the gradients of the scores, given ds, of up to additiveRows queries i and any number of keys j,
for a vector of features f. With T = 1 - 1/(1/2+E[i][f]·F[j][f]) = tanh(q+k),

	dq[i][f] += ds[i][j]·(1-T²)
	dk[j][f] += ds[i][j]·(1-T²)
	dw[i][f] += ds[i][j]·T`},
		},
		drivers: []driver{
			{name: "additiveKeys", op: "(panel, w []float32, n int)", calls: []string{"additiveTile1", "additiveKeys"},
				does: `replaces k by G in the first half of each row of a panel and sets the second half to w·G, for the
first n keys.`},
			{name: "additiveTile", op: tileOp, calls: []string{"additiveTile1", "additiveKeys"},
				does: "is AdditiveTile for queries that are all within the limit, and at least one feature."},
			{name: "additiveTileGrad", op: tileGrad, calls: []string{"additiveTileGrad"},
				does: "adds to a.dk and a.sums the gradients of up to additiveRows queries, all within the limit."},
		},
	},
	{
		name:   "distance",
		choice: "distanceKernel(t *distanceArgs, vectors int)",
		about: `Squares of the distances of some queries from many keys, and their gradients. Differences are
computed first, so that they are exact for vectors that are close together, however far from the origin.`,
		kernels: []kernel{
			{name: "distance1", asm: distanceAsm, byHand: true, code: shared(distance(1)),
				does: `sets c[i][j] = -Σ (w[f]·(b[f][j]-a[i][f]))² for up to additiveRows rows i and one vector of columns j.
If w is nil, all factors are 1.`},
			{name: "distance2", asm: distanceAsm, byHand: true, when: "vectors == 2",
				code: shared(distance(2)), does: "is distance1 for two vectors of columns."},
			{name: "distance3", asm: distanceAsm, byHand: true, when: "vectors == 3",
				code: shared(distance(3)).without(avx2, wasmVectors),
				does: "is distance1 for three vectors of columns."},
			{name: "distance4", asm: distanceAsm, byHand: true, when: "vectors == 4",
				code: shared(distance(4)).without(avx2, wasmVectors),
				does: "is distance1 for four vectors of columns."},
			{name: "distanceGrad", asm: "(t *gradArgs)",
				code: shared(distanceGrad),
				does: `adds the gradients of the squares, given ds, of up to additiveRows queries i and any number of
keys j, for a vector of features f. With d = k[j][f]-q[i][f],

	dq[i][f] += ds[i][j]·d
	dk[j][f] -= ds[i][j]·d
	dw[i][f] += ds[i][j]·d²   if dw is not nil`},
		},
		drivers: []driver{
			{name: "distances", op: distancesOp, calls: []string{"distance1"},
				does: "is Distances, for at least one row, column and feature."},
			{name: "distanceGrad", op: "(g *DistanceGrad, ds []float32, dsRow, i0, i1, j0, j1 int)",
				calls: []string{"distanceGrad"},
				does:  "adds to the sums of g the gradients of queries i0 to i1 and keys j0 to j1, all within the limit."},
		},
	},
	{
		name: "strip",
		about: `Strips of attention: the operations of the softmax on a few rows of scores, some bytes apart. They
are called for at least one row and one element.`,
		kernels: []kernel{
			{name: "rowMax", op: "(dst, x []float32, stride, n int)", asm: "(dst, x *float32, row, rows, n int)",
				with: map[string]string{"row": "4*stride", "rows": "len(dst)"},
				code: shared(rowMax),
				does: "sets dst[i] to the largest element of row i of x. It may ignore NaN."},
			{name: "powerRows", op: "(x []float32, stride, n int, c float32, shift, sum []float32)",
				asm:  "(x *float32, row, rows, n int, c float32, shift, sum *float32)",
				with: map[string]string{"row": "4*stride", "rows": "len(sum)"},
				code: shared(powerRows),
				does: `sets x[i][j] = 2^(c·(x[i][j] - shift[i])) and sum[i] to the sum of row i. Element j is added to
lane j%16.`},
			{name: "powerDropRows", op: "(x []float32, stride, n int, c float32, shift, sum []float32, d Drops)",
				asm: "(x *float32, row, rows, n int, c float32, shift, sum *float32, key, keyRow uint64, " +
					"threshold uint32, keep float32)",
				with: map[string]string{"row": "4*stride", "rows": "len(sum)", "key": "d.Key + uint64(d.First)*golden",
					"keyRow": "uint64(d.Step) * golden", "threshold": "d.Threshold", "keep": "d.Keep"},
				code: only(avx512, powerDropRows),
				does: `does the same as powerRows, and then sets x[i][j] = keep·x[i][j] where draw i·step + j of key is at
least threshold, and 0 elsewhere. keyRow is step·golden.`},
			{name: "weightRows", op: "(x []float32, stride, n int, c float32, shift, factor []float32)",
				asm:  "(x *float32, row, rows, n int, c float32, shift, factor *float32)",
				with: map[string]string{"row": "4*stride", "rows": "len(factor)"},
				code: shared(weightRows),
				does: "sets x[i][j] = 2^(c·(x[i][j] - shift[i]))·factor[i]."},
			{name: "gradRows", op: "(dw, w []float32, stride, n int, mean []float32, factor float32)",
				asm:  "(dw, w *float32, row, rows, n int, mean *float32, factor float32)",
				with: map[string]string{"row": "4*stride", "rows": "len(mean)"},
				code: shared(gradRows),
				does: "sets dw[i][j] = w[i][j]·(dw[i][j] - mean[i])·factor, and 0 where w[i][j] is 0."},
			{name: "scaleRows", op: "(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32)",
				asm:  "(dst *float32, dstRow int, src *float32, srcRow, rows, n int, factor *float32)",
				with: map[string]string{"dstRow": "4*dstStride", "srcRow": "4*srcStride", "rows": "len(factor)"},
				code: shared(scaleRows),
				does: "sets dst[i][j] = factor[i]·src[i][j]."},
			{name: "streamRows",
				op:   "(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32)",
				asm:  "(dst *float32, dstRow int, src *float32, srcRow, rows, n int, factor *float32)",
				with: map[string]string{"dstRow": "4*dstStride", "srcRow": "4*srcStride", "rows": "len(factor)"},
				code: shared(scaleRows).replaced(avx(streamRows)),
				does: `sets dst[i][j] = factor[i]·src[i][j]. Rows of dst start at a multiple of 64 bytes; AVX2 and AVX-512
bypass the caches.`},
			{name: "hide", op: "(x []float32, seen []bool)", pieces: true, whole: 16,
				code: avx(hide).neon((*neonProgram).hide).wasm((*wasmProgram).hide),
				does: "sets x[i] = -Inf where seen[i] is false."},
			{name: "packBits", op: "(dst []uint64, seen []bool)", code: avx(packBits),
				does: "sets bit k of dst[i] to seen[64·i+k], for n words of dst."},
		},
	},
	{
		name:  "weights",
		about: `Statistics of a row of attention weights. They are called with 1 to piece elements.`,
		kernels: []kernel{
			{name: "above", op: "(x []float32, least float32, first int32, dst []int32) int",
				asm: "(x *float32, n int, least float32, first int32, dst *int32) int", code: avx(above),
				does: `writes first+i for each x[i] > least to dst, in order, and returns their number. It may write up to
one vector beyond them.`},
			{name: "ranks", op: "(dst []int32, x []float32)", code: avx(ranks),
				does: `sets dst[i] to the number of x[j] > x[i] plus the number of x[j] = x[i] with j < i. It is for few
elements.`},
			{name: "entropy", op: "(x []float32) float32", sum: true, code: avx(entropy),
				does: `returns -Σ x[i]·ln x[i], where 0·ln 0 is 0, with
x = 2^e·(1+f) between √½ and √2 times a power of two:

	ln x = e·ln2 + f - f²/2 + f³·P(f)`},
		},
	},
	{
		name:  "layers",
		about: "Activations and the softmax.",
		kernels: []kernel{
			{name: "relu", op: mapOp, pieces: true, code: shared(relu),
				does: "sets dst[i] = max(x[i], 0)."},
			{name: "reluGrad", op: "(dx, dy, x []float32)", pieces: true,
				code: shared(reluGrad),
				does: "sets dx[i] += dy[i] where x[i] > 0."},
			{name: "softmaxMean", op: "(dy, y []float32) float32", sum: true,
				code: shared(softmaxMean),
				does: "returns Σ y[i]·dy[i] over all i where y[i] is not 0."},
			{name: "softmaxGrad", op: "(dx, dy, y []float32, mean float32)", pieces: true,
				code: shared(softmaxGrad),
				does: "sets dx[i] += y[i]·(dy[i] - mean) where y[i] is not 0."},
		},
	},
	{
		name:  "norm",
		about: "Layer normalisation, of a vector and of short rows one after the other, with u[i] = (x[i]-mean)·inv.",
		kernels: []kernel{
			{name: "sumSquaresAbout", op: "(x []float32, mean float32) float32", sum: true,
				code: shared(sumSquaresAbout),
				does: "returns Σ (x[i]-mean)²."},
			{name: "norm", op: "(dst, x, gain, shift []float32, mean, inv float32)", pieces: true,
				code: shared(norm), does: "sets dst[i] = gain[i]·u[i] + shift[i]."},
			{name: "normSums", op: "(dy, x, gain []float32, mean, inv float32) (flat, along float32)",
				code: shared(normSums),
				does: "returns Σ gain[i]·dy[i] and Σ gain[i]·dy[i]·u[i]. It is called with 1 to piece elements."},
			{name: "normGrad", op: "(dx, dy, x, gain []float32, mean, inv, flat, along float32)", pieces: true,
				code: shared(normGrad),
				does: "sets dx[i] += inv·(gain[i]·dy[i] - flat - along·u[i])."},
			{name: "layerNorm", op: "(dst, x, gain, shift, mean, inv []float32, eps float32)",
				asm:    "(dst, x, gain, shift, mean, inv *float32, d, rows int, size, eps float32)",
				with:   map[string]string{"d": "len(gain)", "rows": "len(mean)", "size": "float32(len(gain))"},
				unless: "len(gain) > piece", code: shared(layerNorm),
				does: `normalises rows: each is norm of the row of x, with the mean and inv = 1/√(Σ (x[i]-mean)²/d + eps) of
that row, which it also returns. Rows that are too long for it are left to the kernels for vectors.`},
			{name: "layerNormGrad", op: "(dx, dy, x, gain, mean, inv []float32)",
				asm:    "(dx, dy, x, gain, mean, inv *float32, d, rows int, size float32)",
				with:   map[string]string{"d": "len(gain)", "rows": "len(mean)", "size": "float32(len(gain))"},
				unless: "len(gain) > piece",
				code:   shared(layerNormGrad),
				does: `sets dx += inv·(gain·dy - flat - along·u) for each row, where flat and along are the means of gain·dy and
of gain·dy·u. A row whose dy is all 0 adds nothing.`},
		},
	},
	{
		name:  "state",
		about: `Linear attention: tokens that pass through some columns of a state, four at a time. See StateBlock.`,
		kernels: []kernel{
			{name: "statePass", asm: stateAsm, code: shared(statePass(statePlain, false)),
				does: "is StateBlock.Pass for tokens whose keys read nothing, and at least one group and row."},
			{name: "stateErasePass", asm: stateAsm, code: shared(statePass(stateErase, false)),
				does: "is StateBlock.Pass for tokens that erase, and at least one group and row."},
			{name: "stateTwicePass", asm: stateAsm, code: shared(statePass(stateTwice, false)),
				does: "is StateBlock.PassTwice for at least one group and row."},
			{name: "stateColumnsPass", asm: stateAsm, code: shared(statePass(statePlain, true)),
				does: "is statePassKernel for columns with their own decays."},
			{name: "stateEraseColumnsPass", asm: stateAsm, code: shared(statePass(stateErase, true)),
				does: "is stateErasePassKernel for columns with their own decays."},
			{name: "stateTwiceColumnsPass", asm: stateAsm, code: shared(statePass(stateTwice, true)),
				does: "is stateTwicePassKernel for columns with their own decays."},
			{name: "stateRead", asm: stateAsm, code: shared(stateRead),
				does: "sets sums[n] = Σ_i queries[n][i]·state[i] for at least one row i."},
			{name: "stateStep", asm: stateAsm, code: shared(stateStep(false)),
				does: "is StateBlock.Step for a token whose key reads nothing, and at least one row."},
			{name: "stateEraseStep", asm: stateAsm, code: shared(stateStep(true)),
				does: "is StateBlock.Step for a token that erases, and at least one row."},
			{name: "stateAdd", asm: stateAsm, code: shared(stateAdd),
				does: "sets state[i] = decay[i]·state[i] + Σ_t adds[t][i]·Left[t]·u[t] for at least one row i."},
			{name: "stateProducts", asm: stateAsm, code: shared(stateProducts),
				does: "sets terms[t][j] = queries[t]·adds[j], j <= t, for the vectors of each of some groups, at least one."},
			{name: "stateDecayedProducts", asm: stateAsm, code: shared(stateDecayedProducts),
				does: "is StateDecays.Products for a group, and vectors of at least one element."},
		},
		drivers: []driver{
			{name: "statePass", op: "(b *StateBlock)", calls: []string{"statePass", "stateErasePass", "stateColumnsPass", "stateEraseColumnsPass"},
				does: "is StateBlock.Pass for at least one group and row."},
			{name: "statePassTwice", op: "(b *StateBlock)", calls: []string{"stateTwicePass", "stateTwiceColumnsPass"},
				does: "is StateBlock.PassTwice for at least one group and row."},
			{name: "stateRead", op: "(sums, state []float32, x StateVectors, rows int)", calls: []string{"stateRead"},
				does: "adds Σ_i x[n][i]·state[i] to sums[n], which are 0, for four vectors of at least one row i."},
			{name: "stateStep", op: "(b *StateBlock, u []float32, token int)", calls: []string{"stateStep", "stateEraseStep"},
				does: "is StateBlock.Step for at least one row."},
			{name: "stateAdd", op: "(b *StateBlock, u []float32)", calls: []string{"stateAdd"},
				does: "is StateBlock.Add for at least one row."},
			{name: "stateProducts", op: "(terms []StateTerms, queries bool, x, y StateVectors, n int)",
				calls: []string{"stateProducts"},
				does:  "is StateProducts for at least one group, and vectors of at least one element."},
			{name: "stateDecayedProducts", op: "(d *StateDecays, terms []StateTerms, queries bool, n int)",
				calls: []string{"stateDecayedProducts"},
				does:  "is StateDecays.Products for vectors of at least one element."},
		},
	},
	{
		name: "rows",
		about: `Loops that run down the columns of a matrix, whose rows are stride floats apart, and keep the sums
of several vectors in registers. They are called for at least one row.`,
		kernels: []kernel{
			{name: "sumRows", op: "(dst, x []float32, rows, stride int)",
				code: shared(sumRows),
				does: "sets dst[j] += x[r·stride+j] for all rows r, in their order."},
			{name: "copyRows", op: rowsOp, asm: rowsAsm, with: map[string]string{"n": "cols"},
				code: shared(copyRows),
				does: "sets dst[r·dstStride+j] = x[r·stride+j]."},
			{name: "addRows", op: rowsOp, asm: rowsAsm, with: map[string]string{"n": "cols"},
				code: shared(addRows),
				does: "sets dst[r·dstStride+j] += x[r·stride+j]."},
			{name: "normGains", op: "(dgain, dshift, dy, x, mean, inv []float32, stride int)",
				asm:  "(dgain, dshift, dy, x *float32, n int, mean, inv *float32, rows, stride int)",
				with: map[string]string{"rows": "len(mean)"},
				code: shared(normGains),
				does: `adds the gradients of gain and shift, one row after the other:

	dgain[j]  += dy[r·stride+j]·(x[r·stride+j]-mean[r])·inv[r]   where dy is not 0
	dshift[j] += dy[r·stride+j]`},
		},
	},
	{
		name: "dropout",
		about: `Dropout. Draw i of the stream key is the upper half of Mix64(key + i·golden), the output function of
SplitMix64.`,
		kernels: []kernel{
			{name: "dropout", op: "(dst, x []float32, key uint64, threshold uint32, keep float32)", pieces: true,
				then: "key += uint64(n) * golden", code: shared(dropout),
				does: "sets dst[i] = keep·x[i] where draw i of key is at least threshold, and 0 elsewhere."},
			{name: "dropoutAdd", op: "(dst, x, y []float32, key uint64, threshold uint32, keep float32)", pieces: true,
				then: "key += uint64(n) * golden",
				code: shared(dropoutAdd),
				does: "sets dst[i] = x[i] + keep·y[i] where draw i of key is at least threshold, and x[i] elsewhere."},
		},
	},
	{
		name:  "adam",
		about: "The step of the optimiser AdamW.",
		kernels: []kernel{
			{name: "adamW", op: "(p, grad, m, v []float32, s *adamScalars)", pieces: true,
				code: shared(adamW),
				does: `updates parameters p and averages m and v with gradients grad:

	m[i] = β1·m[i] + (1-β1)·grad[i]
	v[i] = β2·v[i] + (1-β2)·grad[i]²
	p[i] = keep·p[i] - rate·m[i]/(rootScale·√v[i] + epsilon)`},
		},
	},
	{
		name:  "peak",
		about: "The peak speed, to compare the speed of other kernels with.",
		kernels: []kernel{
			{name: "fmaLoop", asm: "(n int)", code: avx(fmaLoop).neon((*neonProgram).fmaLoop).wasm((*wasmProgram).fmaLoop),
				does: "runs n rounds of 24 independent multiply-adds of vectors."},
		},
		drivers: []driver{
			{name: "fmaLoop", op: "(n int) float64", calls: []string{"fmaLoop"},
				does: `runs n rounds of multiply-adds, n at least 1, and returns the number of floating-point operations in
a round.`},
		},
	},
}
