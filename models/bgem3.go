package models

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// M3 are the three outputs of BGE-M3 for a text.
//
// Source: Chen et al., "M3-Embedding", 2024, https://arxiv.org/abs/2402.03216, section 3.2.
type M3 struct {
	Dense  []float32      // the vector of the Embedder
	Sparse SparseVector   // the weight of each token, max(0, w·h + b); special and unknown tokens have none
	Tokens *tensor.Tensor // [n Width] of Embedder.Late: a vector for each token but the first
}

// The maps of BGE-M3 beside its pipeline, in files of torch.save or safetensors.
const sparseMap, colbertMap = "sparse_linear", "colbert_linear"

// mapFile returns the path of a map of BGE-M3, or "".
func mapFile(dir, name string) string {
	for _, end := range []string{".safetensors", ".pt"} {
		if path := filepath.Join(dir, name+end); atomicfile.Exists(path) {
			return path
		}
	}
	return ""
}

// hasM3 reports whether a directory has the maps of BGE-M3.
func hasM3(dir string) bool { return mapFile(dir, sparseMap) != "" && mapFile(dir, colbertMap) != "" }

// readM3 reads the maps of BGE-M3.
func (e *Embedder) readM3(dir string) error {
	late := &LateEmbedder{Model: e.Model, Mean: true, files: e.files}
	for name, to := range map[string]**nn.Linear{sparseMap: &e.weights, colbertMap: new(*nn.Linear)} {
		path := mapFile(dir, name)
		r, err := safetensors.Open(path)
		if err != nil {
			return err
		}
		defer r.Close()
		out := 1
		if info, ok := r.Lookup("weight"); ok && name == colbertMap && len(info.Shape) == 2 {
			out = info.Shape[0]
			late.width = out
		}
		l := &nn.Linear{Weight: tensor.Zeros(out, e.Model.Sizes().Width).Param(), Bias: tensor.Zeros(out).Param()}
		if err := statedict.LoadFrom(r, l, statedict.LoadOptions{}); err != nil {
			return err
		}
		if *to = l; name == colbertMap {
			late.Layers = []Layer{l, normalized}
		}
		e.files = append(e.files, path)
		e.params = append(e.params, nn.Var{Name: name + ".weight", Tensor: l.Weight}, nn.Var{Name: name + ".bias", Tensor: l.Bias})
	}
	late.Queries = &LateTexts{MostTokens: e.MostTokens, Prompt: e.Prompt, embedder: late, from: 1}
	late.Documents, e.Late, late.files = late.Queries, late, e.files
	return nil
}

// EmbedM3 returns the three outputs of BGE-M3 for each text, from one run of the model.
//
// Errors: those of Embed; a directory without the maps of BGE-M3.
func (e *Embedder) EmbedM3(ctx context.Context, texts ...string) (outputs []M3, err error) {
	if e.weights == nil {
		return nil, &FormatError{e.Model.Dir, fmt.Errorf("has no %s and %s, want those of BGE-M3", sparseMap, colbertMap)}
	}
	all, err := encodeAll(ctx, e.Encode, texts)
	if err != nil {
		return nil, err
	}
	var none []int // tokens without a weight
	for key, usual := range map[string]string{"cls_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"} {
		if id, err := e.Model.namedToken(key, usual); err == nil {
			none = append(none, id)
		}
	}
	x := BatchOf(all...)
	outputs = make([]M3, len(texts))
	tape := tensor.NewTape(tensor.Infer)
	tape.SetContext(ctx)
	err = par.Stopped(func() {
		inSimilar(tape, x, func(own *tensor.Tape, list []int) {
			some := x.pick(list)
			h := e.Model.Hidden(own, some, Run{alone: true})
			dense, vectors := e.Pool(own, h, some.Lens()), e.Late.Vectors(own, h)
			weights := tensor.ReLU(own, e.weights.Forward(own, h)) // [B L 1]
			for i, n := range list {
				ids, w := some.IDs[i], slices.Clone(tensor.Index(own, weights, i).Data()[:len(some.IDs[i])])
				for j, id := range ids {
					if slices.Contains(none, id) {
						w[j] = 0
					}
				}
				outputs[n] = M3{
					slices.Clone(tensor.Index(own, dense, i).Data()), NewSparseVector(ids, w),
					tensor.Slice(own, tensor.Index(own, vectors, i), 0, min(1, len(ids)), len(ids)).Clone(),
				}
			}
		})
	})
	return outputs, err
}
