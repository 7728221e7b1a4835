package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// truncation has the settings for cutting long texts.
type truncation struct {
	Max       int      `json:"max_length"`
	Direction string   `json:"direction"` // the side from which tokens are removed: Right or Left
	Strategy  Strategy `json:"strategy"`
	Stride    int      `json:"stride"` // number of tokens that a window shares with the previous one
	overflow  bool     // return the removed tokens
}

// Strategy selects which of two texts are cut if together they are too long.
type Strategy string

// Strategies of truncation.
const (
	LongestFirst Strategy = "LongestFirst" // the longer text, down to the length of the other, then both
	OnlyFirst    Strategy = "OnlyFirst"
	OnlySecond   Strategy = "OnlySecond"
)

var strategies = []Strategy{LongestFirst, OnlyFirst, OnlySecond}

// readTruncation parses the setting of a tokenizer.json. The result is nil if there is none.
func readTruncation(raw json.RawMessage) (*truncation, error) {
	if absent(raw) {
		return nil, nil
	}
	t := truncation{Direction: "Right"}
	if err := strictjson.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("truncation: %w", err)
	}
	if !slices.Contains([]string{"Right", "Left"}, t.Direction) {
		return nil, fmt.Errorf("truncation: direction %s, want Right or Left", quote.Text(t.Direction))
	}
	if !slices.Contains(strategies, t.Strategy) {
		return nil, fmt.Errorf("truncation: strategy %s, want LongestFirst, OnlyFirst or OnlySecond",
			quote.Text(string(t.Strategy)))
	}
	if t.Max < 0 || t.Stride < 0 {
		return nil, fmt.Errorf("truncation: max_length %d and stride %d, want at least 0", t.Max, t.Stride)
	}
	return &t, nil
}

// apply cuts one or two texts to a length that leaves room for special tokens. For each text it returns
// windows of that length. The first window is the truncated text, and the others are the overflow; each of
// these begins with Stride tokens of the window before.
func (t *truncation) apply(texts [][]part, special int) ([][][]part, error) {
	windows := make([][][]part, len(texts))
	total := 0
	for i, parts := range texts {
		windows[i] = [][]part{parts}
		total += len(parts)
	}
	if t == nil {
		return windows, nil
	}
	most := t.Max - special
	if most < 0 {
		return nil, fmt.Errorf("max_length is %d, and %d special tokens are to be added", t.Max, special)
	}
	if total <= most {
		return windows, nil
	}
	if most == 0 {
		for i, parts := range texts {
			windows[i] = [][]part{nil, parts}
		}
		return windows, nil
	}
	of := 0
	switch {
	case t.Strategy == LongestFirst && len(texts) == 1:
	case t.Strategy == LongestFirst:
		for i, n := range share(len(texts[0]), len(texts[1]), most) {
			var err error
			if windows[i], err = t.cut(texts[i], n); err != nil {
				return nil, err
			}
		}
		return windows, nil
	case t.Strategy == OnlySecond && len(texts) == 1:
		return nil, errors.New("the second text is to be cut, and there is none")
	case t.Strategy == OnlySecond:
		of = 1
	}
	left := len(texts[of]) - (total - most)
	if left <= 0 {
		return nil, fmt.Errorf("text %d has %d tokens and is to lose %d", of+1, len(texts[of]), total-most)
	}
	var err error
	windows[of], err = t.cut(texts[of], left)
	return windows, err
}

// cut splits tokens into windows of at most n tokens. The first window is at the side that is kept.
func (t *truncation) cut(parts []part, n int) ([][]part, error) {
	if n >= len(parts) {
		return [][]part{parts}, nil
	}
	if n == 0 {
		return [][]part{nil, parts}, nil
	}
	if t.overflow && t.Stride >= n {
		return nil, fmt.Errorf("stride is %d, want less than the %d tokens of a window", t.Stride, n)
	}
	var windows [][]part
	for done := 0; ; done += n - t.Stride {
		end := min(done+n, len(parts))
		window := parts[done:end]
		if t.Direction == "Left" {
			window = parts[len(parts)-end : len(parts)-done]
		}
		windows = append(windows, window)
		if end == len(parts) || !t.overflow {
			return windows, nil
		}
	}
}

// share divides a length between two texts: the longer text is cut first, down to the length of the other, then both.
func share(a, b, most int) [2]int {
	short := min(a, b)
	long := max(short, most-short)
	if short+long > most {
		short = most / 2
		long = short + most%2
	}
	if a > b {
		return [2]int{long, short}
	}
	return [2]int{short, long}
}

// padding has the settings for padding encodings.
type padding struct {
	Strategy  json.RawMessage `json:"strategy"`
	Direction string          `json:"direction"`
	Multiple  *int            `json:"pad_to_multiple_of"`
	ID        int             `json:"pad_id"`
	TypeID    int             `json:"pad_type_id"`
	Token     string          `json:"pad_token"`
	fixed     int             // length
}

// mostPadding is the maximum length that a file can set.
const mostPadding = 1 << 24

// readPadding parses the setting of a tokenizer.json. The result is nil if there is none.
func readPadding(raw json.RawMessage) (*padding, error) {
	if absent(raw) {
		return nil, nil
	}
	var p padding
	if err := strictjson.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("padding: %w", err)
	}
	if !slices.Contains([]string{"Right", "Left"}, p.Direction) {
		return nil, fmt.Errorf("padding: direction %s, want Right or Left", quote.Text(p.Direction))
	}
	var fixed struct{ Fixed int }
	if string(p.Strategy) != `"BatchLongest"` {
		if strictjson.Unmarshal(p.Strategy, &fixed) != nil {
			return nil, fmt.Errorf("padding: strategy %s, want \"BatchLongest\" or {\"Fixed\": n}", quote.JSON(p.Strategy))
		}
		p.fixed = fixed.Fixed
	}
	if p.fixed < 0 || p.fixed > mostPadding || p.Multiple != nil && (*p.Multiple < 0 || *p.Multiple > mostPadding) {
		return nil, fmt.Errorf("padding: lengths have to be 0 to %d", mostPadding)
	}
	return &p, nil
}

// apply pads an encoding to the fixed length, or to the longest length.
func (p *padding) apply(e *Encoding, longest int) {
	length := p.fixed
	if string(p.Strategy) == `"BatchLongest"` {
		length = longest
	}
	if m := p.Multiple; m != nil && *m > 0 && length%*m > 0 {
		length += *m - length%*m
	}
	n := length - len(e.IDs)
	if n <= 0 {
		return
	}
	pad := newEncoding(n)
	for range n {
		pad.add(&part{p.ID, p.Token, Span{}, none}, p.TypeID, none)
		pad.Mask[len(pad.Mask)-1] = false
	}
	if p.Direction == "Left" {
		pad.append(e)
		pad.Overflow = e.Overflow
		*e = *pad
	} else {
		e.append(pad)
	}
}
