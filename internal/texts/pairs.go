package texts

import (
	"fmt"

	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// Pairs returns the pairs of a batch and their lines. Lines without a valid pair get an error.
func Pairs[V any](batch []*filter.Line[V]) (pairs []seq2seq.Pair, of []*filter.Line[V]) {
	for _, l := range batch {
		p, err := train.ParsePair(l.Text)
		if err == nil && train.TooLong(p) {
			err = fmt.Errorf("a text of more than %d bytes", train.LongestText)
		}
		if err != nil {
			l.Err = err
			continue
		}
		pairs, of = append(pairs, p), append(of, l)
	}
	return pairs, of
}
