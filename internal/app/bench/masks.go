package bench

import (
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
)

// A maskKind is a mask, other than Causal.
type maskKind struct {
	name, does string
	mask       func(w Work, rng *rand.Rand) attn.Mask
	// keys returns the interval of keys that a query attends to. It is nil if that is all of
	// them, or if they are not an interval and all pairs count.
	keys func(w Work, b, i int) (lo, hi int)
}

// keys returns the function of the mask, or one of all keys.
func (w Work) keys() func(w Work, b, i int) (lo, hi int) {
	if keys := findMask(w.Mask).keys; keys != nil {
		return keys
	}
	return func(w Work, _, _ int) (lo, hi int) { return 0, w.Lk }
}

var masks = []maskKind{
	{name: "none"},
	{
		name: "padding", does: "lengths from Lk down to half of it",
		mask: func(w Work, _ *rand.Rand) attn.Mask {
			lens := make([]int, w.B)
			for b := range lens {
				lens[b] = w.length(b)
			}
			return mask.Lengths(lens...)
		},
		keys: func(w Work, b, _ int) (lo, hi int) { return 0, w.length(b) },
	},
	{
		name: "bool", does: "one pair in four masked",
		mask: func(w Work, rng *rand.Rand) attn.Mask {
			seen := make([]bool, w.B*w.Lq*w.Lk)
			for i := range seen {
				seen[i] = i%w.Lk == 0 || rng.IntN(4) > 0 // every query attends to some key
			}
			return mask.Allow(seen, w.B, 1, w.Lq, w.Lk)
		},
	},
	{
		name: "window", does: "a causal sliding window of an eighth of the keys",
		mask: func(w Work, _ *rand.Rand) attn.Mask { return mask.Window(w.Lk/8, 0) },
		keys: func(w Work, _, i int) (lo, hi int) {
			at := i + w.Lk - w.Lq
			return max(0, at-w.Lk/8), max(0, at+1)
		},
	},
	{
		name: "documents", does: "four documents packed into a row, with 10, 20, 30 and 40% of its length",
		mask: func(w Work, _ *rand.Rand) attn.Mask {
			ends := make([]int, 0, 4)
			for n := range 4 {
				ends = append(ends, w.documentEnd(n))
			}
			return mask.Documents(ends)
		},
		keys: func(w Work, _, i int) (lo, hi int) {
			at := i + w.Lk - w.Lq
			for n := range 4 {
				if hi = w.documentEnd(n); at >= 0 && at < hi {
					return lo, hi
				}
				lo = hi
			}
			return 0, 0
		},
	},
	{
		name: "prefix", does: "a quarter of the keys for all queries, the rest causal",
		mask: func(w Work, _ *rand.Rand) attn.Mask { return mask.Prefix(w.Lk / 4) },
		keys: func(w Work, _, i int) (lo, hi int) { return 0, max(w.Lk/4, i+w.Lk-w.Lq+1) },
	},
}

// length returns the length of sequence b without padding, from Lk down to half of it.
func (w Work) length(b int) int { return w.Lk - b*w.Lk/(2*w.B) }

// documentEnd returns the cumulative length of packed documents 0 to n.
func (w Work) documentEnd(n int) int { return w.Lk * (n + 1) * (n + 2) / 20 }

// Masks returns the names of the masks.
func Masks() []string { return list(masks, func(m maskKind) string { return m.name }) }

// MasksHelp describes the masks.
func MasksHelp() string {
	text := masks[0].name
	for _, m := range masks[1:] {
		text += ", " + m.name + " (" + m.does + ")"
	}
	return text
}

// findMask returns the mask with a name that validate has checked.
func findMask(name string) maskKind {
	for _, m := range masks {
		if m.name == name {
			return m
		}
	}
	return masks[0]
}
