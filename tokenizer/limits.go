package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

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

// check returns an error for settings of a tokenizer.json that are not valid.
func (t *truncation) check() error {
	t.Direction = cmp.Or(t.Direction, "Right")
	switch {
	case t.Direction != "Right" && t.Direction != "Left":
		return fmt.Errorf("direction %s, want Right or Left", quote.Text(t.Direction))
	case !slices.Contains(strategies, t.Strategy):
		return fmt.Errorf("strategy %s, want LongestFirst, OnlyFirst or OnlySecond", quote.Text(string(t.Strategy)))
	case t.Max < 0 || t.Stride < 0:
		return fmt.Errorf("max_length %d and stride %d, want at least 0", t.Max, t.Stride)
	}
	return nil
}

// room returns the number of tokens of texts that fit beside the special tokens.
func (t *truncation) room(special int) (int, error) {
	if t == nil {
		return math.MaxInt, nil
	}
	if t.Max < special {
		return 0, fmt.Errorf("max_length is %d, want room for %d special tokens", t.Max, special)
	}
	return t.Max - special, nil
}

// reading is a text that is encoded, as far as it is tokenized.
type reading struct {
	text    string
	literal []Span  // the user's ranges
	read    int     // bytes of the beginning that were tokenized
	tokens  []token // that do not depend on the rest of the text
	dropped int     // number of tokens before them, which truncation at the left removes
}

// firstBytes is the number of bytes that are read of a text for each token up to the limit. Few texts need more.
const firstBytes = 8

// readTexts tokenizes texts, of which at most a number of tokens are kept, as far as necessary. Each time it reads
// four times as much, from the beginning. A text that continues is an open piece, of which each component returns
// what is certain.
func (t *Tokenizer) readTexts(readings []reading, cut *truncation, most int, ended func() error) error {
	ranges := make([]*literals, len(readings))
	for i, s := range readings {
		var err error
		if ranges[i], err = t.literalsOf(s); err != nil {
			return err
		}
	}
	for i := 0; i < len(readings); i++ {
		s, l := &readings[i], ranges[i]
		if !cut.needs(readings, i, most) {
			continue
		}
		// From the beginning again, because no component keeps a state. All beginnings together are a third more than
		// the last one.
		next := 4 * s.read
		if s.read == 0 {
			next = firstBytes * (min(most, len(s.text)) + 32)
		}
		if next > len(s.text)/2 || cut.overflow || cut.Direction == "Left" || l != nil && len(l.markers) > 0 {
			next = len(s.text)
		}
		s.read = beginning(s.text, next)
		text := newPiece(s.text[:s.read])
		text.open, text.ended = s.read < len(s.text), ended
		var err error
		if cut.keepsLast() {
			text.keep = most + 1
		}
		s.tokens, err = t.cutText(&text, l, cut.enough(readings, most))
		s.dropped = text.dropped
		if err != nil && !(text.open && errors.Is(err, errGrowth)) {
			return err
		}
		i = -1 // what the other text needs may depend on this one
	}
	return nil
}

// keepsLast reports whether only the last tokens of a text are used.
func (t *truncation) keepsLast() bool { return t != nil && t.Direction == "Left" && !t.overflow }

// enough returns the number of tokens of a text after which truncation does not depend on further ones.
func (t *truncation) enough(readings []reading, most int) int {
	odd := len(readings) == 2 && t != nil && t.Strategy == LongestFirst && most%2 == 1 // the longer text gets one more
	if t == nil || t.overflow || t.Direction == "Left" || odd {
		return math.MaxInt
	}
	return most + 1
}

// literalsOf returns the user's ranges of a text with its markers, or nil.
func (t *Tokenizer) literalsOf(s reading) (l *literals, err error) {
	defer catchGrowth(&err)
	if err := checkLength(s.text); err != nil {
		return nil, err
	}
	return t.added.newLiterals(s.text, s.literal, t.normalizer), nil
}

// beginning returns a position of a text, n or a few bytes less, that is not within a character.
func beginning(text string, n int) int {
	for at := n; at > n-utf8.UTFMax && at >= 0 && at < len(text); at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return n
}

func checkLength(text string) error {
	if len(text) > math.MaxInt32 {
		return fmt.Errorf("text of %d bytes, want at most %d", len(text), math.MaxInt32)
	}
	return nil
}

