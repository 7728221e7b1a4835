// Package npy reads and writes NumPy's .npy format: one array of numbers after a header that describes it.
//
//	x, err := npy.Read(file)     // numpy.save("x.npy", x.astype("float32"))
//	err = npy.Write(file, x)     // numpy.load("x.npy")
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
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

const (
	magic     = "\x93NUMPY"
	maxRank   = 64     // NumPy's limits
	maxHeader = 10_000 // bytes

	// maxCount is far above any real array. Axes of size zero are not counted, so that the product of any axes does
	// not overflow.
	maxCount = min(1<<40, math.MaxInt/8)
)

// Read reads one NumPy array of float32 or float64, as numpy.save writes it. It reads no further than the last byte of
// the array, so several arrays may follow one another in r; at the end of r, the error wraps io.EOF. Doubles are
// rounded to the nearest float32.
//
// Errors: a truncated or malformed file; another type, byte order or order of axes; a double beyond the largest
// float32. The file may come from an untrusted source.
func Read(r io.Reader) (*tensor.Tensor, error) {
	text, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	width, shape, count, err := parseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("npy: header: %w", err)
	}
	data, err := readNumbers(r, width, count)
	if err != nil {
		return nil, err
	}
	return tensor.New(data, shape...), nil
}

// readHeader reads everything before the numbers and returns the dictionary.
func readHeader(r io.Reader) (string, error) {
	var start [len(magic) + 4]byte // with the version and the length of the dictionary
	n, err := io.ReadFull(r, start[:])
	if kind := otherFormat(start[:n]); kind != "" {
		return "", fmt.Errorf("npy: file is %s", kind)
	}
	if err == io.EOF {
		return "", fmt.Errorf("npy: nothing is left to read: %w", err)
	}
	if major, minor := start[len(magic)], start[len(magic)+1]; n >= len(magic)+2 && (major != 1 || minor != 0) {
		return "", fmt.Errorf("npy: version is %d.%d, want 1.0, which numpy.save writes for numbers", major, minor)
	}
	if err := short(err, "header"); err != nil {
		return "", err
	}
	length := binary.LittleEndian.Uint16(start[len(magic)+2:])
	if length > maxHeader {
		return "", fmt.Errorf("npy: header has %d bytes, want at most %d", length, maxHeader)
	}
	text := make([]byte, length)
	_, err = io.ReadFull(r, text)
	return string(text), short(err, "header")
}

// otherFormat names the format of a file that starts with the given bytes, or returns "" if it may be a NumPy array.
func otherFormat(start []byte) string {
	start = start[:min(len(start), len(magic))]
	switch {
	case strings.HasPrefix(magic, string(start)): // if too short, the caller reports that
		return ""
	case strings.HasPrefix(string(start), "PK\x03\x04"):
		return "a zip archive, perhaps an .npz: want one of the .npy files in it"
	}
	return fmt.Sprintf("no array of NumPy: it begins with %s, want %s", quote.Text(string(start)), quote.Text(magic))
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

// dictionary returns the expression of a header, with spaces between any two tokens and its keys in any order. Each of
// the three members has three groups: the type, the order of axes, and the shape.
func dictionary() *regexp.Regexp {
	const (
		number = ` *(?:0|[1-9][0-9]*) *`
		descr  = `(?:'descr'|"descr") *: *('[^'\\\n]*'|"[^"\\\n]*"|\[[^\]\n]*\])`
		order  = `(?:'fortran_order'|"fortran_order") *: *(True|False)`
		shape  = `(?:'shape'|"shape") *: *(\((?: *|(?:` + number + `,)+(?:` + number + `| *))\))`
		member = ` *(?:` + descr + `|` + order + `|` + shape + `) *`
	)
	return regexp.MustCompile(`^ *\{` + member + `,` + member + `,` + member + `(?:, *)?\} *\n?$`)
}

// parseHeader parses the dictionary of a header, which must have each of its three keys exactly once. It returns the
// bytes and the number of the numbers that follow.
func parseHeader(text string) (width int, shape []int, count int, err error) {
	var found [3]string
	for i, value := range dictionary().FindStringSubmatch(text) {
		if i > 0 && found[(i-1)%3] == "" {
			found[(i-1)%3] = value
		}
	}
	if slices.Contains(found[:], "") { // a key is there twice, and another one is not
		const want = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } or the like"
		return 0, nil, 0, fmt.Errorf("it is %s, want %s", quote.Text(text), want)
	}
	kind := strings.Trim(found[0], `'"`)
	switch kind {
	case "<f4":
		width = 4
	case "<f8":
		width = 8
	default:
		const want = `"<f4" or "<f8", to which astype converts in NumPy`
		return 0, nil, 0, fmt.Errorf("descr is %s, want %s", quote.Text(kind), want)
	}
	if found[1] != "False" {
		return 0, nil, 0, errors.New("fortran_order is True, want False, as numpy.ascontiguousarray returns arrays")
	}
	shape, count, err = parseShape(found[2])
	return width, shape, count, err
}

