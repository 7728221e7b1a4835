package wasm

import (
	"encoding/binary"
	"math"
	"slices"
)

// A V is a local vector.
type V struct{ value }

// NewV returns an undefined vector.
func (f *Func) NewV() V { return V{value{f, f.local(V128)}} }

// Into makes v the local of the next result that is a vector. The operands of that result must exist.
func (f *Func) Into(v V) { f.into = &v }

func (f *Func) popV() V {
	if f.into == nil {
		v := f.NewV()
		f.into = &v
	}
	v := *f.into
	f.into = nil
	f.pop(v.local)
	return v
}

// vectorOp appends an instruction with the prefix of vectors.
func (f *Func) vectorOp(op int, immediate []byte, operands ...operand) {
	f.push(operands...)
	f.emit(opVector, append(unsigned(op), immediate...)...)
}

// vector is vectorOp for an instruction whose result is a vector.
func (f *Func) vector(op int, immediate []byte, operands ...operand) V {
	f.vectorOp(op, immediate, operands...)
	return f.popV()
}

// inMemory returns the immediate of an instruction that accesses memory, for one lane or all.
func inMemory(offset int, lane ...byte) []byte {
	return slices.Concat([]byte{0}, unsigned(offset), lane)
}

// Bits returns a vector of four constants.
func (f *Func) Bits(lanes [4]uint32) V {
	var b []byte
	for _, l := range lanes {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	return f.vector(v128Const, b)
}

// Spread returns a vector with the bits x in all lanes.
func (f *Func) Spread(x uint32) V { return f.Bits([4]uint32{x, x, x, x}) }

// Num returns a vector with x in all lanes.
func (f *Func) Num(x float64) V { return f.Spread(math.Float32bits(float32(x))) }

// Wide returns a vector with two integers of 64 bits.
func (f *Func) Wide(a, b uint64) V {
	return f.Bits([4]uint32{uint32(a), uint32(a >> 32), uint32(b), uint32(b >> 32)})
}

// Zero returns a vector of zeros.
func (f *Func) Zero() V { return f.Spread(0) }

// Zeros returns n vectors of zeros.
func (f *Func) Zeros(n int) []V {
	var all []V
	for range n {
		all = append(all, f.Zero())
	}
	return all
}

// SplatF returns a vector with the float x in all lanes.
func (f *Func) SplatF(x Scalar) V { return f.vector(f32x4Splat, nil, x) }

// SplatX returns a vector with x in all four lanes.
func (f *Func) SplatX(x X) V { return f.vector(i32x4Splat, nil, x) }

// SplatL returns a vector with the integer x of 64 bits in both lanes.
func (f *Func) SplatL(x Scalar) V { return f.vector(i64x2Splat, nil, x) }

// load appends an instruction that reads a vector, or a part of one.
func (f *Func) load(op int, p X, offset int) V { return f.vector(op, inMemory(offset), p) }

// LoadV reads a vector.
func (f *Func) LoadV(p X, offset int) V { return f.load(v128Load, p, offset) }

// LoadSplat reads a float into all lanes.
func (f *Func) LoadSplat(p X, offset int) V { return f.load(v128Load32Splat, p, offset) }

// LoadOne reads a float; other lanes become 0.
func (f *Func) LoadOne(p X, offset int) V { return f.load(v128Load32Zero, p, offset) }

// LoadTwo reads two floats; other lanes become 0.
func (f *Func) LoadTwo(p X, offset int) V { return f.load(v128Load64Zero, p, offset) }

// LoadHalves reads four integers of 16 bits as integers of 32 bits.
func (f *Func) LoadHalves(p X, offset int) V { return f.load(v128Load16x4U, p, offset) }

// LoadLane returns v with a lane read from memory.
func (f *Func) LoadLane(v V, lane int, p X, offset int) V {
	return f.vector(v128Load32Lane, inMemory(offset, byte(lane)), p, v)
}

// StoreV writes a vector.
func (f *Func) StoreV(v V, p X, offset int) { f.vectorOp(v128Store, inMemory(offset), p, v) }

// StoreLane writes a lane of 32 bits.
func (f *Func) StoreLane(v V, lane int, p X, offset int) {
	f.vectorOp(v128Store32Lane, inMemory(offset, byte(lane)), p, v)
}

// StoreLow writes the first 64 bits.
func (f *Func) StoreLow(v V, p X, offset int) { f.vectorOp(v128Store64Lane, inMemory(offset, 0), p, v) }

// op1 returns the result of an instruction with one operand.
func (v V) op1(op int) V { return v.f.vector(op, nil, v) }

func (v V) op2(op int, w V) V { return v.f.vector(op, nil, v, w) }

func (v V) shift(op, n int) V {
	v.f.push(v)
	v.f.pushInt(n)
	return v.f.vector(op, nil)
}

// Set sets v to w.
func (v V) Set(w V) {
	v.f.get(w.local)
	v.f.pop(v.local)
}

// Copy returns a local with the value of v.
func (v V) Copy() V {
	v.f.get(v.local)
	return v.f.popV()
}

// Accumulate adds w to v.
func (v V) Accumulate(w V) { v.Set(v.Add(w)) }

// Add returns v + w.
func (v V) Add(w V) V { return v.op2(f32x4Add, w) }

// Sub returns v − w.
func (v V) Sub(w V) V { return v.op2(f32x4Sub, w) }

// Mul returns v · w.
func (v V) Mul(w V) V { return v.op2(f32x4Mul, w) }

// Div returns v / w.
func (v V) Div(w V) V { return v.op2(f32x4Div, w) }

// Max returns the larger of each pair of floats, and NaN if either is NaN.
func (v V) Max(w V) V { return v.op2(f32x4Max, w) }

// PMin returns w where w < v, otherwise v.
func (v V) PMin(w V) V { return v.op2(f32x4PMin, w) }

// PMax returns w where v < w, otherwise v.
func (v V) PMax(w V) V { return v.op2(f32x4PMax, w) }

// Sqrt returns the square roots.
func (v V) Sqrt() V { return v.op1(f32x4Sqrt) }

// Abs returns |v|.
func (v V) Abs() V { return v.op1(f32x4Abs) }

// Less returns ones in the lanes where v < w, zeros elsewhere.
func (v V) Less(w V) V { return v.op2(f32x4Lt, w) }

// Equal returns ones in the lanes where v = w.
func (v V) Equal(w V) V { return v.op2(f32x4Eq, w) }

// And returns v & w.
func (v V) And(w V) V { return v.op2(v128And, w) }

// AndNot returns v &^ w.
func (v V) AndNot(w V) V { return v.op2(v128AndNot, w) }

// Or returns v | w.
func (v V) Or(w V) V { return v.op2(v128Or, w) }

// Xor returns v ^ w.
func (v V) Xor(w V) V { return v.op2(v128Xor, w) }

// Where returns the bits of v where mask has ones, of w elsewhere.
func (v V) Where(mask, w V) V { return v.f.vector(v128Bitselect, nil, v, w, mask) }

// ShlInts shifts four integers to the left.
func (v V) ShlInts(n int) V { return v.shift(i32x4Shl, n) }

// MoreInts compares four signed integers.
func (v V) MoreInts(w V) V { return v.op2(i32x4GtS, w) }

// AtLeastInts compares four unsigned integers.
func (v V) AtLeastInts(w V) V { return v.op2(i32x4GeU, w) }

// EqualBytes compares sixteen integers.
func (v V) EqualBytes(w V) V { return v.op2(i8x16Eq, w) }

// LowBytes returns the first eight signed integers of 8 bits as integers of 16.
func (v V) LowBytes() V { return v.op1(i16x8ExtendLowS) }

// HighBytes returns the last eight signed integers of 8 bits as integers of 16.
func (v V) HighBytes() V { return v.op1(i16x8ExtendHighS) }

// LowHalves returns the first four signed integers of 16 bits as integers of 32.
func (v V) LowHalves() V { return v.op1(i32x4ExtendLowS) }

// HighHalves returns the last four signed integers of 16 bits as integers of 32.
func (v V) HighHalves() V { return v.op1(i32x4ExtendHighS) }

// Floats converts four signed integers.
func (v V) Floats() V { return v.op1(f32x4ConvertS) }

// AddWide adds two integers of 64 bits.
func (v V) AddWide(w V) V { return v.op2(i64x2Add, w) }

// MulWide multiplies two integers of 64 bits.
func (v V) MulWide(w V) V { return v.op2(i64x2Mul, w) }

// ShrWide shifts two unsigned integers of 64 bits to the right.
func (v V) ShrWide(n int) V { return v.shift(i64x2ShrU, n) }

// Any returns whether v has a bit that is not 0.
func (v V) Any() X {
	v.f.vectorOp(v128AnyTrue, nil, v)
	return v.f.popX()
}

// Shuffle returns four lanes: 0 to 3 are those of v, 4 to 7 those of w.
func (v V) Shuffle(w V, lanes ...int) V {
	var bytes []byte
	for _, l := range lanes {
		for b := range 4 {
			bytes = append(bytes, byte(4*l+b))
		}
	}
	return v.f.vector(i8x16Shuffle, bytes, v, w)
}

// First returns the first lane.
func (v V) First() Scalar {
	v.f.vectorOp(f32x4ExtractLane, []byte{0}, v)
	x := Scalar{value{v.f, v.f.local(F32)}}
	v.f.pop(x.local)
	return x
}
