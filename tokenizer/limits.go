package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/strictjson"
)

// truncation is how texts that are too long are cut.
type truncation struct {
	Max       int    `json:"max_length"`
	Direction string `json:"direction"` // the side on which tokens go: Right or Left
	Strategy  string `json:"strategy"`
	Stride    int    `json:"stride"` // concerns what is cut off, which is not kept
}

// readTruncation reads the setting of a tokenizer.json; nil means none.
func readTruncation(raw json.RawMessage) (*truncation, error) {
	if absent(raw) {
		return nil, nil
	}
	t := truncation{Direction: "Right"}
	if err := strictjson.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("truncation: %w", err)
	}
	if !slices.Contains([]string{"Right", "Left"}, t.Direction) {
		return nil, fmt.Errorf("truncation: direction %q, want Right or Left", t.Direction)
	}
	if !slices.Contains([]string{"LongestFirst", "OnlyFirst", "OnlySecond"}, t.Strategy) {
		return nil, fmt.Errorf("truncation: strategy %q, want LongestFirst, OnlyFirst or OnlySecond", t.Strategy)
	}
	if t.Max < 0 || t.Stride < 0 {
		return nil, fmt.Errorf("truncation: max_length %d and stride %d, want at least 0", t.Max, t.Stride)
	}
	return &t, nil
}

// apply cuts one text or two to a length that leaves room for special tokens.
func (t *truncation) apply(texts [][]part, special int) error {
	if t == nil {
		return nil
	}
	most := t.Max - special
	if most < 0 {
		return fmt.Errorf("max_length is %d, and %d special tokens are to be added", t.Max, special)
	}
	total := 0
	for _, parts := range texts {
		total += len(parts)
	}
	if total <= most {
		return nil
	}
	if most == 0 {
		for i := range texts {
			texts[i] = nil
		}
		return nil
	}
	of := 0
	switch {
	case t.Strategy == "LongestFirst" && len(texts) == 1:
	case t.Strategy == "LongestFirst":
		a, b := share(len(texts[0]), len(texts[1]), most)
		texts[0], texts[1] = t.cut(texts[0], a), t.cut(texts[1], b)
		return nil
	case t.Strategy == "OnlySecond" && len(texts) == 1:
		return errors.New("the second text is to be cut, and there is none")
	case t.Strategy == "OnlySecond":
		of = 1
	}
	left := len(texts[of]) - (total - most)
	if left <= 0 {
		return fmt.Errorf("text %d has %d tokens and is to lose %d", of+1, len(texts[of]), total-most)
	}
	texts[of] = t.cut(texts[of], left)
	return nil
}

// cut keeps n tokens at most: the first ones, or the last ones if the left side goes.
func (t *truncation) cut(parts []part, n int) []part {
	if n >= len(parts) {
		return parts
	}
	if t.Direction == "Left" {
		return parts[len(parts)-n:]
	}
	return parts[:n]
}

// share divides a length between two texts: the longer one is cut first, to the length
// of the other, then both.
func share(a, b, most int) (int, int) {
	short := min(a, b)
	long := max(short, most-short)
	if short+long > most {
		short = most / 2
		long = short + most%2
	}
	if a > b {
		return long, short
	}
	return short, long
}

// padding is how encodings are made longer.
type padding struct {
	Strategy  json.RawMessage `json:"strategy"`
	Direction string          `json:"direction"`
	Multiple  *int            `json:"pad_to_multiple_of"`
	ID        int             `json:"pad_id"`
	TypeID    int             `json:"pad_type_id"`
	Token     string          `json:"pad_token"`
	fixed     int             // length
}

// mostPadding is the greatest length that a file may ask for.
const mostPadding = 1 << 24

// readPadding reads the setting of a tokenizer.json; nil means none.
func readPadding(raw json.RawMessage) (*padding, error) {
	if absent(raw) {
		return nil, nil
	}
	var p padding
	if err := strictjson.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("padding: %w", err)
	}
	if !slices.Contains([]string{"Right", "Left"}, p.Direction) {
		return nil, fmt.Errorf("padding: direction %q, want Right or Left", p.Direction)
	}
	var fixed struct{ Fixed int }
	if string(p.Strategy) != `"BatchLongest"` {
		if strictjson.Unmarshal(p.Strategy, &fixed) != nil {
			return nil, fmt.Errorf("padding: strategy %s, want \"BatchLongest\" or {\"Fixed\": n}", p.Strategy)
		}
		p.fixed = fixed.Fixed
	}
	if p.fixed < 0 || p.fixed > mostPadding || p.Multiple != nil && (*p.Multiple < 0 || *p.Multiple > mostPadding) {
		return nil, fmt.Errorf("padding: lengths have to be 0 to %d", mostPadding)
	}
	return &p, nil
}

// apply pads one encoding: to the fixed length, or as a batch of its own.
func (p *padding) apply(e *Encoding) {
	if p == nil {
		return
	}
	length := p.fixed
	if string(p.Strategy) == `"BatchLongest"` {
		length = len(e.IDs)
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
		*e = *pad
	} else {
		e.append(pad)
	}
}