// needs reports whether truncation depends on more tokens of a text than those that were read.
func (t *truncation) needs(readings []reading, i, most int) bool {
	s, other := &readings[i], &readings[len(readings)-1-i]
	switch {
	case s.read == len(s.text):
		return false
	case len(s.tokens) <= most:
		return true
	case len(readings) == 1 || t.Strategy != LongestFirst:
		return false
	case other.read < len(other.text): // of an odd number, the longer text gets one token more
		return most%2 == 1
	}
	return len(s.tokens) <= len(other.tokens)
}

// apply cuts one or two texts to a number of tokens. For each text it returns windows of that length. The first window is
// the truncated text, and the others are the overflow; each of these begins with Stride tokens of the window before.
func (t *truncation) apply(readings []reading, most int) ([][][]token, error) {
	windows, texts := make([][][]token, len(readings)), make([][]token, len(readings))
	total, first := 0, readings[0].dropped+len(readings[0].tokens)
	for i, r := range readings {
		texts[i] = r.tokens
		windows[i] = [][]token{r.tokens}
		total += r.dropped + len(r.tokens)
	}
	if total <= most {
		return windows, nil
	}
	if most == 0 {
		for i, parts := range texts {
			windows[i] = [][]token{nil, parts}
		}
		return windows, nil
	}
	kept := [2]int{first, total - first}
	of := 0
	switch {
	case t.Strategy == LongestFirst && len(texts) == 2:
		kept = share(kept[0], kept[1], most)
	case t.Strategy == OnlySecond && len(texts) == 1:
		return nil, errors.New("strategy OnlySecond truncates the second text, want a pair")
	case t.Strategy == OnlySecond:
		of = 1
		fallthrough
	default:
		if kept[of] -= total - most; kept[of] <= 0 {
			return nil, fmt.Errorf("strategy %s, but the other text alone has %d tokens or more", t.Strategy, most)
		}
	}
	for i := range texts {
		var err error
		if windows[i], err = t.cut(texts[i], kept[i]); err != nil {
			return nil, err
		}
	}
	return windows, nil
}

// cut splits tokens into windows of at most n tokens. The first window is at the side that is kept.
func (t *truncation) cut(parts []token, n int) ([][]token, error) {
	if n >= len(parts) {
		return [][]token{parts}, nil
	}
	if n == 0 {
		return [][]token{nil, parts}, nil
	}
	if t.overflow && t.Stride >= n {
		return nil, fmt.Errorf("stride is %d, want less than the %d tokens of a window", t.Stride, n)
	}
	var windows [][]token
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
// Of an odd number, the longer text gets the last token: see needs.
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
	Multiple  int             `json:"pad_to_multiple_of"`
	ID        int             `json:"pad_id"`
	TypeID    int             `json:"pad_type_id"`
	Token     string          `json:"pad_token"`
	fixed     int             // length
}

// mostPadding is the maximum length that a file can set.
const mostPadding = 1 << 24

// check returns an error for settings of a tokenizer.json that are not valid.
func (p *padding) check() error {
	if p.Direction != "Right" && p.Direction != "Left" {
		return fmt.Errorf("direction %s, want Right or Left", quote.Text(p.Direction))
	}
	var fixed struct{ Fixed int }
	if string(p.Strategy) != `"BatchLongest"` && strictjson.Unmarshal(p.Strategy, &fixed) != nil {
		return fmt.Errorf("strategy %s, want \"BatchLongest\" or {\"Fixed\": n}", quote.JSON(p.Strategy))
	}
	p.fixed = fixed.Fixed
	if p.fixed < 0 || p.fixed > mostPadding || p.Multiple < 0 || p.Multiple > mostPadding {
		return fmt.Errorf("want lengths from 0 to %d", mostPadding)
	}
	return nil
}

// apply pads an encoding to the fixed length, or to the longest length.
func (p *padding) apply(e *Encoding, longest int) {
	length := p.fixed
	if string(p.Strategy) == `"BatchLongest"` {
		length = longest
	}
	if m := p.Multiple; m > 0 && length%m > 0 {
		length += m - length%m
	}
	n := length - len(e.IDs)
	if n <= 0 {
		return
	}
	pad, token := newEncoding(n), specialToken(p.ID, p.Token)
	for range n {
		pad.add(&token, p.TypeID, none)
		pad.Mask[len(pad.Mask)-1] = false
	}
	if p.Direction == "Left" {
		pad.append(e)
		pad.Overflow, pad.Truncated = e.Overflow, e.Truncated
		*e = *pad
	} else {
		e.append(pad)
	}
}
