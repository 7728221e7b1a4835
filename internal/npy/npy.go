// Package npy reads and writes NumPy's .npy format: one array of numbers after a header that describes it.
//
// A file consists of the magic string, the version, the length of the header, the header and the numbers. The header
// is a Python dictionary, padded so that the numbers begin at a multiple of 64 bytes:
//
//	\x93NUMPY 1 0 v\0 {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// Files are untrusted, so everything in them is checked and nothing is executed: the header is matched with a pattern
// of these three keys, and arrays of objects are rejected. Memory is allocated only in proportion to bytes that
// exist.
//
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

const (
	magic     = "\x93NUMPY"
	maxRank   = 64     // NumPy's limits
	maxHeader = 10_000 // bytes

	// maxCount is far above any real array. Axes of size zero are not counted, so that the product of any axes does
	// not overflow.
	maxCount = min(1<<40, math.MaxInt/8)
)

// Read reads one array as float32, in row-major order. It reads no further than the last byte of the array, so
// several arrays may follow one another in r; at the end of r, the error wraps io.EOF.
//
// Booleans become 0 and 1. Half and single precision are read exactly; doubles are rounded to the nearest float32. It
// is an error if a double is beyond the largest float32, or if float32 cannot represent an integer exactly.
func Read(r io.Reader) (shape []int, data []float32, err error) {
	text, err := readHeader(r)
	if err != nil {
		return nil, nil, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, nil, fmt.Errorf("npy: header: %w", err)
	}
	data, err = h.read(r)
	if err != nil {
		return nil, nil, err
	}
	if h.fortran {
		data = rowMajor(data, h.shape)
	}
	return h.shape, data, nil
}

// readHeader reads everything before the numbers and returns the dictionary.
func readHeader(r io.Reader) (string, error) {
	var start [len(magic) + 2]byte
	n, err := io.ReadFull(r, start[:])
	if kind := otherFormat(start[:n]); kind != "" {
		return "", fmt.Errorf("npy: file is %s", kind)
	}
	if err == io.EOF {
		return "", fmt.Errorf("npy: nothing is left to read: %w", err)
	}
	if err := short(err, "header"); err != nil {
		return "", err
	}
	width := 4
	switch major, minor := start[len(magic)], start[len(magic)+1]; {
	case minor != 0 || major < 1 || major > 3:
		return "", fmt.Errorf("npy: version is %d.%d, want 1.0, 2.0 or 3.0", major, minor)
	case major == 1:
		width = 2
	}
	var size [4]byte
	if _, err := io.ReadFull(r, size[:width]); err != nil {
		return "", short(err, "header")
	}
	length := binary.LittleEndian.Uint32(size[:])
	if length > maxHeader {
		return "", fmt.Errorf("npy: header has %d bytes, want at most %d", length, maxHeader)
	}
	text := make([]byte, length)
	_, err = io.ReadFull(r, text)
	return string(text), short(err, "header")
}

// otherFormat names the format of a file that starts with the given bytes, or returns "" if it may be a NumPy array.
func otherFormat(start []byte) string {
	switch {
	case strings.HasPrefix(string(start), magic):
		return ""
	case strings.HasPrefix(string(start), "PK\x03\x04"):
		return "a zip archive, perhaps an .npz: want one of the .npy files in it"
	case len(start) < len(magic) && strings.HasPrefix(magic, string(start)):
		return "" // too short; the caller reports that
	}
	return fmt.Sprintf("no array of NumPy: it begins with %s, want %s",
		quote.Text(string(start[:min(len(start), len(magic))])), quote.Text(magic))
}

// short turns the end of a file into an error that names the part in which it ends.
func short(err error, inside string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("npy: file ends inside its %s", inside)
	}
	return fmt.Errorf("npy: %w", err)
}

// rowMajor reorders an array from Fortran order to C order.
func rowMajor(data []float32, shape []int) []float32 {
	if len(shape) < 2 || len(data) == 0 {
		return data
	}
	out := make([]float32, len(data))
	index := make([]int, len(shape))
	for i := range out {
		from, step := 0, 1
		for axis, j := range index {
			from += j * step
			step *= shape[axis]
		}
		out[i] = data[from]
		for axis := len(shape) - 1; axis >= 0; axis-- {
			if index[axis]++; index[axis] < shape[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return out
}

// Write writes an array of little-endian float32 in row-major order, with the same bytes as numpy.save. The numbers
// may be given in several parts.
func Write(w io.Writer, shape []int, parts ...[]float32) error {
	if len(shape) > maxRank {
		return fmt.Errorf("npy: shape has %d axes, want at most %d", len(shape), maxRank)
	}
	want, got := 1, 0
	for _, n := range shape {
		want *= n
	}
	for _, x := range parts {
		got += len(x)
	}
	if got != want {
		return fmt.Errorf("npy: %d numbers, want %d for shape %v", got, want, shape)
	}
	if _, err := w.Write(Header(shape)); err != nil {
		return err
	}
	var buffer [1 << 14]byte
	for _, x := range parts {
		for len(x) > 0 {
			n := min(len(x), len(buffer)/4)
			for i, v := range x[:n] {
				binary.LittleEndian.PutUint32(buffer[4*i:], math.Float32bits(v))
			}
			if _, err := w.Write(buffer[:4*n]); err != nil {
				return err
			}
			x = x[n:]
		}
	}
	return nil
}

// Header returns everything before the numbers of an array of the given shape. The numbers follow as little-endian
// float32 and begin at a multiple of 64. Like NumPy, it leaves room for a longer first axis.
func Header(shape []int) []byte {
	var axes strings.Builder
	for i, n := range shape {
		if i > 0 {
			axes.WriteByte(' ')
		}
		fmt.Fprintf(&axes, "%d,", n)
	}
	list := axes.String()
	if len(shape) > 1 {
		list = strings.TrimSuffix(list, ",")
	}
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", list)
	if len(shape) > 0 {
		const room = 21 // digits of the largest first axis
		text += strings.Repeat(" ", room-len(fmt.Sprint(shape[0])))
	}
	const before = len(magic) + 2 + 2
	text += strings.Repeat(" ", 64-(before+len(text)+1)%64) + "\n"

	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text))) // 64 axes of 20 digits fit
	return append(b, text...)
}
