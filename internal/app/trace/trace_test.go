package trace_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/trace"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A batch with padding is read from a file, and the results of the model are those of transformers, under the
// names of the output file.
func TestGolden(t *testing.T) {
	encoder := map[string]string{"hidden": "want.hidden", "weights": "want.weights", "logits": "want.logits"}
	both := map[string]string{
		"hidden": "want.source", "weights": "want.encoder", "decoder_hidden": "want.hidden", "decoder": "want.decoder",
		"cross": "want.cross", "logits": "want.logits",
	}
	for dir, names := range map[string]map[string]string{
		"bert_words": encoder, "bert_text": encoder, "roberta_tokens": encoder,
		"seq2seq/m2m100": both, "seq2seq/marian": both, "seq2seq/t5": both,
	} {
		t.Run(dir, func(t *testing.T) {
			dir = filepath.Join("../../../models/testdata", dir)
			m, err := models.Load(dir, models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			g := tensortest.Open(t, filepath.Join(dir, "golden.safetensors"))
			x, err := trace.ReadBatch(writeBatch(t, g))
			if err != nil {
				t.Fatal(err)
			}
			if lens := g.Ints("in.lens"); !slices.Equal(x.Lens(), lens) {
				t.Fatalf("sequences of %v tokens, want %v", x.Lens(), lens)
			}
			compared := map[string]bool{}
			file, err := trace.Run(t.Context(), m, x)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range file.Tensors {
				name, number, numbered := strings.Cut(got.Name, ".")
				switch want := names[name]; {
				case want != "":
					if numbered {
						want += "." + number
					}
					values, err := got.Float32s()
					if err != nil {
						t.Fatal(err)
					}
					g.Check(want, tensor.New(values, got.Shape...))
					compared[name] = true
				case strings.HasSuffix(got.Name, "input_ids"):
					ids, err := got.Ints()
					if err != nil {
						t.Fatal(err)
					}
					golden := map[string][2]string{"input_ids": {"in.ids", "in.lens"}, "decoder_input_ids": {"in.targets", "in.target_lens"}}
					want, ones := g.Ints(golden[got.Name][0]), tokens(g, golden[got.Name])
					for i := range want {
						want[i] *= ones[i]
					}
					if !slices.Equal(ids, want) {
						t.Errorf("%s %v, want %v", got.Name, ids, want)
					}
				}
			}
			if len(compared) != len(names) {
				t.Errorf("compared %v, want %v", compared, names)
			}
		})
	}
}

// tokens returns 1 for tokens and 0 for padding, for the tensors of ids and lengths of these names.
func tokens(g *tensortest.Golden, names [2]string) []int {
	shape := g.Shape(names[0])
	ones := make([]int, shape[0]*shape[1])
	for i, n := range g.Ints(names[1]) {
		for j := range n {
			ones[i*shape[1]+j] = 1
		}
	}
	return ones
}

// writeBatch writes the tokens of a golden file in the form that ReadBatch reads, and returns the path.
func writeBatch(t *testing.T, g *tensortest.Golden) string {
	t.Helper()
	var f safetensors.File
	add := func(ids, mask, from, lens string) {
		f.Tensors = append(f.Tensors, safetensors.FromInts(ids, g.Shape(from), g.Ints(from)),
			safetensors.FromInts(mask, g.Shape(from), tokens(g, [2]string{from, lens})))
	}
	add("input_ids", "attention_mask", "in.ids", "in.lens")
	if g.Has("in.types") {
		f.Tensors = append(f.Tensors, safetensors.FromInts("token_type_ids", g.Shape("in.types"), g.Ints("in.types")))
	}
	if g.Has("in.targets") {
		add("decoder_input_ids", "decoder_attention_mask", "in.targets", "in.target_lens")
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// The decoder starts with its start token if no decoder tokens are given.
// Weights have the number of their layer, also if other layers have none, or two kinds.
func TestHybrids(t *testing.T) {
	for dir, want := range map[string]string{"lfm2": "weights.1", "falcon_h1": "mamba.0 weights.0 mamba.1 weights.1"} {
		m, err := models.Load("../../../models/testdata/decoders/"+dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		file, err := trace.Run(t.Context(), m, models.Batch{IDs: [][]int{{3, 8, 1}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range file.Tensors {
			if len(x.Shape) == 4 {
				got = append(got, x.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", dir, got, want)
		}
	}
}

func TestStartToken(t *testing.T) {
	m, err := models.Load("../../../models/testdata/seq2seq/t5", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := trace.Run(t.Context(), m, models.Batch{IDs: [][]int{{3, 4, 5}, {6}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"decoder_input_ids": "[2 1]", "logits": "[2 1 31]", "cross.1": "[2 3 1 3]"} {
		if x := f.Lookup(name); x == nil || fmt.Sprint(x.Shape) != want {
			t.Errorf("%s is %v, want shape %s", name, x, want)
		}
	}
}

func TestReadBatchRejects(t *testing.T) {
	ints := safetensors.FromInts
	for want, tensors := range map[string][]safetensors.Tensor{
		`tensor "input_ids" is missing`: {},
		`tensor "position_ids" is not read, want input_ids, token_type_ids`: {
			ints("input_ids", []int{2}, []int{1, 2}), ints("position_ids", []int{2}, []int{1, 2}),
		},
		`tensor "input_ids" has shape [1 1 1], want [L] or [B L]`: {ints("input_ids", []int{1, 1, 1}, []int{1})},
		`tensor "token_type_ids" has shape [1 2], want the shape of input_ids, [2]`: {
			ints("input_ids", []int{2}, []int{1, 2}), ints("token_type_ids", []int{1, 2}, []int{1, 2}),
		},
		`row 0 of attention_mask is not 1 for tokens and then 0 for padding`: {
			ints("input_ids", []int{3}, []int{1, 2, 3}), ints("attention_mask", []int{3}, []int{1, 0, 1}),
		},
		`tensor "decoder_attention_mask" requires decoder_input_ids`: {
			ints("input_ids", []int{1}, []int{1}), ints("decoder_attention_mask", []int{1}, []int{1}),
		},
		`tensor "input_ids"`: {safetensors.FromFloat32s("input_ids", []int{1}, []float32{1})},
	} {
		path := filepath.Join(t.TempDir(), "x.safetensors")
		f := safetensors.File{Tensors: tensors}
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		_, err := trace.ReadBatch(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
