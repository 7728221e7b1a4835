package texts

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// Translation is the result for a line.
type Translation struct {
	Text string `json:"translation"`
}

// Translations returns the filter that translates lines with a translator or a pretrained encoder-decoder, by beam
// search if beam is more than 1. A blank line has a blank translation. It writes plain text, and reports unknown pieces
// of the texts to messages.
func Translations(m *models.Model, beam int, messages io.Writer) filter.Filter[Translation] {
	unknown := NewUnknown(m, messages)
	f := filter.Filter[Translation]{MaxBytes: train.LongestText}
	f.Write = filter.Text(func(t Translation) string { return t.Text })
	f.Work = func(ctx context.Context, batch []*filter.Line[Translation]) error {
		var sources [][]int
		var of []*filter.Line[Translation]
		var read []probe.Reading
		for _, l := range batch {
			if strings.TrimSpace(l.Text) == "" {
				continue // a blank line stays blank
			}
			r, err := probe.Read(m, l.Text, "")
			if err != nil { // concerns only this text
				l.Err = err
				continue
			}
			sources, of, read = append(sources, r.Tokens.IDs), append(of, l), append(read, r)
		}
		unknown.Read(read...)
		written, err := m.Write(ctx, sources, models.Generation{Beam: beam})
		for i, ids := range written {
			of[i].Value.Text = m.Decode(ids)
		}
		return err
	}
	return f
}

// WriteTranslation writes a line with two columns, the translation and the error.
func WriteTranslation(w io.Writer, l *filter.Line[Translation]) error {
	return filter.TSV(1, func(t Translation) []string { return []string{t.Text} })(w, l)
}

// Loss is the cross entropy of the target of a line.
type Loss struct {
	Nats   strictjson.Number `json:"nats"` // null if not finite
	Tokens int               `json:"tokens"`
}

// LongestPair is the maximum length in bytes of a line with two texts and further columns, which are ignored.
const LongestPair = 4 * train.LongestText

// Losses returns the filter that computes the loss of a translator on lines with a source and its target. It writes
// columns, and reports unknown pieces of the texts to messages.
func Losses(m *models.Model, messages io.Writer) filter.Filter[Loss] {
	unknown := NewUnknown(m, messages)
	f := filter.Filter[Loss]{MaxBytes: LongestPair}
	f.Work = func(ctx context.Context, batch []*filter.Line[Loss]) error {
		pairs, of := Pairs(batch)
		unknown.Pairs(pairs)
		if len(pairs) == 0 {
			return nil
		}
		probe, err := train.Probe(m, pairs)
		if err != nil {
			return err
		}
		losses, err := probe.Losses(ctx)
		if err != nil {
			return err
		}
		for i, l := range losses {
			of[i].Value = Loss{strictjson.Number(l.Loss), l.Terms}
		}
		return nil
	}
	f.Write = filter.TSV(2, func(l Loss) []string {
		return []string{strconv.FormatFloat(float64(l.Nats), 'g', -1, 64), strconv.Itoa(l.Tokens)}
	})
	return f
}

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
