package importance

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// runTokens is the number of tokens of a run, padding included, that Examples reads at most if it has several texts.
const runTokens = 4096

// Examples returns the filter that finds examples in lines, and writes nothing: texts or, for an encoder-decoder, also
// pairs. report returns the result so far. tell is called with the number of bytes read. It reports unknown pieces of the
// texts to messages.
//
// Errors: *flags.Error for a criterion that does not exist or a text that is no token of the model.
func Examples(
	m *models.Model, criterion string, most int, chosen map[string][]int, tell func(bytes int), messages io.Writer,
) (f filter.Filter[struct{}], report func() reports.Examples, err error) {
	c, err := heads.ParseCriterion(criterion)
	if err == nil {
		err = wantToken(m, criterion)
	}
	if err != nil {
		return f, nil, flags.Errorf("--examples: %w", err)
	}
	found := heads.NewExamples(c, most, func(layer string, head int) bool { return chosen == nil || slices.Contains(chosen[layer], head) })
	r := reports.Examples{Criterion: criterion}
	unknown, bytes := texts.NewUnknown(m, messages), 0
	f.MaxBytes, f.Write = texts.LongestPair, func(io.Writer, *filter.Line[struct{}]) error { return nil }
	f.Work = func(ctx context.Context, batch []*filter.Line[struct{}]) error {
		var list []probe.Reading
		var numbers []int
		longest, tokens := 0, 0
		run := func() error {
			if err := probe.FindExamples(ctx, found, numbers, list...); err != nil {
				return err
			}
			r.Texts, r.Tokens = r.Texts+len(list), r.Tokens+tokens
			list, numbers, longest, tokens = nil, nil, 0, 0
			return nil
		}
		for _, l := range batch {
			bytes += len(l.Text) + 1
			if strings.TrimSpace(l.Text) == "" {
				continue
			}
			in, err := readLine(ctx, m, l.Text)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if l.Err = err; err != nil {
				continue
			}
			unknown.Read(in)
			n := len(in.Tokens.IDs)
			if in.Target != nil {
				n += len(in.Target.IDs)
			}
			if longest = max(longest, n); len(list) > 0 && longest*(len(list)+1) > runTokens {
				if err := run(); err != nil {
					return err
				}
				longest = n
			}
			list, numbers, tokens = append(list, in), append(numbers, l.Number), tokens+n
		}
		err := run()
		tell(bytes)
		return err
	}
	report = func() reports.Examples {
		r := r
		for _, l := range Layers(m.HeadLayers()) {
			layer := reports.ExampleLayer{Layer: l, Examples: make([][]reports.Example, l.Heads)}
			for h := range l.Heads {
				layer.Examples[h] = []reports.Example{}
				for _, x := range found.Of(l.Name, h) {
					layer.Examples[h] = append(layer.Examples[h], reports.Example{
						Score: x.Score, Weight: float64(x.Weights[x.Key]), Line: x.Number, Query: x.Query, Key: x.Key, Queries: x.Queries, Keys: x.Keys,
						Special: x.Texts.Special, Weights: x.Weights, Source: x.Texts.Source, Target: x.Texts.Target,
					})
				}
			}
			r.Layers = append(r.Layers, layer)
		}
		return r
	}
	return f, report, nil
}

// readLine returns a text or, for an encoder-decoder, a pair as the model reads it, or a text with the target that the
// model writes.
func readLine(ctx context.Context, m *models.Model, line string) (probe.Reading, error) {
	if m.Sizes().Decoder == nil {
		return recording.Read(m, line, "")
	}
	source, target, _ := strings.Cut(line, "\t")
	in, err := recording.Read(m, source, target)
	if err == nil && in.Target == nil {
		in, err = in.Generate(ctx, models.Generation{})
	}
	return in, err
}

// wantToken returns an error if a criterion names a text that is no token of the model.
func wantToken(m *models.Model, criterion string) error {
	text, named := strings.CutPrefix(criterion, "token:")
	t, err := m.Tokenizer()
	if !named || err != nil {
		return err
	}
	word := strings.TrimPrefix(text, " ")
	for _, token := range []string{text, "▁" + word, "Ġ" + word, "##" + word, word + "</w>", word + "@@"} {
		_, read := t.ID(token)
		if _, written := t.Target().ID(token); read || written {
			return nil
		}
	}
	e, err := m.Encode(text, "")
	if err != nil {
		return err
	}
	var tokens []string
	for i, token := range e.Tokens {
		if !e.Special[i] {
			tokens = append(tokens, quote.Text(token))
		}
	}
	if len(tokens) == 1 && tokens[0] != quote.Text(t.UnknownToken()) {
		return nil
	}
	return fmt.Errorf("%s is no token of the model, which reads it as %s", quote.Text(text), strings.Join(tokens, ", "))
}
