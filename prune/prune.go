package prune

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
)

// Options selects how to prune. Keep is required. The zero values of the other fields score the heads once
// by LeaveOneOut and remove all surplus heads in one step.
type Options[S Prunable[S]] struct {
	// Method scores the heads. Heads with the lowest scores are removed first.
	Method Method
	// Importance has the options for scoring. Its Methods are ignored.
	Importance ImportanceOptions
	// Order, if not nil, is the order in which heads are removed, and no scores are computed. Heads have
	// their numbers in the subject that was passed to Heads. The heads of a group, which share keys and
	// values, must be consecutive.
	Order []Head
	// Keep is the number of heads to keep, over all layers.
	Keep int
	// EmptyLayers allows a layer to lose all its heads. Otherwise each layer keeps at
	// least one head, or one group of heads that share keys and values; heads of Order
	// that must stay are skipped.
	EmptyLayers bool
	// Layers reports whether heads of the named layer may be removed. Nil means all layers.
	Layers func(name string) bool
	// Step is the number of heads to remove at a time, rounded up to whole groups of heads that share keys
	// and values. 0 means all in one step.
	Step int
	// Rescore computes the scores of the remaining heads again after each step.
	Rescore bool
	// Tune, if not nil, trains the remaining model after each step.
	Tune func(ctx context.Context, s S) (S, error)
	// Within, if not nil, is called with the remaining model after each step and its Tune. If it returns
	// false, the step is undone and pruning ends.
	Within func(ctx context.Context, s S) (bool, error)
	// Until, if not nil, is called before each step, including the first. If it returns true, pruning ends.
	Until func(ctx context.Context, s S) (bool, error)
	// Progress, if not nil, is called after each step with the number of remaining heads and the original
	// number.
	Progress func(left, all int)
}

// Result is the result of Heads.
type Result[S any] struct {
	// Subject is the remaining model.
	Subject S
	// Removed are the removed heads in the order of their removal. They have their numbers in the subject
	// that was passed to Heads.
	Removed []Head
	// Scores are the scores of each round of scoring. Heads have their numbers in the subject of that
	// round. If ctx has ended, the last round may be incomplete.
	Scores []Scores
	// Reached reports whether the goal was reached: Until returned true, or as few heads remain as Keep and
	// whole groups allow.
	Reached bool
}

// Heads removes the least important heads first, in the order that Order gives. It ends
// when Keep heads are left, when Until returns true, or when Within returns false. It never
// leaves fewer than Keep heads: a group of heads too large for that is skipped, and the
// next one is tried.
//
// If ctx ends or a function fails, the result contains the completed steps, and the error is returned too.
//
// Errors: Keep is more than the number of heads, or fewer than must remain; Order contains a head that the
// model lacks, contains a head twice, or contains only some heads of a group; there are no layers, or two
// with the same name; Without or Tune returns a subject that does not have the expected heads; and the
// errors of Importance and of the functions.
//
// Source: Michel et al., "Are Sixteen Heads Really Better than One?", 2019, section 4,
// https://arxiv.org/abs/1905.10650. Training between steps is from Molchanov et al., 2017, section 2.
func Heads[S Prunable[S]](ctx context.Context, s S, o Options[S]) (Result[S], error) {
	p := &pruning[S]{options: o, pruned: Result[S]{Subject: s}, left: map[string][]int{}}
	if err := p.begin(); err != nil {
		return p.pruned, err
	}
	err := p.run(ctx)
	return p.pruned, err
}

// pruning is the state of a call of Heads.
type pruning[S Prunable[S]] struct {
	options Options[S]
	pruned  Result[S]
	left    map[string][]int // by layer, the original numbers of the remaining heads
	sizes   map[string]int   // size of each layer's groups
	queue   [][]Head         // groups to remove next, by original head numbers
	all     int              // original number of heads
}

// begin checks the options.
func (p *pruning[S]) begin() error {
	layers, o := p.pruned.Subject.Layers(), &p.options
	if err := checkLayers("Heads", layers); err != nil {
		return err
	}
	p.sizes = map[string]int{}
	least := 0
	for _, l := range layers {
		p.left[l.Name], p.sizes[l.Name] = stats.Numbers(l.Heads), l.Group
		p.all += l.Heads
		switch {
		case !p.open(l.Name):
			least += l.Heads
		case !o.EmptyLayers:
			least += l.Group
		}
	}
	if o.Keep < least || o.Keep > p.all {
		return fmt.Errorf("prune: Heads: Keep is %d, want %d to %d", o.Keep, least, p.all)
	}
	if o.Step < 0 {
		return fmt.Errorf("prune: Heads: Step is %d, want at least 0", o.Step)
	}
	if o.Order == nil && int(o.Method) >= len(methodNames) {
		return fmt.Errorf("prune: Heads: unknown method %d", uint8(o.Method))
	}
	groups, err := groupsOf(layers, o.Order)
	p.queue = groups
	return err
}

