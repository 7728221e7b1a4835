package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

// An extra is an addition to attention: a position embedding, a score change, or another
// result.
type extra struct {
	name, does string
	goesWith   string // names of operations
	options    func(w Work, o *attn.Options)
	layer      func(c *attn.MultiHeadConfig)
	check      func(w Work) error // returns an error for unsuitable sizes; nil if all are suitable
}

const heads = "sdpa additive gaussian mha decode"

var extras = []extra{
	{name: "rope", does: "rotary position embedding", goesWith: "mha", check: func(w Work) error {
		if w.E%2 != 0 {
			return fmt.Errorf("e %d, want an even number with rope", w.E)
		}
		return nil
	}, layer: func(c *attn.MultiHeadConfig) {
		rope, err := position.NewRoPE(position.RoPEConfig{})
		if err != nil {
			panic(err) // cannot happen
		}
		c.Position = rope
	}},
	{name: "score-mod", does: "a custom score change that adds a bias for the distance", goesWith: heads,
		options: func(w Work, o *attn.Options) { o.Changes = append(o.Changes, newDistanceBias(w, tensor.AddTo)) }},
	{name: "score-mod-loop", does: "the same score change with a loop in Go", goesWith: heads,
		options: func(w Work, o *attn.Options) { o.Changes = append(o.Changes, newDistanceBias(w, addLoop)) }},
	{name: "log-sum-exp", does: "the log-sum-exp of each query", goesWith: heads,
		options: func(_ Work, o *attn.Options) { o.LogSumExp = true }},
	{name: "top-keys", does: "the 8 keys with the largest weights of each query", goesWith: heads,
		options: func(_ Work, o *attn.Options) { o.Observers = append(o.Observers, &observe.TopKeys{K: 8}) }},
	{name: "received", does: "the total that each key receives", goesWith: heads,
		options: func(_ Work, o *attn.Options) { o.Observers = append(o.Observers, new(observe.Received)) }},
	{name: "entropy", does: "the entropy of the weights of each query", goesWith: heads,
		options: func(_ Work, o *attn.Options) { o.Observers = append(o.Observers, new(observe.Entropy)) }},
}

// Extras returns the names of the extras.
func Extras() []string { return list(extras, func(x extra) string { return x.name }) }

// ExtrasHelp describes the extras.
func ExtrasHelp() string {
	return strings.Join(list(extras, func(x extra) string { return x.name + " (" + x.does + ")" }), ", ")
}

// extras returns the extras of the work, whose names validate has checked.
func (w Work) extras() []extra {
	return slices.DeleteFunc(slices.Clone(extras), func(x extra) bool { return !slices.Contains(w.With, x.name) })
}

// distanceBias is an example of a custom score change: a number for each distance between
// key and query.
type distanceBias struct {
	attn.NoParam
	last  int // distance of the first number from the number for distance 0
	table []float32
	add   func(scores, terms []float32)
}

func newDistanceBias(w Work, add func(scores, terms []float32)) *distanceBias {
	x := &distanceBias{last: w.Lk, table: make([]float32, 2*w.Lk), add: add}
	for d := range x.table {
		x.table[d] = -0.01 * float32(d%16)
	}
	return x
}

// Adds is true.
func (*distanceBias) Adds() bool { return true }

// Apply adds the bias.
func (x *distanceBias) Apply(at attn.Row, _, scores []float32) {
	x.add(scores, x.table[x.last+at.Key-at.Position-1:][:len(scores)])
}

func addLoop(scores, terms []float32) {
	for j, t := range terms {
		scores[j] += t
	}
}

// Back does nothing: the derivative is 1, and the bias is not learnt.
func (*distanceBias) Back(_ attn.Row, _, _, _, _, _ []float32) {}
