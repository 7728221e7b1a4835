package seq2seq

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Probe is a translator and pairs on which the importance of its heads is
// measured: it reads each target beside its source, and the loss is the cross
// entropy of the target's tokens, end marks included, without smoothing.
type Probe struct {
	model   *Translator
	batches [][]example
}

var _ prune.Prunable[*Probe] = (*Probe)(nil)

// NewProbe returns a probe of m on pairs. It returns an error if there are no
// pairs, or if m has no heads.
func NewProbe(m *Translator, pairs []Pair) (*Probe, error) {
	if len(pairs) == 0 {
		return nil, errors.New("seq2seq: NewProbe: no pairs")
	}
	if m.heads() == 0 {
		return nil, errors.New("seq2seq: NewProbe: the model has no heads")
	}
	return &Probe{m, m.batches(pairs)}, nil
}

// Translator returns the translator that is probed.
func (p *Probe) Translator() *Translator { return p.model }

// Layers returns the translator's layers.
func (p *Probe) Layers() []*attn.MultiHead { return p.model.Layers() }

// Batches returns the number of pairs in each batch: at most 64, of similar
// lengths.
func (p *Probe) Batches() []int {
	sizes := make([]int, len(p.batches))
	for i, b := range p.batches {
		sizes[i] = len(b)
	}
	return sizes
}

// Run runs batch i. On a tape of mode tensor.Train, dropout would drop.
func (p *Probe) Run(t *tensor.Tape, i int, pass prune.Pass) prune.Outcome {
	batch := p.batches[i]
	logits, write := p.model.logits(t, batch, hooks{observe: pass.Observe, gates: pass.Gates})
	mean := nn.CrossEntropy(t, logits, write, Pad, 0)
	return prune.Outcome{
		Loss: tensor.Scale(t, mean, float32(len(write))),
		Losses: func() []float64 {
			losses := make([]float64, len(batch))
			logp, vocabulary := tensor.LogSoftmax(nil, logits).Data(), logits.Dim(-1)
			for i, e := range batch {
				losses[i] = crossEntropy(logp, e.write, vocabulary)
				logp = logp[len(e.write)*vocabulary:]
			}
			return losses
		},
		Terms: len(write),
		Queries: func(layer string) []int {
			source := strings.HasPrefix(layer, "encoder.")
			lengths := make([]int, len(batch))
			for i, e := range batch {
				if source {
					lengths[i] = len(e.src)
				} else {
					lengths[i] = len(e.write)
				}
			}
			return lengths
		},
	}
}

// Without returns a probe of the translator without the given heads, on the same
// pairs. It returns an error if one of them is no head of the translator. All may
// go.
func (p *Probe) Without(gone []prune.Head) (*Probe, error) {
	kept := map[string][]int{}
	for _, l := range p.Layers() {
		kept[l.Config().Name] = others(nil, l.Config().Heads)
	}
	for _, h := range gone {
		at := slices.Index(kept[h.Layer], h.Number)
		if at < 0 {
			return nil, fmt.Errorf("seq2seq: Without: layer %s has no head %d to take away", quote.Text(h.Layer), h.Number)
		}
		kept[h.Layer] = slices.Delete(kept[h.Layer], at, at+1)
	}
	m, err := p.model.Keep(kept)
	if err != nil {
		return nil, err
	}
	return &Probe{m, p.batches}, nil
}
