package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/attn-go/attn/internal/simd"
)

// read reads the numbers in the order of the file. It allocates memory as data arrive, because a header may claim any
// number of elements.
func (h *array) read(r io.Reader) ([]float32, error) {
	var buffer [1 << 14]byte
	chunk := len(buffer) / h.width
	data := make([]float32, 0, min(h.count, chunk))
	for len(data) < h.count {
		n := min(h.count-len(data), chunk)
		raw := buffer[:n*h.width]
		if _, err := io.ReadFull(r, raw); err != nil {
			return nil, short(err, fmt.Sprintf("numbers, want %d of them", h.count))
		}
		if cap(data)-len(data) < n {
			more := make([]float32, len(data), min(h.count, 2*len(data)+n))
			copy(more, data)
			data = more
		}
		if h.plain() { // a fast loop for the common case, as files may be gigabytes
			for i := range n {
				data = append(data, math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
			}
			continue
		}
		for i := range n {
			v, problem := h.number(raw[i*h.width:][:h.width])
			if problem != "" {
				return nil, fmt.Errorf("npy: element %d is %s", len(data), problem)
			}
			data = append(data, v)
		}
	}
	return data, nil
}

// plain reports whether the numbers are little-endian float32.
func (h *array) plain() bool { return h.kind == 'f' && h.width == 4 && !h.big }

// number returns one number, or describes the problem with it.
func (h *array) number(b []byte) (v float32, problem string) {
	order := binary.ByteOrder(binary.LittleEndian)
	if h.big {
		order = binary.BigEndian
	}
	var u uint64
	switch h.width {
	case 1:
		u = uint64(b[0])
	case 2:
		u = uint64(order.Uint16(b))
	case 4:
		u = uint64(order.Uint32(b))
	case 8:
		u = order.Uint64(b)
	}
	switch h.kind {
	case 'b':
		if u > 1 {
			return 0, fmt.Sprintf("the byte %d, want 0 or 1 for a bool", u)
		}
		return float32(u), ""
	case 'u':
		if !exact(u) {
			return 0, fmt.Sprintf("%d, which a float32 does not represent exactly", u)
		}
		return float32(u), ""
	case 'i':
		unused := 64 - 8*h.width
		i := int64(u<<unused) >> unused
		if !exact(uint64(max(i, -i))) { // the smallest int64 is its own negative
			return 0, fmt.Sprintf("%d, which a float32 does not represent exactly", i)
		}
		return float32(i), ""
	}
	switch h.width {
	case 2:
		return simd.Float16Value(uint16(u)), ""
	case 4:
		return math.Float32frombits(uint32(u)), ""
	}
	f := math.Float64frombits(u)
	if v = float32(f); math.IsInf(float64(v), 0) && !math.IsInf(f, 0) {
		return 0, fmt.Sprintf("%v, which is beyond the largest float32", f)
	}
	return v, ""
}

// exact reports whether float32, with its 24 bits, can represent u.
func exact(u uint64) bool { return u == 0 || bits.Len64(u)-bits.TrailingZeros64(u) <= 24 }
