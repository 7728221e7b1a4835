package models

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Keep returns a copy of a translator of attn train with only the given heads of each layer.
// Heads are in ascending order and numbered from 0 as in m.Attention; a layer that is not in the
// map keeps all heads. The parameters of the other heads are removed, so the copy is smaller and
// faster. Its output is that of m with gates of 0 for these heads, within rounding. A layer may
// lose all its heads.
//
// Errors: a model that is not a translator of attn train; a layer that does not exist; numbers
// that are out of range or not ascending.
//
// Aliasing: the vocabularies are shared with m; the parameters are copies.
func (m *Model) Keep(kept map[string][]int) (*Model, error) {
	if m.Translator == nil {
		return nil, fmt.Errorf("models: Keep: %s is not a translator of attn train; use Probe.Compact",
			m.Family.Name)
	}
	v := *m.Translator
	v.Config.PrunedHeads = map[string][]int{}
	var cut []nn.Module
	known := 0
	for _, l := range m.Attention() {
		name := l.Config().Name
		chosen, some := kept[name]
		if !some {
			chosen = stats.Numbers(l.Config().Heads)
		} else if err := checkHeads(chosen, l.Config().Heads); err != nil {
			return nil, fmt.Errorf("models: Keep: layer %s: %w", quote.Text(name), err)
		} else {
			known++
		}
		k, err := l.Keep(chosen)
		if err != nil {
			return nil, err
		}
		cut = append(cut, k)
		left := pick(m.Translator.Config.Kept(name), chosen)
		if gone := others(left, v.Config.Heads); len(gone) > 0 {
			v.Config.PrunedHeads[name] = gone
		}
	}
	if known < len(kept) {
		return nil, fmt.Errorf("models: Keep: unknown layer, want %s", listed(v.Config.layers()))
	}
	small := newTranslator(&v, rand.New(rand.NewPCG(0, 0)))
	// Parameters outside the attention layers have the same shape in both networks.
	copyParams(small, m)
	for i, l := range small.Attention() {
		copyParams(l, cut[i])
	}
	return small, nil
}

// Expand returns a copy of a translator of attn train with the shapes that it had before
// any head was removed, for programs that cannot read layers with fewer heads. All
// parameters of the removed heads are zero. Its output is that of m, within rounding.
// Training does not change the removed heads: where all maps of a head are zero, so are
// their gradients.
func (m *Model) Expand() *Model {
	v := *m.Translator
	v.Config.PrunedHeads = nil
	whole := newTranslator(&v, rand.New(rand.NewPCG(0, 0)))
	copyParams(whole, m)
	layers := whole.Attention()
	for i, small := range m.Attention() {
		c, large := small.Config(), layers[i]
		kept := m.Translator.Config.Kept(c.Name)
		for _, maps := range [][2]*nn.Linear{{small.Q, large.Q}, {small.K, large.K}, {small.V, large.V}} {
			from, to := maps[0], maps[1]
			spreadBlocks(to.Weight, from.Weight, kept, c.HeadSize*from.Weight.Dim(1))
			spreadBlocks(to.Bias, from.Bias, kept, c.HeadSize)
		}
		spreadBlocks(large.Out.Weight, small.Out.Weight, kept, c.ValueSize)
	}
	return whole
}

// spreadBlocks copies the blocks of from, of size elements each, to the given places of to, and
// sets the other blocks of to to zero. If from has several rows of blocks, like the last map of a
// layer, each row is copied to the same places.
func spreadBlocks(to, from *tensor.Tensor, places []int, size int) {
	clear(to.Data())
	rows := from.Len() / max(1, len(places)*size)
	for r := range rows {
		row := to.Data()[r*to.Len()/rows:]
		for i, at := range places {
			copy(row[at*size:(at+1)*size], from.Data()[(r*len(places)+i)*size:])
		}
	}
}

// copyParams copies the parameters that have the same name and shape in both.
func copyParams(to, from nn.Module) {
	have := map[string]*tensor.Tensor{}
	for name, p := range from.Params() {
		have[name] = p
	}
	for name, p := range to.Params() {
		if f := have[name]; f != nil && slices.Equal(f.Shape(), p.Shape()) {
			copy(p.Data(), f.Data())
		}
	}
}
