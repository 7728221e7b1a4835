package onnx_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// casesVariable is an environment variable with a folder. If it is set, Check also writes its cases there in the
// format of ONNX's own tests, so that testdata/onnx_check.py can run them elsewhere.
const casesVariable = "ATTN_ONNX_CASES"

// Tolerance is the largest allowed difference from the result of another runtime.
const Tolerance = 1e-5

// Check writes a model, reads the file, runs it, and ends the test unless its outputs equal want. It returns the
// model as read, and all of its outputs.
func Check(t testing.TB, model interface{ Write(w io.Writer) error }, inputs, want map[string]*Array) (*Model, map[string]*Array) {
	t.Helper()
	var file bytes.Buffer
	if err := model.Write(&file); err != nil {
		t.Fatal(err)
	}
	m, err := Read(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if names := m.unused(); len(names) > 0 {
		t.Fatalf("nothing uses %q", names)
	}
	got, err := m.Run(inputs)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		g := got[name]
		if g == nil {
			t.Fatalf("no output %q", name)
			continue
		}
		if !slices.Equal(g.Shape, w.Shape) {
			t.Fatalf("output %q has shape %v, want %v", name, g.Shape, w.Shape)
		}
		for i, v := range w.Data {
			if !(math.Abs(g.Data[i]-v) <= Tolerance) {
				t.Fatalf("output %q, element %d of shape %v: %v, want %v", name, i, w.Shape, g.Data[i], v)
			}
		}
	}
	if dir := os.Getenv(casesVariable); dir != "" {
		m.writeCase(t, filepath.Join(dir, filepath.FromSlash(t.Name())), file.Bytes(), inputs, got, want)
	}
	return m, got
}

// unused returns the weights and the results of nodes that no output needs, because runtimes warn about them.
func (m *Model) unused() []string {
	made, used := map[string][]string{}, map[string]bool{}
	for name := range m.Graph.Weights {
		made[name] = []string{name}
	}
	var collect func(g *Graph)
	collect = func(g *Graph) {
		for _, p := range g.Outputs {
			used[p.Name] = true
		}
		for _, n := range g.Nodes {
			made[n.Out[0]] = n.Out
			for _, name := range n.In {
				used[name] = true
			}
			for _, a := range n.Attributes {
				if a.Graph != nil {
					collect(a.Graph)
				}
			}
		}
	}
	collect(m.Graph)
	maps.DeleteFunc(made, func(_ string, values []string) bool {
		return slices.ContainsFunc(values, func(name string) bool { return used[name] })
	})
	return slices.Sorted(maps.Keys(made))
}

// writeCase writes model.onnx, and test_data_set_0 with inputs and outputs as TensorProtos. The outputs are those in
// want, or else the computed outputs in got.
func (m *Model) writeCase(t testing.TB, dir string, model []byte, inputs, got, want map[string]*Array) {
	t.Helper()
	write := func(path string, data []byte) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("model.onnx", model)
	for i, p := range m.Graph.Inputs {
		write("test_data_set_0/input_"+strconv.Itoa(i)+".pb", inputs[p.Name].proto(p))
	}
	for i, p := range m.Graph.Outputs {
		x := want[p.Name]
		if x == nil {
			x = got[p.Name]
		}
		write("test_data_set_0/output_"+strconv.Itoa(i)+".pb", x.proto(p))
	}
}

// proto returns an array as a TensorProto, with the name and type of a port.
func (x *Array) proto(p Port) []byte {
	var raw, b []byte
	for _, v := range x.Data {
		switch p.Type {
		case float32Type:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		case int64Type:
			raw = binary.LittleEndian.AppendUint64(raw, uint64(int64(v)))
		case boolType:
			raw = append(raw, byte(v))
		}
	}
	bytesField := func(number int, v []byte) {
		b = binary.AppendUvarint(b, uint64(number)<<3|2)
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	for _, d := range x.Shape {
		b = binary.AppendUvarint(append(b, 1<<3), uint64(d))
	}
	b = binary.AppendUvarint(append(b, 2<<3), uint64(p.Type))
	bytesField(8, []byte(p.Name))
	bytesField(9, raw)
	return b
}
