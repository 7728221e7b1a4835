package lens

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// ParseMetric returns the metric of a text:
//
//	logit( Paris) - logit( Rome)     a sum of logits of tokens, which may have factors: 0.5*logit(#7)
//	class(POSITIVE)                  the logit of a class, also in sums
//	loss, probability                see Loss and Probability
//
// A token is written with its leading space, in quotes if it contains a parenthesis, or by its number, #7. Logits are those
// of the last token: set Logits.At for a model of masked words. For similarity see ParseSimilarity.
//
// Errors: a text of another form; a text that is not exactly one token of the vocabulary, or no class; those of
// Metric.Check.
func ParseMetric(m *models.Model, text string) (Metric, error) {
	metric, err := parseMetric(m, strings.TrimSpace(text))
	if err == nil {
		err = metric.Check(m, 0)
	}
	return metric, err
}

// ParseSimilarity returns the sentence of a metric similarity("a sentence"), with or without quotes, for Similarity; ok is
// false for another metric.
func ParseSimilarity(text string) (sentence string, ok bool) {
	name, sentence, rest, err := call(strings.TrimSpace(text))
	return sentence, err == nil && name == "similarity" && rest == ""
}

func parseMetric(m *models.Model, text string) (Metric, error) {
	switch text {
	case "loss":
		return Loss{}, nil
	case "probability":
		return Probability{}, nil
	}
	sum := Logits{At: All}
	for rest := text; rest != "" || len(sum.Terms) == 0; {
		factor, after, err := factorOf(rest, len(sum.Terms) == 0)
		if err != nil {
			return nil, err
		}
		name, inner, next, err := call(after)
		if err != nil {
			return nil, err
		}
		number := 0
		switch name {
		case "logit":
			number, err = tokenOf(m, inner)
		case "class":
			number, err = classOf(m, inner)
		case "similarity":
			return nil, fmt.Errorf("lens: similarity is a metric of a pipeline of sentence-transformers, and no part of a sum")
		default:
			return nil, unknownMetric(after)
		}
		if err != nil {
			return nil, err
		}
		sum.Terms, rest = append(sum.Terms, Logit{number, factor}), next
	}
	return sum, nil
}

func unknownMetric(text string) error {
	return fmt.Errorf(`lens: unknown metric %s, want logit(TOKEN) - logit(TOKEN), class(NAME), loss, probability or similarity("a sentence")`, quote.Text(text))
}

// factorOf returns the signed factor before a term, and the text after it. The first term needs no sign.
func factorOf(text string, first bool) (factor float64, rest string, err error) {
	factor, rest = 1, strings.TrimSpace(text)
	switch sign, n := 1., 1; {
	case strings.HasPrefix(rest, "−"):
		n = len("−")
		fallthrough
	case strings.HasPrefix(rest, "-"):
		sign = -1
		fallthrough
	case strings.HasPrefix(rest, "+"):
		factor, rest = sign, strings.TrimSpace(rest[n:])
	case !first:
		return 0, "", fmt.Errorf("lens: metric: %s, want + or - before a term", quote.Text(rest))
	}
	end := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
	if end == 0 {
		return factor, rest, nil
	}
	number, err := strconv.ParseFloat(rest[:end], 64)
	if err != nil {
		return 0, "", fmt.Errorf("lens: metric: factor %s, want a number", quote.Text(rest[:end]))
	}
	return factor * number, strings.TrimLeft(rest[end:], " *"), nil
}

// call splits "name(inner) rest".
func call(text string) (name, inner, rest string, err error) {
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return "", "", "", unknownMetric(text)
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil && strings.HasPrefix(rest[len(quoted):], ")") {
		inner, _ = strconv.Unquote(quoted)
		return name, inner, strings.TrimSpace(rest[len(quoted)+1:]), nil
	}
	if inner, rest, ok = strings.Cut(rest, ")"); !ok {
		return "", "", "", fmt.Errorf("lens: metric: %s, want a ) at its end", quote.Text(text))
	}
	return name, inner, strings.TrimSpace(rest), nil
}

// numbered returns the number in "#7"; ok is false for another text.
func numbered(text string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(text, "#")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

// classOf returns the number of a class.
func classOf(m *models.Model, name string) (int, error) {
	head := m.Head()
	if head == nil || head.Labels == nil {
		return 0, fmt.Errorf("lens: class(%s): the model has no classes", name)
	}
	if n, ok := numbered(name); ok {
		return n, nil
	}
	for i, label := range head.Labels {
		if label == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("lens: unknown class %s, want one of %s", quote.Text(name), quote.Texts(head.Labels))
}

// tokenOf returns the number of a token of what a model writes.
func tokenOf(m *models.Model, text string) (int, error) {
	if head := m.Head(); head != nil && head.Labels != nil {
		return 0, fmt.Errorf("lens: logit(%s): the model has logits of classes, want class(NAME), one of %s", text, quote.Texts(head.Labels))
	}
	if n, ok := numbered(text); ok {
		return n, nil
	}
	t, err := m.Tokenizer()
	if err != nil {
		return 0, fmt.Errorf("lens: logit(%s): %w; want the number of a token, logit(#7)", text, err)
	}
	t = t.Target()
	// In a vocabulary of bytes letters represent bytes, so its entries are looked up last.
	_, bytes := t.ID("Ġ")
	if id, ok := t.ID(strings.ReplaceAll(text, " ", "▁")); ok && !bytes {
		return id, nil
	}
	e, err := t.Encode(text, tokenizer.Options{NoSpecial: true, NoPadding: true, NoTruncation: true})
	if err != nil {
		return 0, fmt.Errorf("lens: logit(%s): %w", text, err)
	}
	if id, ok := t.ID(text); ok && strings.HasPrefix(text, "Ġ") {
		return id, nil
	}
	switch unknown, some := t.ID(t.UnknownToken()); {
	case len(e.IDs) == 0, len(e.IDs) == 1 && some && e.IDs[0] == unknown:
		return 0, fmt.Errorf("lens: logit(%s): the vocabulary has no such token", text)
	case len(e.IDs) > 1:
		var parts []string
		for _, id := range e.IDs {
			parts = append(parts, TokenText(t, id))
		}
		return 0, fmt.Errorf("lens: logit(%s): the text is %d tokens, %s, want one", text, len(parts), quote.Texts(parts))
	}
	return e.IDs[0], nil
}

// TokenText returns a token for people to read: its text with a leading space or, if that is not text, as it is in the
// vocabulary, or #7 without one.
func TokenText(t *tokenizer.Tokenizer, id int) string {
	if t == nil {
		return fmt.Sprint("#", id)
	}
	token, ok := t.Token(id)
	text := t.DecodeSpecial([]int{id})
	_, bytes := t.ID("Ġ")
	switch {
	case !ok:
		return fmt.Sprint("#", id)
	case bytes && text != "" && !strings.Contains(text, "\uFFFD"):
		return text
	}
	return strings.ReplaceAll(token, "▁", " ")
}
