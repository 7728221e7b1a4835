package simd

import (
	"math"
	"unsafe"
)

// FromBFloat16 sets dst[i] to the value of the bfloat16 x[i], which is the upper half of
// a float32.
func FromBFloat16(dst []float32, x []uint16) {
	sameLen("FromBFloat16", "dst", len(dst), "x", len(x))
	fromBFloat16(dst, x)
}

// FromFloat16 sets dst[i] to the value of the half x[i]. A NaN keeps all its bits.
func FromFloat16(dst []float32, x []uint16) {
	sameLen("FromFloat16", "dst", len(dst), "x", len(x))
	fromFloat16(dst, x)
}

// ToBFloat16 sets dst[i] to the bfloat16 nearest to x[i], like NearestBFloat16.
func ToBFloat16(dst []uint16, x []float32) {
	sameLen("ToBFloat16", "dst", len(dst), "x", len(x))
	toBFloat16(dst, x)
}

// Magnitude returns the largest |x[i]|, NaN if any is NaN, and 0 if x is empty.
func Magnitude(x []float32) float32 {
	var most uint32 // absolute values compare like their bits
	for len(x) > 0 {
		n := min(len(x), piece)
		most = max(most, math.Float32bits(magnitude(x[:n])))
		x = x[n:]
	}
	return math.Float32frombits(most)
}

// stored is the address of stored numbers and the size of one in bytes.
type stored struct {
	at   unsafe.Pointer
	size int
}

// address returns the address of the numbers from index at on.
func (s Stored) address(at int) stored {
	size := s.Format.Size()
	return stored{unsafe.Pointer(&s.Memory[at*size]), size}
}

// NearestBFloat16 returns the bfloat16 nearest to x, and the even one of two equally near. NaN
// stays NaN.
func NearestBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 1<<6
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBFloat16Generic(dst []float32, x []uint16) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = math.Float32frombits(uint32(v) << 16)
	}
}

func fromFloat16Generic(dst []float32, x []uint16) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = Float16Value(v)
	}
}

func fromInt8Generic(dst []float32, x []int8) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(v)
	}
}

func toBFloat16Generic(dst []uint16, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = NearestBFloat16(v)
	}
}

func toInt8Generic(dst []int8, x []float32, inverse float64) {
	const round = 0x1.8p52 // adding and subtracting it rounds to the nearest integer, ties to even
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = int8(min(max(int32(float64(float64(v)*inverse)+round-round), -127), 127))
	}
}

func magnitudeGeneric(x []float32) float32 {
	var most uint32
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(most)
}

// storedPanelGeneric has no kernel.
func storedPanelGeneric(_, _ Mat, _, _, _ int, _ *Panels, _ int, _ bool, _ int) bool {
	return false
}

func multiplyPanelGeneric(c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int, _ stored) {
	for i := 0; bias != nil && !more && i < m; i++ {
		copy(c.Data[i*c.Row:], bias)
	}
	var p Panels
	p.View(l, b)
	panelsInChains(c, a, m, &p, 0, l.K, 0, l.N, more || bias != nil, chain, more)
}
