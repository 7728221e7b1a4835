package models

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tokenizer"
)

// Batch is a list of token sequences. Their lengths may differ; models add the padding.
type Batch struct {
	IDs [][]int
	// Types are the token types, which distinguish the two texts of a pair. Nil means 0 for all.
	Types [][]int
	// Targets are the input of the decoder of an encoder–decoder: the start token, followed by
	// the tokens written so far. Nil means the start token alone. IDs are the sources.
	Targets [][]int

	// attended, if not nil, is the number of tokens at the beginning of each sequence that tokens attend to; those after
	// them only attend.
	attended []int
}

// BatchOf returns the tokens of encoded texts as a batch, without the tokenizer's padding.
func BatchOf(encodings ...*tokenizer.Encoding) Batch {
	var x Batch
	for _, e := range encodings {
		var ids, types []int
		for i, id := range e.IDs {
			if e.Mask[i] {
				ids, types = append(ids, id), append(types, e.TypeIDs[i])
			}
		}
		x.IDs, x.Types = append(x.IDs, ids), append(x.Types, types)
	}
	return x
}

// part returns sequences lo to hi.
func (x Batch) part(lo, hi int) Batch {
	y := Batch{IDs: x.IDs[lo:hi]}
	if x.Types != nil {
		y.Types = x.Types[lo:hi]
	}
	if x.Targets != nil {
		y.Targets = x.Targets[lo:hi]
	}
	return y
}

// pick returns the sequences with the given numbers.
func (x Batch) pick(list []int) Batch {
	y := Batch{IDs: stats.Pick(x.IDs, list)}
	if x.Types != nil {
		y.Types = stats.Pick(x.Types, list)
	}
	if x.attended != nil {
		y.attended = stats.Pick(x.attended, list)
	}
	return y
}

// longest returns the length of the longest sequence.
func (x Batch) longest() int {
	n := 0
	for _, ids := range x.IDs { // without memory, in each step of a training
		n = max(n, len(ids))
	}
	return n
}

// Lens returns the lengths of the sequences.
func (x Batch) Lens() []int {
	lens := make([]int, len(x.IDs))
	for i, ids := range x.IDs {
		lens[i] = len(ids)
	}
	return lens
}

// lens returns the lengths of the sequences, nil if they are equal.
func (x Batch) lens() []int {
	lens, longest := x.Lens(), x.longest()
	if !slices.ContainsFunc(lens, func(n int) bool { return n < longest }) {
		return nil
	}
	return lens
}

// ids returns the tokens of all sequences, each padded with 0 to the length of the longest.
func (x Batch) ids() []int { return x.flat(x.IDs) }

// types is ids for token types.
func (x Batch) types() []int {
	if x.Types == nil {
		return make([]int, len(x.IDs)*x.longest())
	}
	return x.flat(x.Types)
}

func (x Batch) flat(rows [][]int) []int {
	l := x.longest()
	all := make([]int, len(x.IDs)*l)
	for i, row := range rows {
		copy(all[i*l:(i+1)*l], row)
	}
	return all
}

// Check returns an error unless a model of these sizes can run on a batch. It reports as an
// error, for tokens from a user, everything that Hidden would panic about.
func (z Sizes) Check(x Batch) error {
	if len(x.IDs) == 0 {
		return errors.New("no sequences, want one or more")
	}
	if x.Types != nil && len(x.Types) != len(x.IDs) {
		return fmt.Errorf("token types of %d sequences, want %d", len(x.Types), len(x.IDs))
	}
	switch {
	case x.Targets == nil:
	case z.Decoder == nil:
		return errors.New("target tokens for a model that is not an encoder-decoder, want none")
	case len(x.Targets) != len(x.IDs):
		return fmt.Errorf("targets of %d sequences, want %d", len(x.Targets), len(x.IDs))
	default:
		if err := z.Decoder.Check(Batch{IDs: x.Targets}); err != nil {
			return fmt.Errorf("targets: %w", err)
		}
	}
	for i, ids := range x.IDs {
		switch {
		case len(ids) == 0:
			return errors.New("no tokens, want one or more")
		case z.Positions > 0 && len(ids) > z.Positions:
			return fmt.Errorf("%d tokens, want at most %d", len(ids), z.Positions)
		}
		if err := within("token id", ids, z.Vocabulary); err != nil {
			return err
		}
		if x.Types == nil {
			continue
		}
		if n := len(x.Types[i]); n != len(ids) {
			return fmt.Errorf("token types of %d tokens, want %d", n, len(ids))
		}
		if z.Types > 0 {
			if err := within("token type", x.Types[i], z.Types); err != nil {
				return err
			}
		}
	}
	return nil
}

func within(what string, ids []int, n int) error {
	for _, id := range ids {
		if id < 0 || id >= n {
			return fmt.Errorf("%s %d, want 0 to %d", what, id, n-1)
		}
	}
	return nil
}
