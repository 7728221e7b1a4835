package docs

// The code of the pages that is in no example: here it compiles, and what needs no files of
// others runs. TestCode compares it with the pages line by line.

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// Example_files writes and reads the files of heads.md, onnx.md and pytorch.md.
func Example_files() {
	dir, err := os.MkdirTemp("", "attn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, page := range []func(dir string) error{recording, exporting, exportingLinear, saving, loading} {
		if err := page(dir); err != nil {
			fmt.Println(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		fmt.Println(filepath.Base(file))
	}
	// Output:
	// heads.safetensors
	// layer.onnx
	// linear.onnx
	// model.safetensors
}

func recording(dir string) error {
	defer within(dir)()
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 8, Heads: 2}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return err
	}
	tokens := []string{"to", "be"}
	x := tensor.Zeros(1, len(tokens), 8)

	recorder := heads.NewRecorder(heads.RecorderOptions{})
	layer.Forward(nil, x, x, x, attn.Options{Observers: []attn.Observer{recorder}, Layer: "encoder.0.self"})
	record, err := recorder.Record(heads.Texts{SourceTokens: tokens})
	if err != nil {
		return err
	}
	return record.WriteFile("heads.safetensors")
}

func exporting(dir string) error {
	defer within(dir)()
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 8, Heads: 2}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return err
	}

	m, err := onnx.FromMultiHead(layer, onnx.Options{Lengths: true, Causal: true})
	if err != nil {
		return err
	}
	return m.Save("layer.onnx") // inputs query, key, value and lengths; output out
}

func exportingLinear(dir string) error {
	defer within(dir)()
	layer, err := linear.NewLayer(linear.LayerConfig{Width: 8, Heads: 2, Beta: 1}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return err
	}

	m, err := onnx.FromLinear(layer, onnx.LinearOptions{Domain: onnx.RuntimeDomain, State: true})
	if err != nil {
		return err
	}
	return m.Save("linear.onnx")
}

func saving(dir string) error {
	defer within(dir)()
	layer, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 512, Heads: 8, Hidden: 2048}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return err
	}

	options := statedict.SaveOptions{Names: nn.TorchNames, Prefix: "layers.0."}
	if err := statedict.Save("model.safetensors", layer, options); err != nil {
		return err
	}
	return nil
}

func loading(dir string) error {
	defer within(dir)()
	rng := rand.New(rand.NewPCG(1, 2))

	layer, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 512, Heads: 8, Hidden: 2048}, rng)
	if err != nil {
		return err
	}
	return statedict.Load("model.safetensors", layer, statedict.LoadOptions{Names: nn.TorchNames, Prefix: "layers.0."})
}

// within changes to a directory, and returns what changes back.
func within(dir string) func() {
	before, err := os.Getwd()
	if err == nil {
		err = os.Chdir(dir)
	}
	if err != nil {
		log.Fatal(err)
	}
	return func() { _ = os.Chdir(before) }
}

// What follows compiles and does not run: it needs models from elsewhere.
var _ = []any{inspect, generate, embed, importance[*probe.Probe], ring}

func inspect(ctx context.Context) error {
	m, err := models.Load("bert-base-uncased", models.Options{})
	if err != nil {
		return err
	}
	x, err := m.Tokens("The cat sat on the [MASK].")
	if err != nil {
		return err
	}
	hidden := m.Hidden(nil, x, models.Run{})
	logits := m.Head().Logits(nil, hidden)
	record, err := probe.RecordTexts(ctx, m, "The cat sat on the mat.", "", heads.RecorderOptions{})
	_, _ = logits, record
	return err
}

func generate(ctx context.Context) error {
	m, err := models.Load("SmolLM2-135M", models.Options{Format: tensor.BFloat16Weights})
	if err != nil {
		return err
	}
	t, err := m.Tokenizer()
	if err != nil {
		return err
	}
	prompt, err := m.Encode("Attention is", "")
	if err != nil {
		return err
	}
	tokens, err := m.Generate(ctx, prompt.IDs, models.Generation{Tokens: 50})
	if err != nil {
		return err
	}
	stream := t.Stream()
	for id := range tokens {
		fmt.Print(stream.Next(id))
	}
	return ctx.Err() // nil if the text is complete
}

func embed(ctx context.Context) error {
	e, err := models.LoadEmbedder("all-MiniLM-L6-v2", models.Options{})
	if err != nil {
		return err
	}
	vectors, err := e.Embed(ctx, "first text", "second text")
	_ = vectors
	return err
}

func importance[Model prune.Prunable[Model]](ctx context.Context, model Model) error {
	methods := []prune.Method{prune.LeaveOneOut, prune.Gradient}
	scores, err := prune.Importance(ctx, model, prune.ImportanceOptions{Methods: methods})
	if err != nil {
		return err
	}
	rank := prune.Spearman(scores[0].Flat(model.Layers()), scores[1].Flat(model.Layers()))
	pruned, err := prune.Heads(ctx, model, prune.Options[Model]{Method: prune.Gradient, Keep: 36})
	_, _ = rank, pruned
	return err
}

// ring attends to the keys of a sequence, of which each part has n positions.
func ring(tape *tensor.Tape, q *tensor.Tensor, k, v []*tensor.Tensor, first, n int) *tensor.Tensor {
	parts := make([]attn.Output, len(k))
	for p := range parts {
		o := attn.Options{Mask: mask.CausalAt(first - p*n), LogSumExp: true}
		parts[p] = attn.Attend(tape, q, k[p], v[p], o)
	}
	return attn.Merge(tape, parts...).Out
}

// Classifier is a module made of others.
type Classifier struct {
	Embedding *nn.Embedding
	Encoder   *attn.EncoderLayer
	Head      *nn.Linear
}

func (m *Classifier) TorchState() (nn.StateDict, error) {
	return nn.JoinTorch(
		nn.Named{Name: "embedding", Module: m.Embedding},
		nn.Named{Name: "encoder", Module: m.Encoder},
		nn.Named{Name: "head", Module: m.Head},
	)
}
