package lens

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// Item is a text, or two, and the metric on them.
type Item struct {
	A, B   string
	IDs    [][]int // of A and B, in place of the texts
	Metric string  // empty for the model's best next token minus the second

	file string
	line int
}

// failed returns an error with the place of the item: one of a text, unless it says otherwise.
func (it *Item) failed(err error) error {
	if err == nil || it.file == "" && errors.As(err, new(*flags.Error)) || errors.Is(err, context.Canceled) {
		return err
	}
	return &input.Error{Name: it.file, Line: it.line, Err: err}
}

// Pairs reads pairs of texts: JSON lines {"a": …, "b": …, "metric": …}, or lines with two or three columns, whose third is
// the metric. Pairs without a metric have the common one.
//
// Errors: *input.Error.
func Pairs(path, metric string) (all []Item, err error) {
	lines, err := columnsOf(path, 3)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		it := Item{Metric: metric, file: path, line: line.Number}
		if c := line.Columns; len(c) == 1 {
			pair := struct{ A, B, Metric *string }{Metric: &it.Metric}
			if err := strictjson.Request([]byte(c[0]), &pair); err != nil || pair.A == nil || pair.B == nil || pair.Metric == nil {
				return nil, it.failed(fmt.Errorf(`want a JSON object such as {"a": "a text", "b": "another"}, or two texts with a tab between them`))
			}
			it.A, it.B, it.Metric = *pair.A, *pair.B, *pair.Metric
		} else if it.A, it.B = c[0], c[1]; len(c) == 3 {
			it.Metric = c[2]
		}
		if it.Metric == "" {
			return nil, it.failed(fmt.Errorf("has no metric, want one in the line, or --metric"))
		}
		all = append(all, it)
	}
	return all, nil
}

func columnsOf(path string, most int) ([]train.Line, error) {
	return train.ReadLines(path, train.LineFormat{Want: "texts", Least: 1, Most: most}, math.MaxInt)
}

// reading is an item as the model reads it.
type reading struct {
	a      models.Batch
	b      *models.Batch
	metric lens.Metric
	name   string // of the metric
	labels []string
}

// length returns the number of positions of a site.
func (in *reading) length(at lens.Site) int {
	kind, _ := heads.Place(at.Layer)
	if in.a.Targets != nil && (kind == heads.Decoder || kind == heads.Cross && at.Part != lens.Key && at.Part != lens.Value) {
		return len(in.a.Targets[0])
	}
	return len(in.a.IDs[0])
}

// read reads an item.
func (s *Study) read(ctx context.Context, it *Item) (*reading, error) {
	in := &reading{name: it.Metric}
	var err error
	if in.a, err = s.tokens(ctx, it, 0, nil); err != nil {
		return nil, err
	}
	if it.B != "" || len(it.IDs) > 1 {
		b, err := s.tokens(ctx, it, 1, in.a.Targets)
		if err != nil {
			return nil, err
		}
		in.b = &b
		if n, m := len(in.a.IDs[0]), len(b.IDs[0]); n != m && (slices.Contains(s.What, Patch) || slices.Contains(s.What, Attribution)) {
			return nil, fmt.Errorf("text A has %d tokens and text B %d, want equal numbers: a patch puts the values of a position into the same position (attn tokenize shows the tokens)", n, m)
		}
	}
	t, _ := s.Model.Tokenizer() // models without one read numbers
	for _, id := range in.a.IDs[0] {
		in.labels = append(in.labels, lens.TokenText(t, id))
	}
	for _, id := range slices.Concat(in.a.Targets...) {
		in.labels = append(in.labels, tokenName(s.Model, id))
	}
	return in, s.find(ctx, it, in)
}

