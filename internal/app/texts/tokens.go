// Package texts implements the filters that map lines of text to tokens and to vectors. It also writes
// vectors as one array.
package texts

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/tokenizer"
)

// Tokens configures the tokenization of texts and its output by the flags of attn tokenize.
type Tokens struct {
	JSON      bool    `name:"json" help:"Write a JSON object for each line: ids, tokens, offsets in bytes, type_ids, and texts (0 or 1, −1 for added tokens)." xor:"form"`
	TSV       bool    `name:"tsv" help:"Write two columns, the ids and the error." xor:"form"`
	Strict    bool    `help:"Stop at the first line that cannot be tokenized."`
	Pair      *string `help:"Second text of the pair with each line." placeholder:"TEXT"`
	NoSpecial bool    `help:"Do not add special tokens around a text, such as [CLS]."`
	AsText    bool    `name:"special-as-text" help:"Tokenize special tokens in a text, such as [SEP], as plain text."`
	MaxLength int     `help:"Truncate to this many tokens, including special tokens; 0 does not truncate." placeholder:"N" want:"at least 0"`
	Stride    *int    `help:"Also write the truncated rest, as overflow: further pieces, each of which repeats this many tokens of the piece before. Requires --json." placeholder:"N" want:"at least 0" needs:"max-length,json" excludes:"max-length=0"`
	Cut       string  `help:"Text of a pair to truncate: longest, first or second." enum:"longest,first,second" default:"longest" placeholder:"TEXT" needs:"max-length,pair"`

	Columns int `kong:"-"` // width of a terminal, to show each token above its id; 0 writes ids only
}

// options returns the options of the tokenizer.
func (k Tokens) options() tokenizer.Options {
	o := tokenizer.Options{NoSpecial: k.NoSpecial, NoPadding: true, SpecialAsText: k.AsText, MaxLength: k.MaxLength, NoTruncation: k.MaxLength == 0}
	if k.MaxLength > 0 {
		o.Strategy = map[string]tokenizer.Strategy{"longest": tokenizer.LongestFirst, "first": tokenizer.OnlyFirst, "second": tokenizer.OnlySecond}[k.Cut]
	}
	if k.Stride != nil {
		o.Overflow, o.Stride = true, *k.Stride
	}
	return o
}

// tokenized is the JSON object of a line.
type tokenized struct {
	IDs      []int       `json:"ids"`
	Tokens   []string    `json:"tokens"`
	Offsets  [][2]int    `json:"offsets"`
	TypeIDs  []int       `json:"type_ids"`
	Texts    []int       `json:"texts"`
	Overflow []tokenized `json:"overflow,omitempty"`
}

// newTokenized returns the JSON object of an encoding.
func newTokenized(e *tokenizer.Encoding) tokenized {
	line := tokenized{IDs: e.IDs, Tokens: e.Tokens, TypeIDs: e.TypeIDs, Texts: e.Texts}
	line.Offsets = make([][2]int, len(e.Offsets))
	for i, at := range e.Offsets {
		line.Offsets[i] = [2]int{at.Start, at.End}
	}
	for _, more := range e.Overflow {
		line.Overflow = append(line.Overflow, newTokenized(more))
	}
	return line
}

// encode returns the output for a text.
func (k Tokens) encode(t *tokenizer.Tokenizer, text string, o tokenizer.Options) (string, error) {
	var e *tokenizer.Encoding
	var err error
	if k.Pair != nil {
		e, err = t.EncodePair(text, *k.Pair, o)
	} else {
		e, err = t.Encode(text, o)
	}
	switch {
	case err != nil:
		return "", err
	case k.Columns > 0:
		return tokenRows(e, k.Columns), nil
	case !k.JSON:
		return spaced(e.IDs), nil
	}
	var b strings.Builder
	err = filter.JSON(&b, &filter.Line[tokenized]{Value: newTokenized(e)})
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Filter returns the filter. It keeps the output of a line and not its tokens, which need much more
// memory.
func (k Tokens) Filter(t *tokenizer.Tokenizer) filter.Filter[string] {
	o := k.options()
	f := filter.Filter[string]{Strict: k.Strict, Write: filter.Text(func(x string) string { return x })}
	f.Work = func(_ context.Context, batch []*filter.Line[string]) error {
		for _, l := range batch {
			l.Value, l.Err = k.encode(t, l.Text, o)
		}
		return nil
	}
	switch {
	case k.Columns > 0:
		f.Write = func(w io.Writer, l *filter.Line[string]) error {
			if l.Err != nil {
				return filter.JSON(w, l)
			}
			if l.Number > 1 {
				l.Value = "\n" + l.Value
			}
			_, err := fmt.Fprintln(w, l.Value)
			return err
		}
	case k.TSV:
		f.Write = filter.TSV(1, func(x string) []string { return []string{x} })
	}
	return f
}

// tokenRows returns rows of tokens, with the ids below, that fit in the columns of a terminal.
func tokenRows(e *tokenizer.Encoding, columns int) string {
	const gap = 2
	var rows []string
	var tokens, ids string
	used := 0
	for i, id := range e.IDs {
		token, number := shownToken(e.Tokens[i]), strconv.Itoa(id)
		wide, digits := cells.Width(token), len(number)
		cell := max(wide, digits)
		if used > 0 && used+cell > columns {
			rows = append(rows, strings.TrimRight(tokens, " ")+"\n"+strings.TrimRight(ids, " "))
			tokens, ids, used = "", "", 0
		}
		tokens += token + strings.Repeat(" ", cell+gap-wide)
		ids += number + strings.Repeat(" ", cell+gap-digits)
		used += cell + gap
	}
	rows = append(rows, strings.TrimRight(tokens, " ")+"\n"+strings.TrimRight(ids, " "))
	return strings.Join(rows, "\n\n")
}

// shownToken returns a token with visible spaces and with escapes for control characters.
func shownToken(token string) string {
	quoted := strconv.Quote(token)
	return strings.NewReplacer(`\"`, `"`, " ", "␣").Replace(quoted[1 : len(quoted)-1])
}

// spaced returns numbers separated by spaces.
func spaced(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, " ")
}
