package seq2seq

import (
	"strings"

	"github.com/attn-go/attn/tensor"
)

// Alignment tells where the decoder looked while it wrote a translation.
type Alignment struct {
	Source []string // the tokens of the source, with the end mark
	Target []string // the tokens written, with the end mark
	// Layers holds the cross attention by the layers' names: weights
	// [H Lt Ls], row i for the step that wrote target token i.
	Layers []LayerWeights
}

// LayerWeights is the attention of one layer.
type LayerWeights struct {
	Name    string
	Weights *tensor.Tensor // [H Lt Ls]
}

// Align returns where the decoder looks while it writes target from source.
func (m *Translator) Align(source, target string) Alignment {
	src := m.encodeSource(source)
	read, write := m.encodeTarget(target)
	var a Alignment
	observe := func(layer string, w *tensor.Tensor) {
		if strings.HasSuffix(layer, ".cross") {
			a.Layers = append(a.Layers, LayerWeights{layer, tensor.Reshape(nil, w.Clone(), w.Shape()[1:]...)})
		}
	}
	s := m.net.encode(nil, newBatch([][]int{src}), observe)
	decode(m.net, nil, s, read, len(read), observe)
	for _, id := range src {
		a.Source = append(a.Source, m.Source.Token(id))
	}
	for _, id := range write {
		a.Target = append(a.Target, m.Target.Token(id))
	}
	return a
}

// Mean returns the weights [Lt Ls] averaged over the heads of the given layer,
// counted from the end if negative.
func (a Alignment) Mean(layer int) *tensor.Tensor {
	if layer < 0 {
		layer += len(a.Layers)
	}
	return tensor.MeanAxis(nil, a.Layers[layer].Weights, 0)
}
