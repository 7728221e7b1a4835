package prune

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// Options says how to prune. Keep is required. The zero value of all else scores the
// heads once by LeaveOneOut and removes all at once.
type Options[S Prunable[S]] struct {
	// Method is how heads are scored; those with the lowest scores are removed first.
	Method Method
	// Importance has the options of scoring; its Methods are ignored.
	Importance ImportanceOptions
	// Order, if not nil, is the order in which heads are removed; no scores are computed
	// then. Heads are numbered as in the subject that is given to Heads, and the heads of
	// a group, which share keys and values, must follow one another.
	Order []Head
	// Keep is how many heads to leave, in all layers together.
	Keep int
	// EmptyLayers allows a layer to lose all its heads. Otherwise each layer keeps at
	// least one head, or one group of heads that share keys and values; heads of Order
	// that must stay are skipped.
	EmptyLayers bool
	// Layers says, by name, from which layers heads may be removed. Nil means all.
	Layers func(name string) bool
	// Step is how many heads are removed at a time, rounded up to whole groups that
	// share keys and values. 0 means all at once.
	Step int
	// Rescore computes the scores again after each step, on the heads that are left.
	Rescore bool
	// Tune, if not nil, trains what is left after a step.
	Tune func(ctx context.Context, s S) (S, error)
	// Within, if not nil, is called after each step and its Tune with what is left. If it
	// returns false, that step is undone and pruning ends.
	Within func(ctx context.Context, s S) (bool, error)
	// Until, if not nil, is called before each step, the first included. If it returns
	// true, pruning ends.
	Until func(ctx context.Context, s S) (bool, error)
	// Progress, if not nil, is told after each step how many heads are left, and
	// how many there were at first.
	Progress func(left, all int)
}

// Result is the result of Heads.
type Result[S any] struct {
	// Subject is what is left.
	Subject S
	// Removed are the removed heads in the order of their removal, numbered as in the
	// subject that was given to Heads.
	Removed []Head
	// Scores are those of each round of scoring, with heads numbered as in the subject
	// of that round. If ctx has ended, the last may be incomplete.
	Scores []Scores
	// Reached reports whether the goal was reached: Until returned true, or Keep heads
	// are left, or the least number above Keep that whole groups allow.
	Reached bool
}

// Heads removes the least important heads first, in the order that Order gives. It ends
// when Keep heads are left, when Until returns true, or when Within returns false. It never
// leaves fewer than Keep heads: a group of heads too large for that is skipped, and the
// next one is tried.
//
// If ctx ends or a function fails, the result is that of the steps that were
// complete, beside the error.
//
// Errors: Keep is more than the heads there are, or fewer than must stay; Order has a head
// that the model lacks, has a head twice, or has only some heads of a group; there are no
// layers, or two of one name; Without or Tune returns a subject without the heads that
// should be left; and the errors of Importance and of the functions.
//
// Source: Michel et al., "Are Sixteen Heads Really Better than One?", 2019,
// section 4, https://arxiv.org/abs/1905.10650. Training between steps as in
// Molchanov et al., 2017, section 2.
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
	left    map[string][]int // by layer, the heads that are left, by their first numbers
	sizes   map[string]int   // of groups
	queue   [][]Head         // groups to remove next, by their first numbers
	all     int              // heads at first
}

// begin checks what was asked for.
func (p *pruning[S]) begin() error {
	layers, o := p.pruned.Subject.Layers(), &p.options
	if err := checkLayers("Heads", layers); err != nil {
		return err
	}
	p.sizes = map[string]int{}
	least := 0
	for _, l := range layers {
		c := l.Config()
		p.left[c.Name], p.sizes[c.Name] = numbersTo(c.Heads), groupSize(l)
		p.all += c.Heads
		switch {
		case !p.open(c.Name):
			least += c.Heads
		case !o.EmptyLayers:
			least += groupSize(l)
		}
	}
	if o.Keep < least || o.Keep > p.all {
		return fmt.Errorf("prune: Heads: %d heads are to be kept, want %d to %d", o.Keep, least, p.all)
	}
	if o.Step < 0 {
		return fmt.Errorf("prune: Heads: a step of %d heads", o.Step)
	}
	if o.Order == nil && int(o.Method) >= len(methodNames) {
		return fmt.Errorf("prune: Heads: no method %d", uint8(o.Method))
	}
	groups, err := groupsOf(layers, o.Order)
	p.queue = groups
	return err
}

// heads returns how many are left.
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
			return nil // no group is left in the order
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

// mayGo reports whether a group of a layer may be removed, where the layer has left heads
// and all layers together have all.
func (p *pruning[S]) mayGo(layer string, left, all int) bool {
	size := p.sizes[layer]
	return p.open(layer) && left > 0 && (left > size || p.options.EmptyLayers) && all-size >= p.options.Keep
}

// open reports whether heads of a layer may go at all.
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

// next takes the heads of a step from the queue. A group that may not go now
// never may.
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

// step removes heads, by their first numbers, unless Within forbids it.
func (p *pruning[S]) step(ctx context.Context, going []Head) (bool, error) {
	left := maps.Clone(p.left)
	now := make([]Head, len(going)) // by their numbers in the present subject
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

// wantHeads returns an error unless a subject has the heads that are left.
func wantHeads(s Subject, left map[string][]int) error {
	found := map[string]int{}
	for _, l := range s.Layers() {
		c := l.Config()
		found[c.Name] = c.Heads
	}
	for name, heads := range left {
		if found[name] != len(heads) {
			return fmt.Errorf("prune: Heads: layer %s has %d heads after a step, want %d",
				quote.Text(name), found[name], len(heads))
		}
	}
	return nil
}

// numbersTo returns the numbers from 0 up to but not including n.
func numbersTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
