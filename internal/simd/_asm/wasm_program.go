package main

import (
	"math"
	"slices"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// The products of wasmLn2High and integers of 15 bits are exact.
const (
	wasmLn2High = 0.693359375
	wasmLn2Low  = math.Ln2 - wasmLn2High
)

// wasmLanes are the lanes where bits are ones, or zeros if inverted.
type wasmLanes struct {
	bits     wasm.V
	inverted bool
}

func (f *wasmProgram) pointer(name string) ptr   { return f.x(name) }
func (f *wasmProgram) broadcast(name string) vec { return f.SplatF(f.ParamScalar(f.index(name))) }
func (f *wasmProgram) vec() vec                  { return f.NewV() }
func (f *wasmProgram) zero() vec                 { return f.Zero() }
func (f *wasmProgram) number(x float64) vec      { return f.Num(x) }
func (f *wasmProgram) constant(x float64) vec    { return f.Num(x) }
func (f *wasmProgram) bits(b uint32) vec         { return f.Spread(b) }
func (f *wasmProgram) ln2() (high, low float64)  { return wasmLn2High, wasmLn2Low }
func (f *wasmProgram) sums(int) []vec            { return as[vec](f.Zeros(wasmSums)) }

// to returns a, and makes d the place of the next result.
func (f *wasmProgram) to(d, a vec) wasm.V {
	f.Into(d.(wasm.V))
	return a.(wasm.V)
}

func (f *wasmProgram) add(d, a, b vec) { f.to(d, a).Add(b.(wasm.V)) }
func (f *wasmProgram) sub(d, a, b vec) { f.to(d, a).Sub(b.(wasm.V)) }
func (f *wasmProgram) mul(d, a, b vec) { f.to(d, a).Mul(b.(wasm.V)) }
func (f *wasmProgram) div(d, a, b vec) { f.to(d, a).Div(b.(wasm.V)) }
func (f *wasmProgram) sqrt(d, a vec)   { f.to(d, a).Sqrt() }

// The product is rounded before it is added, as everywhere here: relaxed instructions may or may not fuse
// both, depending on the engine, so that a program would not know its bits.
func (f *wasmProgram) addProduct(d, a, b vec) { f.add(d, d, a.(wasm.V).Mul(b.(wasm.V))) }
func (f *wasmProgram) subProduct(d, a, b vec) { f.sub(d, d, a.(wasm.V).Mul(b.(wasm.V))) }
func (f *wasmProgram) mulAdd(a, b, c vec) vec { f.add(a, c, a.(wasm.V).Mul(b.(wasm.V))); return a }
func (f *wasmProgram) mulSub(a, b, c vec) vec { f.sub(a, a.(wasm.V).Mul(b.(wasm.V)), c); return a }
func (f *wasmProgram) larger(d, a vec)        { f.to(d, d).PMax(a.(wasm.V)) }
func (f *wasmProgram) atLeast(d, a vec)       { f.to(d, d).Max(a.(wasm.V)) }
func (f *wasmProgram) plusZero(d, zero vec)   {}
func (f *wasmProgram) or(d, a, b vec)         { f.to(d, a).Or(b.(wasm.V)) }
func (f *wasmProgram) and(d, a, b vec)        { f.to(d, a).And(b.(wasm.V)) }
func (f *wasmProgram) exponent(d vec)         { f.to(d, d).ShlInts(23) }
func (f *wasmProgram) atMost(d, a vec)        { f.to(d, d).PMin(a.(wasm.V)) }
func (f *wasmProgram) sign(a, _ vec) vec      { return a }
func (f *wasmProgram) copy(a vec) vec         { return a.(wasm.V).Copy() }
func (f *wasmProgram) set(d, a vec)           { d.(wasm.V).Set(a.(wasm.V)) }
func (f *wasmProgram) spare(c vec) vec        { return c }

// lost multiplies the upper and lower halves of a, whose products are exact.
func (f *wasmProgram) lost(a, square vec) vec {
	x := a.(wasm.V)
	// Without a fused instruction a² is added up from halves with 12 bits, whose products have at most 24.
	upper := x.And(f.Spread(0xfffff000))
	lower := x.Sub(upper)
	cross := upper.Mul(lower)
	return upper.Mul(upper).Sub(square.(wasm.V)).Add(cross.Add(cross)).Add(lower.Mul(lower))
}

func (f *wasmProgram) setSign(d, sign, negative vec) {
	f.to(d, sign).Where(negative.(wasm.V), d.(wasm.V))
}

func (f *wasmProgram) nonzero(a, zero vec) lanes {
	return wasmLanes{a.(wasm.V).Equal(zero.(wasm.V)), true}
}

func (f *wasmProgram) positive(a, zero vec) lanes {
	return wasmLanes{zero.(wasm.V).Less(a.(wasm.V)), false}
}

func (f *wasmProgram) negative(a, zero vec) lanes { return f.positive(zero, a) }

func (f *wasmProgram) choose(l lanes, a, b vec) vec {
	return a.(wasm.V).Where(l.(wasmLanes).bits, b.(wasm.V))
}

func (f *wasmProgram) limited(a, high, low vec) vec {
	v := a.(wasm.V)
	// no comparison with NaN is true, so that NaN becomes high
	return v.Where(v.Less(high.(wasm.V)), high.(wasm.V)).PMax(low.(wasm.V))
}

func (f *wasmProgram) notLess(a, b vec) lanes { return wasmLanes{a.(wasm.V).Less(b.(wasm.V)), true} }

func (f *wasmProgram) mulWhere(l lanes, d, a vec) {
	f.mul(d, d, a)
	f.keep(l, d)
}

func (f *wasmProgram) keep(l lanes, d vec) {
	if m := l.(wasmLanes); m.inverted {
		f.to(d, d).AndNot(m.bits)
	} else {
		f.to(d, d).And(m.bits)
	}
}

func (f *wasmProgram) addWhere(l lanes, a, d vec) {
	sum, old, m := d.(wasm.V).Add(a.(wasm.V)), d.(wasm.V), l.(wasmLanes)
	// d itself stays in the other lanes: a sum with 0 would turn -0 into 0
	if m.inverted {
		sum, old = old, sum
	}
	f.to(d, sum).Where(m.bits, old)
}

func (f *wasmProgram) load(x ptr, i int) vec { return f.LoadSplat(x.(wasm.X), 4*i) }

func (f *wasmProgram) clear(all []vec) {
	for _, v := range all {
		f.Into(v.(wasm.V))
		f.Zero()
	}
}

func (f *wasmProgram) polynomial(c []float64) func(x vec) vec {
	nums := make([]wasm.V, len(c))
	for i, x := range c {
		nums[i] = f.Num(x)
	}
	return func(x vec) vec {
		p := nums[len(c)-1]
		for _, n := range slices.Backward(nums[:len(c)-1]) {
			p = p.Mul(x.(wasm.V)).Add(n)
		}
		return p
	}
}

func (f *wasmProgram) longPolynomial(c []float64) func(x vec) vec { return f.polynomial(c) }

// expPolynomial adds the largest terms last, which are 2 + 2x.
func (f *wasmProgram) expPolynomial(c []float64) func(x vec) vec {
	// In Horner's rule every product and sum near the result is rounded, since nothing is fused. Here only the
	// last two sums are near it.
	first, rest := f.Num(c[0]), f.polynomial(c[2:])
	return func(x vec) vec {
		r := x.(wasm.V)
		return r.Mul(r).Mul(rest(x).(wasm.V)).Add(r.Add(r)).Add(first)
	}
}

// powerPolynomial adds the largest terms last. The product of head and upper is exact, where head is
// the second coefficient rounded to 12 bits, and upper is x without its lower 12 bits.
func (f *wasmProgram) powerPolynomial(c []float64) func(x vec) vec {
	second := float32(c[1])
	top := float64(math.Float32frombits(math.Float32bits(second) &^ (1<<12 - 1)))
	bits, head, tail := f.Spread(1<<32-1<<12), f.Num(top), f.Num(c[1]-top)
	first, rest := f.Num(c[0]), f.polynomial(c[2:])
	return func(x vec) vec {
		r := x.(wasm.V)
		upper := r.And(bits)
		small := r.Mul(r).Mul(rest(x).(wasm.V)).Add(r.Mul(tail)).Add(r.Sub(upper).Mul(head))
		return small.Add(upper.Mul(head)).Add(first)
	}
}

func (f *wasmProgram) draws() func() lanes {
	d := newWasmDraws(f)
	return func() lanes { return wasmLanes{bits: d.next()} }
}

func (f *wasmProgram) repeat(n ptr, body func()) {
	left := n.(wasm.X).Copy()
	f.Loop(func(again wasm.Label) {
		body()
		left.Advance(-1)
		f.BranchIf(again, left)
	})
}

func (f *wasmProgram) scope(body func())      { f.Scope(body) }
func (f *wasmProgram) advance(x, bytes ptr)   { x.(wasm.X).AdvanceBy(bytes.(wasm.X)) }
func (f *wasmProgram) floats(name string) ptr { return f.x(name).Shl(2) }

func (f *wasmProgram) advanceBy(length string, all ...ptr) {
	bytes := f.x(length).Shl(2)
	for _, x := range all {
		f.advance(x, bytes)
	}
}

func (f *wasmProgram) move(bytes int, all ...ptr) {
	for _, x := range all {
		x.(wasm.X).Advance(bytes)
	}
}

func (f *wasmProgram) moveRows(bytes int, rows []ptr) { f.move(bytes, rows...) }

func (f *wasmProgram) place(x ptr) ptr { return x.(wasm.X).Copy() }

func (f *wasmProgram) read(x ptr, i int, e extent) vec {
	n, _ := e.(*wasm.X)
	return f.readAt(x.(wasm.X), i, n)
}

func (f *wasmProgram) readInto(d vec, x ptr, i int, e extent) {
	f.Into(d.(wasm.V))
	f.read(x, i, e)
}

func (f *wasmProgram) operand(x ptr, i int) vec { return f.read(x, i, nil) }
func (f *wasmProgram) once(x ptr, i int) vec    { return f.read(x, i, nil) }

func (f *wasmProgram) write(v vec, x ptr, i int, e extent) {
	n, _ := e.(*wasm.X)
	f.writeAt(v.(wasm.V), x.(wasm.X), i, n)
}

func (f *wasmProgram) first(n ptr) extent {
	x := n.(wasm.X)
	return &x
}

func (f *wasmProgram) few(n ptr) extent { return f.first(n) }

func (f *wasmProgram) rows(first, distance ptr, n int) []ptr { return pointers(f, first, distance, n) }

func (f *wasmProgram) rowSets(distance ptr, n int, first ...ptr) [][]ptr {
	return setsOfPointers(f, distance, n, first)
}

func (f *wasmProgram) field(args ptr, offset int) ptr { return f.Load(args.(wasm.X), offset) }

func (f *wasmProgram) ifElse(c condition, body, otherwise func()) {
	if c.not {
		body, otherwise = otherwise, body
	}
	var is wasm.X
	switch {
	case c.x != nil:
		is = c.x.(wasm.X)
	case c.v != nil:
		is = c.v.(wasm.V).ShlInts(1).Any() // only 0 and -0 have no bits other than the sign
	default:
		is = c.args.field(c.field).(wasm.X).Is(c.n)
	}
	if otherwise == nil {
		f.If(is, body)
	} else {
		f.IfElse(is, body, otherwise)
	}
}

// An estimate of the inverse is an instruction that WebAssembly lacks, so it divides.
func (f *wasmProgram) quotients() func(sum, n, d vec) {
	return func(sum, n, d vec) { sum.(wasm.V).Accumulate(n.(wasm.V).Div(d.(wasm.V))) }
}

func (f *wasmProgram) inverses(one vec) func(x vec) vec {
	return func(x vec) vec { return one.(wasm.V).Sub(one.(wasm.V).Div(x.(wasm.V))) }
}

// total returns the total in all lanes.
func (f *wasmProgram) total(sums []vec) wasm.V { return f.fold(as[wasm.V](sums), wasm.V.Add) }

func (f *wasmProgram) returnSums(sums ...[]vec) {
	if len(sums) == 1 {
		f.Return(f.total(sums[0]).First())
		return
	}
	results := f.ParamX(len(f.params))
	for i, all := range sums {
		f.StoreLane(f.total(all), 0, results, 4*i)
	}
	f.Return()
}

func (f *wasmProgram) storeSum(sums []vec, to ptr) { f.StoreLane(f.total(sums), 0, to.(wasm.X), 0) }

func (f *wasmProgram) storeLargest(all []vec, to ptr) {
	f.StoreLane(f.fold(as[wasm.V](all), wasm.V.PMax), 0, to.(wasm.X), 0)
}

func (f *wasmProgram) meanOf(sums []vec, size vec, to ptr) vec {
	mean := f.total(sums).Div(size.(wasm.V))
	if to != nil {
		f.StoreLane(mean, 0, to.(wasm.X), 0)
	}
	return mean
}

func (f *wasmProgram) inverseOf(sums []vec, size, eps, one vec, to ptr) vec {
	mean := f.meanOf(sums, size, nil).(wasm.V)
	inverse := one.(wasm.V).Div(mean.Add(eps.(wasm.V)).Sqrt())
	f.StoreLane(inverse, 0, to.(wasm.X), 0)
	return inverse
}

func (f *wasmProgram) returnNone(v vec) { f.Return(v.(wasm.V).Any().Not()) }

func (f *wasmProgram) end() { f.Return() }

func (f *wasmProgram) along(length string, all ...ptr) loop {
	places := ofFloats(&moving{p: f}, all)
	return loop{f, f.x(length).Copy(), places}
}

// WebAssembly has structured loops only, which cannot be entered in the middle: the condition is at both
// ends.
func (f *wasmProgram) whole(n ptr, step int, body func()) {
	left := n.(wasm.X)
	f.If(left.AtLeast(step), func() {
		f.Loop(func(again wasm.Label) {
			body()
			left.Advance(-step)
			f.BranchIf(again, left.AtLeast(step))
		})
	})
}

func (f *wasmProgram) tail(n ptr, count int, body func(i int, e extent)) {
	left := n.(wasm.X)
	f.Block(func(end wasm.Label) {
		for i := range count {
			f.If(left.Below(f.lanes), func() {
				f.If(left, func() { body(i, f.few(n)) })
				f.Branch(end)
			})
			if i < count-1 {
				f.Scope(func() { body(i, nil) })
				left.Advance(-f.lanes)
			}
		}
	})
}

func (f *wasmProgram) widen(n stored, x ptr, i int) vec {
	if n.bytes == 2 {
		return f.LoadHalves(x.(wasm.X), i*f.lanes*2).ShlInts(16)
	}
	// four bytes widen twice, to 16 and to 32 bits, since no instruction goes from 8 to 32
	return f.LoadOne(x.(wasm.X), i*f.lanes).LowBytes().LowHalves().Floats()
}

func (f *wasmProgram) lanesOf(e extent) lanes { return wasmLanes{bits: f.ones(*e.(*wasm.X))} }