// parseShape parses axes in parentheses, and returns the number of elements.
func parseShape(text string) (shape []int, count int, err error) {
	for axis := range strings.SplitSeq(strings.Trim(text, "()"), ",") {
		if axis = strings.Trim(axis, " "); axis == "" {
			continue // after the last comma
		}
		n, err := strconv.ParseUint(axis, 10, strconv.IntSize-1)
		if err != nil {
			return nil, 0, fmt.Errorf("shape has an axis of %s, which overflows", quote.Text(axis))
		}
		shape = append(shape, int(n))
	}
	if len(shape) > maxRank {
		return nil, 0, fmt.Errorf("shape has %d axes, want at most %d", len(shape), maxRank)
	}
	product := uint64(1)
	for _, n := range shape {
		over, low := bits.Mul64(product, uint64(max(n, 1)))
		if over != 0 || low > maxCount {
			return nil, 0, fmt.Errorf("shape %v is that of more than %d numbers", shape, maxCount)
		}
		product = low
	}
	if slices.Contains(shape, 0) {
		product = 0
	}
	return shape, int(product), nil
}

// readNumbers reads numbers of 4 or 8 bytes. It allocates memory as data arrive, because a header may claim any number
// of elements.
func readNumbers(r io.Reader, width, count int) ([]float32, error) {
	var buffer [1 << 14]byte
	chunk := len(buffer) / width
	data := make([]float32, 0, min(count, chunk))
	for len(data) < count {
		n := min(count-len(data), chunk)
		raw := buffer[:n*width]
		if _, err := io.ReadFull(r, raw); err != nil {
			return nil, short(err, fmt.Sprintf("numbers, want %d of them", count))
		}
		if cap(data)-len(data) < n {
			more := make([]float32, len(data), min(count, 2*len(data)+n))
			copy(more, data)
			data = more
		}
		for ; len(raw) > 0; raw = raw[width:] {
			if width == 4 {
				data = append(data, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
				continue
			}
			f := math.Float64frombits(binary.LittleEndian.Uint64(raw))
			if math.Abs(f) <= math.MaxFloat64 && math.IsInf(float64(float32(f)), 0) {
				return nil, fmt.Errorf("npy: element %d is %v, which is beyond the largest float32", len(data), f)
			}
			data = append(data, float32(f))
		}
	}
	return data, nil
}

// Write writes x as a float32 NumPy array in C order, which numpy.load reads. The bytes are the same as numpy.save
// writes.
//
// Errors: errors of w, and more than the 64 axes that NumPy supports.
func Write(w io.Writer, x *tensor.Tensor) error {
	if x.Rank() > maxRank {
		return fmt.Errorf("npy: shape has %d axes, want at most %d", x.Rank(), maxRank)
	}
	if _, err := w.Write(Header(x.Shape())); err != nil {
		return err
	}
	var buffer []byte
	for part := range slices.Chunk(x.Data(), 1<<12) {
		buffer = buffer[:0]
		for _, v := range part {
			buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
		}
		if _, err := w.Write(buffer); err != nil {
			return err
		}
	}
	return nil
}

// Header returns everything before the numbers of an array of at most 64 axes, for an array that does not fit in
// memory. The numbers follow as little-endian float32 and begin at a multiple of 64. Like NumPy, it leaves room for a
// longer first axis.
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