// find sets the metric of an item.
func (s *Study) find(ctx context.Context, it *Item, in *reading) (err error) {
	if sentence, ok := lens.ParseSimilarity(it.Metric); ok && s.Embedder != nil {
		y, err := s.Embedder.Embed(ctx, sentence)
		if err != nil {
			return err
		}
		in.metric = lens.Similarity{Embedder: s.Embedder, Vector: y.Data()}
		return nil
	}
	head := s.Model.Head()
	at, per := lens.All, head != nil && head.Task.PerToken()
	if head != nil && head.Task == models.MaskedWords {
		if at, err = lens.MaskPosition(s.Model, "text A", in.a.IDs[0]); err != nil {
			return err
		}
		if in.b != nil {
			other, err := lens.MaskPosition(s.Model, "text B", in.b.IDs[0])
			if err != nil {
				return err
			}
			if other != at {
				return fmt.Errorf("text B has no %s at token %d, where text A has it", tokenName(s.Model, in.a.IDs[0][at]), at)
			}
		}
	}
	if it.Metric == "" {
		if head == nil {
			return flags.Errorf("%s has no head: want --metric 'similarity(\"a sentence\")', of a pipeline of sentence-transformers", quote.Shell(s.Model.Dir))
		}
		g := lens.Best(nil, s.Model, in.a, at)
		in.metric, in.name = g, s.nameOf(g)
		return nil
	}
	if in.metric, err = lens.ParseMetric(s.Model, in.name); err != nil {
		return usage(err)
	}
	if g, ok := in.metric.(lens.Logits); ok && per {
		g.At = at
		in.metric = g
	}
	return nil
}

// nameOf returns a metric of logits as ParseMetric reads it.
func (s *Study) nameOf(g lens.Logits) string {
	var b strings.Builder
	for i, term := range g.Terms {
		if i > 0 {
			b.WriteString(" - ")
		}
		if labels := s.Model.Head().Labels; labels != nil {
			fmt.Fprintf(&b, "class(%s)", labels[term.Token])
			continue
		}
		name := tokenName(s.Model, term.Token)
		if strings.ContainsAny(name, "()\"#\n") {
			name = fmt.Sprint("#", term.Token)
		}
		fmt.Fprintf(&b, "logit(%s)", name)
	}
	return b.String()
}

// tokenName returns a token that a model writes.
func tokenName(m *models.Model, id int) string {
	t, _ := m.Tokenizer() // models without one have numbers
	if t != nil {
		t = t.Target()
	}
	return lens.TokenText(t, id)
}

// tokens returns text A or B of an item. targets are the tokens that an encoder–decoder has written for text A.
func (s *Study) tokens(ctx context.Context, it *Item, which int, targets [][]int) (x models.Batch, err error) {
	m := s.Model
	switch {
	case it.IDs != nil:
		x.IDs = [][]int{it.IDs[which]}
	default:
		text := []string{it.A, it.B}[which]
		if err := input.Check("", 0, text, recording.MaxText); err != nil {
			return x, err
		}
		if s.Embedder != nil {
			e, _, err := s.Embedder.Encode(ctx, text)
			if err != nil {
				return x, err
			}
			x = models.BatchOf(e)
			break
		}
		if x, err = m.Tokens(text); err != nil {
			return x, err
		}
	}
	if m.Sizes().Decoder != nil {
		if x.Targets = targets; targets == nil {
			if x.Targets, err = s.targets(ctx, x.IDs, it.Metric == "loss" || it.Metric == "probability"); err != nil {
				return x, err
			}
		}
	}
	return x, m.Sizes().Check(x)
}

// targets returns what the decoder has read when the metric is computed: the start token and, for a metric of a whole
// translation, all its tokens; for others those of Study.Target without its end.
func (s *Study) targets(ctx context.Context, source [][]int, whole bool) ([][]int, error) {
	m := s.Model
	start, err := m.DecoderStart()
	if err != nil {
		return nil, err
	}
	ids, err := m.Forced()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Target != nil:
		e, err := m.EncodeTarget(*s.Target)
		if err != nil {
			return nil, err
		}
		if ids = e.IDs; !whole {
			ids = ids[:max(0, len(ids)-1)]
		}
	case whole:
		written, err := m.Write(ctx, source, models.Generation{})
		if err != nil {
			return nil, err
		}
		ends, err := m.EndTokens()
		if err != nil {
			return nil, err
		}
		ids = slices.Concat(ids, written[0], ends[:min(1, len(ends))])
	}
	return [][]int{append([]int{start}, ids...)}, nil
}
