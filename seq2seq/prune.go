package seq2seq

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// The names of attention layers.
func encoderSelf(i int) string  { return fmt.Sprintf("encoder.%d.self", i) }
func decoderSelf(i int) string  { return fmt.Sprintf("decoder.%d.self", i) }
func decoderCross(i int) string { return fmt.Sprintf("decoder.%d.cross", i) }

// layers returns the names of the attention layers that consist of heads: those
// of the encoder, then self and cross of each layer of the decoder.
func (c Config) layers() []string {
	var names []string
	switch {
	case c.Heads == 0:
	case c.Arch == GRU:
		names = append(names, decoderCross(0)) // however many layers it has
	default:
		for i := range c.Layers {
			names = append(names, encoderSelf(i))
		}
		for i := range c.Layers {
			names = append(names, decoderSelf(i), decoderCross(i))
		}
	}
	return names
}

// Kept returns the heads of a layer that are not in PrunedHeads, by their numbers in the
// unpruned model: element h belongs to head h of the layer. c must be valid.
func (c Config) Kept(layer string) []int {
	return others(c.PrunedHeads[layer], c.Heads)
}

// checkPruned returns an error unless the pruned heads are heads of the network.
func (c Config) checkPruned() error {
	known := c.layers()
	for _, name := range slices.Sorted(maps.Keys(c.PrunedHeads)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("pruned heads of layer %s, want %s", quote.Text(name), listed(known))
		}
		if err := checkHeads(c.PrunedHeads[name], c.Heads); err != nil {
			return fmt.Errorf("pruned heads of layer %s: %w", quote.Text(name), err)
		}
	}
	return nil
}

// checkHeads returns an error unless the numbers are ascending and below n.
func checkHeads(numbers []int, n int) error {
	for i, h := range numbers {
		if h < 0 || h >= n {
			return fmt.Errorf("head %d, want 0 to %d", h, n-1)
		}
		if i > 0 && h <= numbers[i-1] {
			return fmt.Errorf("head %d follows %d, want ascending numbers", h, numbers[i-1])
		}
	}
	return nil
}

// listed returns the names for an error message.
func listed(names []string) string {
	switch {
	case len(names) == 0:
		return "none, as the model has no heads"
	case len(names) > 7:
		names = []string{names[0], "…", names[len(names)-1]}
	}
	return "one of " + strings.Join(names, ", ")
}

// Equal reports whether two configurations are of the same network.
func (c Config) Equal(d Config) bool {
	lost := func(c Config) map[string][]int { // without empty lists, which mean the same as none
		lists := maps.Clone(c.PrunedHeads)
		maps.DeleteFunc(lists, func(_ string, heads []int) bool { return len(heads) == 0 })
		return lists
	}
	if !maps.EqualFunc(lost(c), lost(d), slices.Equal) {
		return false
	}
	c.PrunedHeads, d.PrunedHeads = nil, nil
	return reflect.DeepEqual(c, d)
}

// Layers returns the attention layers that consist of heads: those of the
// encoder, then self and cross of each layer of the decoder. A recurrent network
// has one, or none if its Config has no heads. The names in their configurations
// are those of Config.PrunedHeads.
func (m *Translator) Layers() []*attn.MultiHead { return m.net.layers() }

// heads returns how many heads the layers have.
func (m *Translator) heads() int {
	n := 0
	for _, l := range m.Layers() {
		n += l.Config().Heads
	}
	return n
}

// Keep returns a translator that has only the given heads of each layer, in
// ascending order and counted as m.Layers has them, from 0; a layer that is not
// in the map keeps all. The parameters of the other heads are removed, so it is
// smaller and faster. Its output is that of m with gates of 0 for these heads, within
// rounding. A layer may lose all its heads.
//
// Errors: a layer that m does not have; numbers that are not ascending or no heads
// of the layer.
//
// Aliasing: the vocabularies are m's, the parameters copies.
func (m *Translator) Keep(kept map[string][]int) (*Translator, error) {
	if err := m.checkKept(kept); err != nil {
		return nil, fmt.Errorf("seq2seq: Keep: %w", err)
	}
	small := *m
	small.Config.PrunedHeads = map[string][]int{}
	var cut []*attn.MultiHead
	for _, l := range m.Layers() {
		name := l.Config().Name
		chosen, some := kept[name]
		if !some {
			chosen = others(nil, l.Config().Heads)
		}
		k, err := l.Keep(chosen)
		if err != nil {
			return nil, err
		}
		cut = append(cut, k)
		left, number := make([]int, len(chosen)), m.Config.Kept(name)
		for i, h := range chosen {
			left[i] = number[h]
		}
		if gone := others(left, m.Config.Heads); len(gone) > 0 {
			small.Config.PrunedHeads[name] = gone
		}
	}
	small.net = newNetwork(small.Config, rand.New(rand.NewPCG(0, 0)))
	// Parameters outside the attention layers have the same shape in both networks.
	copyParams(small.net, m.net)
	for i, l := range small.Layers() {
		copyParams(l, cut[i])
	}
	return &small, nil
}

// Expand returns a copy of m with the shapes that it had before any head was removed, for
// programs that cannot read layers with fewer heads. All parameters of the removed heads
// are zero. Its output is that of m, within rounding. Training does not change the removed
// heads: where all maps of a head are zero, so are their gradients.
func (m *Translator) Expand() *Translator {
	whole := *m
	whole.Config.PrunedHeads = nil
	whole.net = newNetwork(whole.Config, rand.New(rand.NewPCG(0, 0)))
	copyParams(whole.net, m.net)
	layers := whole.Layers()
	for i, small := range m.Layers() {
		c, large := small.Config(), layers[i]
		kept := m.Config.Kept(c.Name)
		for _, maps := range [][2]*nn.Linear{{small.Q, large.Q}, {small.K, large.K}, {small.V, large.V}} {
			from, to := maps[0], maps[1]
			spreadBlocks(to.Weight, from.Weight, kept, c.HeadSize*from.Weight.Dim(1))
			spreadBlocks(to.Bias, from.Bias, kept, c.HeadSize)
		}
		spreadBlocks(large.Out.Weight, small.Out.Weight, kept, c.ValueSize)
	}
	return &whole
}

// spreadBlocks copies the blocks of from, of size elements each, to the given places of to,
// and sets the other blocks of to to zero. Where from has several rows of blocks, as the
// last map of a layer has, each row goes to the same places.
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

// checkKept returns an error unless the numbers are those of heads of m.
func (m *Translator) checkKept(kept map[string][]int) error {
	heads := map[string]int{}
	for _, l := range m.Layers() {
		heads[l.Config().Name] = l.Config().Heads
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		n, known := heads[name]
		if !known {
			return fmt.Errorf("layer %s, want %s", quote.Text(name), listed(m.Config.layers()))
		}
		if err := checkHeads(kept[name], n); err != nil {
			return fmt.Errorf("layer %s: %w", quote.Text(name), err)
		}
	}
	return nil
}

// copyParams copies those parameters that have the same name and shape in both.
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

// others returns the numbers below n that are not in an ascending list.
func others(list []int, n int) []int {
	rest := make([]int, 0, n-len(list))
	for i := range n {
		if len(list) > 0 && list[0] == i {
			list = list[1:]
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}
