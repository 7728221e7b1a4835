package onnx

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/tensor"
)

// opsets are the supported versions of the operators: 17, without the operator Attention, 23, the first with it, and 27,
// the first with LinearAttention; and for each the version of the file format.
var opsets = map[int]int64{17: 8, 23: 11, 27: 13}

// DefaultOpset is the version used for 0.
const DefaultOpset = 23

// Model is a graph with its weights, the content of an ONNX file.
type Model struct {
	opset    int
	main     *body
	weights  []weight
	used     map[Value]bool   // values that the outputs need, set when the model is written
	stored   []weight         // the weights among the used values
	known    map[any]Value    // existing weights and constants
	counts   map[string]int   // number of uses of each name
	outputs  map[Value]string // the names of values that are outputs of the model
	metadata [][2]string
	domains  []string // of operators that are not ONNX's own
	err      error    // the first error of Build
}

// Build returns the model that build adds to an empty graph. The version of the operators is 17, 23 or
// 27; 0 means DefaultOpset. The graph may be used during the call only.
//
// Errors: another version; a layer that ONNX cannot express, or a duplicate name of inputs or outputs; a ShapeError or
// ValueError of package tensor with which build panics.
func Build(name string, opset int, build func(*Graph)) (*Model, error) {
	opset = cmp.Or(opset, DefaultOpset)
	if opsets[opset] == 0 {
		return nil, fmt.Errorf("onnx: opset %d, want 17, 23 or 27", opset)
	}
	m := &Model{
		opset: opset, main: &body{name: name},
		known: map[any]Value{}, counts: map[string]int{}, outputs: map[Value]string{},
	}
	if err := tensor.Catch(func() { build(&Graph{model: m, body: m.main}) }); err != nil {
		return nil, err
	}
	return m, m.err
}

// Opset returns the version of the operators.
func (m *Model) Opset() int { return m.opset }

// SetMetadata adds a key and a text to the file, which runtimes return as metadata of the model.
func (m *Model) SetMetadata(key, value string) {
	m.metadata = append(m.metadata, [2]string{key, value})
}

// Save writes the model to a file atomically.
//
// Errors: a graph without an output; a model too large for an ONNX file; an I/O error. The parameters of the layers are read now, so a
// model may be saved again after they have changed.
func (m *Model) Save(path string) error {
	if err := m.check(); err != nil { // before a file is begun
		return err
	}
	return atomicfile.Write(path, m.Write)
}

// mostBytes is the largest size of a protobuf message, and so of an ONNX file.
const mostBytes = math.MaxInt32

// check finds the values that the outputs need. It returns an error if the model cannot be written.
func (m *Model) check() error {
	m.used = map[Value]bool{}
	m.main.use(m.used)
	m.stored = slices.DeleteFunc(slices.Clone(m.weights), func(w weight) bool { return !m.used[Value(w.name)] })
	var n int64 // about the length of the file
	for _, w := range m.stored {
		n += w.length()
	}
	switch {
	case len(m.main.outputs) == 0:
		return fmt.Errorf("onnx: the graph %q has no output", m.main.name)
	case n > mostBytes:
		return fmt.Errorf("onnx: a model of %.2f GiB, want less than 2 GiB, the limit of an ONNX file", float64(n)/(1<<30))
	}
	return nil
}

// Write writes the model as an ONNX file: a ModelProto. See Save.
func (m *Model) Write(w io.Writer) error {
	if err := m.check(); err != nil {
		return err
	}
	graph := m.main.encode(m)
	total := int64(len(graph))
	heads := make([]message, len(m.stored)) // the initializers without their numbers
	for i, w := range m.stored {
		heads[i] = w.header()
		total += int64(len(heads[i])) + w.length()
	}
	if total > mostBytes {
		return fmt.Errorf("onnx: a model of %d bytes, want at most %d", total, mostBytes)
	}

	var file, version message // version is that of ONNX's operators
	file.int(1, opsets[m.opset])
	file.string(2, "attn")
	if module, ok := debug.ReadBuildInfo(); ok {
		file.string(3, module.Main.Version)
	}
	version.int(2, int64(m.opset))
	file.bytes(8, version)
	for _, domain := range m.domains {
		var version message
		version.string(1, domain)
		version.int(2, 1)
		file.bytes(8, version)
	}
	for _, pair := range m.metadata {
		var entry message
		entry.string(1, pair[0])
		entry.string(2, pair[1])
		file.bytes(14, entry)
	}
	file.header(7, total)
	to := bufio.NewWriter(w) // keeps the first error
	to.Write(file)
	to.Write(graph)
	for i, w := range m.stored {
		to.Write(heads[i])
		w.write(to)
	}
	return to.Flush()
}

// named returns the name of a value in the file.
func (m *Model) named(v Value) string {
	if name, ok := m.outputs[v]; ok {
		return name
	}
	return string(v)
}

// weight is an initializer: numbers that are part of the model.
type weight struct {
	name      string
	shape     []int
	data      any  // []float32, []float64 or []int64
	transpose bool // transpose the matrix of floats when writing; shape is the transposed shape
}

// kind returns the element type and its size in bytes.
func (w *weight) kind() (Type, int64) {
	switch w.data.(type) {
	case []float64:
		return Float64, 8
	case []int64:
		return Int64, 8
	}
	return Float32, 4
}

// length returns the number of bytes of the numbers.
func (w *weight) length() int64 {
	_, n := w.kind()
	for _, d := range w.shape {
		n *= int64(d)
	}
	return n
}

// header returns the GraphProto field with the TensorProto, up to the bytes of its numbers.
func (w *weight) header() message {
	var t message
	for _, d := range w.shape {
		t.int(1, int64(d))
	}
	kind, _ := w.kind()
	t.int(2, int64(kind))
	t.string(8, w.name)
	t.header(9, w.length())
	var field message
	field.header(5, int64(len(t))+w.length())
	return append(field, t...)
}

// write writes the numbers. The writer keeps the first error.
func (w *weight) write(to *bufio.Writer) {
	floats, ok := w.data.([]float32)
	switch {
	case !ok: // for a few constants
		_ = binary.Write(to, binary.LittleEndian, w.data)
	case w.transpose:
		row := make([]float32, w.shape[1])
		for r := range w.shape[0] {
			for c := range row {
				row[c] = floats[c*w.shape[0]+r]
			}
			_ = binary.Write(to, binary.LittleEndian, row)
		}
	default:
		for part := range slices.Chunk(floats, 1<<14) { // converting all at once would double the memory
			_ = binary.Write(to, binary.LittleEndian, part)
		}
	}
}

// transposed is the key of a matrix that is stored transposed.
type transposed struct{ x *tensor.Tensor }

// unique returns a name that is not yet used in the model: name, or name with a number appended.
func (m *Model) unique(name string) string {
	n := m.counts[name]
	m.counts[name] = n + 1
	if n == 0 {
		return name
	}
	return m.unique(name + "_" + strconv.Itoa(n))
}
