package seq2seq

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// torchExamples returns examples from tensors of ids as interop/torch has them: padded
// with Pad, sources up to EOS and targets from BOS on.
func torchExamples(t *testing.T, g *tensortest.Golden) []example {
	rows := func(name string) [][]int {
		ids, shape := g.Ints(name), g.Shape(name)
		if len(shape) != 2 {
			t.Fatalf("%s has shape %v, want two axes", name, shape)
		}
		rows := make([][]int, shape[0])
		for i := range rows {
			row := ids[i*shape[1]:][:shape[1]]
			for n := len(row); n > 0 && row[n-1] == Pad; n-- {
				row = row[:n-1]
			}
			rows[i] = row
		}
		return rows
	}
	sources, reads := rows("in.source"), rows("in.read")
	examples := make([]example, len(sources))
	for i, read := range reads {
		examples[i] = example{src: sources[i], read: read, write: append(read[1:len(read):len(read)], EOS)}
	}
	return examples
}

// What the networks of interop/torch compute in float64, from a directory that attn has
// written, attn computes as well: logits, the loss with smoothing, and all gradients.
func TestTorchGolden(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("testdata", "torch", "*", "golden.safetensors"))
	if err != nil || len(dirs) < 4 {
		t.Fatalf("%d goldens, want at least 4: %v", len(dirs), err)
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			g := tensortest.Open(t, path)
			tape := tensor.NewTape(tensor.Eval)
			logits, write := m.logits(tape, torchExamples(t, g), hooks{})
			loss := nn.CrossEntropy(tape, logits, write, Pad, float32(g.Number("smoothing")))
			tape.Backward(loss, nil)
			g.Check("want.logits", logits)
			g.Check("want.loss", loss)
			for name, p := range m.Params() {
				g.CheckGrad("grad."+name, p)
			}
		})
	}
}

// TestTorchCases writes translators of all scores to the folder in ATTN_TORCH_CASES, each
// with inputs and what attn makes of them, for interop/torch/check.py to compare.
func TestTorchCases(t *testing.T) {
	folder := os.Getenv("ATTN_TORCH_CASES")
	if folder == "" {
		folder = t.TempDir() // that they can be written and read is tested in any case
	}
	pruned, err := shaken(t, Config{Arch: Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 2, Hidden: 10}).
		Keep(map[string][]int{"encoder.0.self": {}, "encoder.1.self": {1}, "decoder.0.cross": {0, 2}})
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*Translator{"pruned": pruned}
	for _, c := range toyConfigs() {
		models[fmt.Sprintf("%s-%s-%d", c.Arch, c.Score, c.Heads)] = shaken(t, c)
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(folder, name)
			writeTorchCase(t, m, dir)
			if _, err := Load(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

func writeTorchCase(t *testing.T, m *Translator, dir string) {
	var examples []example
	for _, p := range toyPairs(5) {
		examples = append(examples, m.example(p))
	}
	tape := tensor.NewTape(tensor.Eval)
	logits, write := m.logits(tape, examples, hooks{})
	const smoothing = 0.1
	loss := nn.CrossEntropy(tape, logits, write, Pad, smoothing)
	tape.Backward(loss, nil)
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	file := &safetensors.File{Metadata: map[string]string{"smoothing": fmt.Sprint(smoothing)}}
	add := func(name string, x *tensor.Tensor) {
		file.Tensors = append(file.Tensors, safetensors.FromFloat32s(name, x.Shape(), x.Data()))
	}
	rectangle := func(name string, of func(e example) []int) {
		var rows [][]int
		for _, e := range examples {
			rows = append(rows, of(e))
		}
		b := newBatch(rows)
		file.Tensors = append(file.Tensors, safetensors.FromInts(name, []int{len(rows), b.l}, b.ids))
	}
	rectangle("in.source", func(e example) []int { return e.src })
	rectangle("in.read", func(e example) []int { return e.read })
	add("want.logits", logits)
	add("want.loss", loss)
	for name, p := range m.Params() {
		if p.Grad() == nil { // nothing depends on it
			add("grad."+name, tensor.Zeros(p.Shape()...))
		} else {
			add("grad."+name, p.Grad())
		}
	}
	if err := file.WriteFile(filepath.Join(dir, "golden.safetensors")); err != nil {
		t.Fatal(err)
	}
}
