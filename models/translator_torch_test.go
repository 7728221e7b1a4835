package models

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// torchExamples returns examples from tensors of ids in the format of interop/torch: padded with seq2seq.Pad,
// sources up to seq2seq.EOS and targets from seq2seq.BOS on.
func torchExamples(t *testing.T, g *tensortest.Golden) []example {
	rows := func(name string) [][]int {
		ids, shape := g.Ints(name), g.Shape(name)
		if len(shape) != 2 {
			t.Fatalf("%s has shape %v, want two axes", name, shape)
		}
		rows := make([][]int, shape[0])
		for i := range rows {
			row := ids[i*shape[1]:][:shape[1]]
			for n := len(row); n > 0 && row[n-1] == seq2seq.Pad; n-- {
				row = row[:n-1]
			}
			rows[i] = row
		}
		return rows
	}
	sources, reads := rows("in.source"), rows("in.read")
	examples := make([]example, len(sources))
	for i, read := range reads {
		examples[i] = example{IDs: sources[i], Reads: read, Targets: append(read[1:len(read):len(read)], seq2seq.EOS)}
	}
	return examples
}

// attn computes the same logits, smoothed loss and gradients as the float64 networks of interop/torch for a
// directory that attn has written.
func TestTorchGolden(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("..", "testdata", "translators", "*", "golden.safetensors"))
	if err != nil || len(dirs) < 4 {
		t.Fatalf("%d goldens, want at least 4: %v", len(dirs), err)
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m := loaded(t, dir)
			g := tensortest.Open(t, path)
			tape := tensor.NewTape(tensor.Eval)
			logits, write := predict(tape, m, torchExamples(t, g), Run{})
			loss := nn.CrossEntropy(tape, logits, write, seq2seq.Pad, float32(g.Number("smoothing")))
			tape.Backward(loss, nil)
			g.Check("want.logits", logits)
			g.Check("want.loss", loss)
			for name, p := range m.Params() {
				g.CheckGrad("grad."+name, p)
			}
		})
	}
}

// TestTorchCases writes translators with every score, their inputs and attn's outputs to the folder in
// ATTN_TORCH_CASES, for interop/torch/check.py.
func TestTorchCases(t *testing.T) {
	folder := os.Getenv("ATTN_TORCH_CASES")
	if folder == "" {
		folder = t.TempDir() // that they can be written and read is tested in any case
	}
	pruned := keepHeads(t, shaken(t, TranslatorConfig{Arch: Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 2, Hidden: 10}),
		map[string][]int{"encoder.0.self": {}, "encoder.1.self": {1}, "decoder.0.cross": {0, 2}})
	models := map[string]*Model{"pruned": pruned}
	for _, c := range toyConfigs() {
		models[fmt.Sprintf("%s-%s-%d", c.Arch, c.Score, c.Heads)] = shaken(t, c)
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(folder, name)
			writeTorchCase(t, m, dir)
			loaded(t, dir)
		})
	}
}

func writeTorchCase(t *testing.T, m *Model, dir string) {
	examples := examplesOf(t, m, toyPairs(5))
	tape := tensor.NewTape(tensor.Eval)
	logits, write := predict(tape, m, examples, Run{})
	const smoothing = 0.1
	loss := nn.CrossEntropy(tape, logits, write, seq2seq.Pad, smoothing)
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
		b := Batch{IDs: rows}
		file.Tensors = append(file.Tensors, safetensors.FromInts(name, []int{len(rows), b.longest()}, b.ids()))
	}
	rectangle("in.source", func(e example) []int { return e.IDs })
	rectangle("in.read", func(e example) []int { return e.Reads })
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