// heads returns the number of remaining heads.
func (p *pruning[S]) heads() int { return p.all - len(p.pruned.Removed) }

// run prunes step by step.
func (p *pruning[S]) run(ctx context.Context) error {
	measured := p.options.Order != nil
	for {
		if p.reached() {
			p.pruned.Reached = true
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.options.Until != nil {
			enough, err := p.options.Until(ctx, p.pruned.Subject)
			if err != nil {
				return err
			}
			if enough {
				p.pruned.Reached = true
				return nil
			}
		}
		if !measured {
			if err := p.measure(ctx); err != nil {
				return err
			}
			measured = !p.options.Rescore
		}
		going := p.next()
		if len(going) == 0 {
			return nil // the order has no more groups
		}
		if ok, err := p.step(ctx, going); err != nil || !ok {
			return err
		}
		if p.options.Progress != nil {
			p.options.Progress(p.heads(), p.all)
		}
	}
}

// reached reports whether no further group may be removed.
func (p *pruning[S]) reached() bool {
	for name, left := range p.left {
		if p.mayGo(name, len(left), p.heads()) {
			return false
		}
	}
	return true
}

// mayGo reports whether a group of a layer may be removed, if the layer has left heads and all layers
// together have all heads.
func (p *pruning[S]) mayGo(layer string, left, all int) bool {
	size := p.sizes[layer]
	return p.open(layer) && left > 0 && (left > size || p.options.EmptyLayers) && all-size >= p.options.Keep
}

// open reports whether the options allow removing heads from a layer.
func (p *pruning[S]) open(layer string) bool {
	return p.options.Layers == nil || p.options.Layers(layer)
}

// measure scores the heads and fills the queue.
func (p *pruning[S]) measure(ctx context.Context) error {
	o := p.options.Importance
	o.Methods = []Method{p.options.Method}
	scores, err := Importance(ctx, p.pruned.Subject, o)
	p.pruned.Scores = append(p.pruned.Scores, scores...)
	if err != nil {
		return err
	}
	layers := p.pruned.Subject.Layers()
	order := Order(layers, scores[0], p.options.EmptyLayers)
	if p.queue, err = groupsOf(layers, order); err != nil {
		return err
	}
	for i, h := range order { // the groups are slices of order
		order[i].Number = p.left[h.Layer][h.Number]
	}
	return nil
}

// next takes the heads of a step from the queue. A group that may not be removed now is dropped, because it
// will not become removable later.
func (p *pruning[S]) next() []Head {
	var going []Head
	gone := map[string]int{}
	for len(p.queue) > 0 && (p.options.Step == 0 || len(going) < p.options.Step) {
		g := p.queue[0]
		p.queue = p.queue[1:]
		if name := g[0].Layer; p.mayGo(name, len(p.left[name])-gone[name], p.heads()-len(going)) {
			going = append(going, g...)
			gone[name] += len(g)
		}
	}
	return going
}

// step removes heads, given by their original numbers, unless Within rejects the result.
func (p *pruning[S]) step(ctx context.Context, going []Head) (bool, error) {
	left := maps.Clone(p.left)
	now := make([]Head, len(going)) // by their numbers in the current subject
	for i, h := range going {
		now[i] = Head{h.Layer, slices.Index(p.left[h.Layer], h.Number)}
		left[h.Layer] = slices.DeleteFunc(slices.Clone(left[h.Layer]), func(n int) bool { return n == h.Number })
	}
	s, err := p.pruned.Subject.Without(now)
	if err != nil {
		return false, err
	}
	if p.options.Tune != nil {
		if s, err = p.options.Tune(ctx, s); err != nil {
			return false, err
		}
	}
	if err := wantHeads(s, left); err != nil {
		return false, err
	}
	if p.options.Within != nil {
		if ok, err := p.options.Within(ctx, s); err != nil || !ok {
			return false, err
		}
	}
	p.pruned.Subject, p.left = s, left
	p.pruned.Removed = append(p.pruned.Removed, going...)
	return true, nil
}

// wantHeads returns an error unless the subject has the remaining heads.
func wantHeads(s Subject, left map[string][]int) error {
	found := map[string]int{}
	for _, l := range s.Layers() {
		found[l.Name] = l.Heads
	}
	for name, heads := range left {
		if found[name] != len(heads) {
			return fmt.Errorf("prune: Heads: layer %s has %d heads after a step, want %d",
				quote.Text(name), found[name], len(heads))
		}
	}
	return nil
}
