package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// postProcessor puts texts together with the special tokens of a model. All that the
// format knows come down to two templates and to spaces taken off the offsets.
type postProcessor struct {
	single, pair []slot
	trims        []trim
	hasTemplate  bool
}

// plainPair is what stands where nothing is put around texts.
var plainPair = postProcessor{
	single: []slot{{text: 0}},
	pair:   []slot{{text: 0}, {text: 1, kind: 1}},
}

// slot is a text or some special tokens, with the type that their tokens get.
type slot struct {
	text   int // 0 or 1, or none
	kind   int
	ids    []int
	tokens []string
}

// trim takes spaces off the offsets of tokens in byte-level form.
type trim struct{ prefixSpace bool }

// readPostProcessor reads a post-processor of a tokenizer.json.
func readPostProcessor(raw json.RawMessage) (postProcessor, error) {
	switch c := openComponent(raw, "post-processor"); c.kind {
	case "TemplateProcessing":
		return readTemplates(c)
	case "BertProcessing":
		var n struct {
			typed
			Sep numbered `json:"sep"`
			Cls numbered `json:"cls"`
		}
		if err := c.decode(&n, "sep", "cls"); err != nil {
			return postProcessor{}, err
		}
		cls, sep, sep1 := n.Cls.slot(0), n.Sep.slot(0), n.Sep.slot(1)
		return postProcessor{
			single:      []slot{cls, {text: 0}, sep},
			pair:        []slot{cls, {text: 0}, sep, {text: 1, kind: 1}, sep1},
			hasTemplate: true,
		}, nil
	case "RobertaProcessing":
		var n struct {
			typed
			Sep    numbered `json:"sep"`
			Cls    numbered `json:"cls"`
			Trim   bool     `json:"trim_offsets"`
			Prefix bool     `json:"add_prefix_space"`
		}
		if err := c.decode(&n, "sep", "cls", "trim_offsets", "add_prefix_space"); err != nil {
			return postProcessor{}, err
		}
		cls, sep := n.Cls.slot(0), n.Sep.slot(0)
		p := postProcessor{
			single:      []slot{cls, {text: 0}, sep},
			pair:        []slot{cls, {text: 0}, sep, sep, {text: 1}, sep},
			hasTemplate: true,
		}
		if n.Trim {
			p.trims = []trim{{n.Prefix}}
		}
		return p, nil
	case "ByteLevel":
		b, err := readByteLevel(c)
		p := plainPair
		if b.trimOffsets {
			p.trims = []trim{{b.prefixSpace}}
		}
		return p, err
	case "Sequence":
		return readPostProcessors(c)
	default:
		return postProcessor{}, c.unknown()
	}
}

// readPostProcessors joins several into one: spaces may be trimmed in any place, since
// special tokens have none, and one of them may put special tokens around texts.
func readPostProcessors(c component) (postProcessor, error) {
	var n struct {
		typed
		Parts []json.RawMessage `json:"processors"`
	}
	if err := c.decode(&n, "processors"); err != nil {
		return postProcessor{}, err
	}
	parts, err := readAll(n.Parts, readPostProcessor)
	if err != nil {
		return postProcessor{}, err
	}
	p := plainPair
	for _, part := range parts {
		if part.hasTemplate {
			if p.hasTemplate {
				return postProcessor{}, c.fail(errors.New("has two that add special tokens, want one"))
			}
			p.single, p.pair, p.hasTemplate = part.single, part.pair, true
		}
		p.trims = append(p.trims, part.trims...)
	}
	return p, nil
}

// numbered is ["[SEP]", 102].
type numbered struct {
	token string
	id    int
}

func (n *numbered) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if strictjson.Unmarshal(data, &list) != nil || len(list) != 2 ||
		strictjson.Unmarshal(list[0], &n.token) != nil || strictjson.Unmarshal(list[1], &n.id) != nil {
		return fmt.Errorf("has %s where a token and its id are wanted", quote.JSON(data))
	}
	return nil
}

func (n numbered) slot(kind int) slot {
	return slot{text: none, kind: kind, ids: []int{n.id}, tokens: []string{n.token}}
}

// specialToken is what a template may name: one token or several.
type specialToken struct {
	ID     string   `json:"id"`
	IDs    []int    `json:"ids"`
	Tokens []string `json:"tokens"`
}

func readTemplates(c component) (postProcessor, error) {
	type element struct {
		Sequence *struct {
			ID   string `json:"id"`
			Kind int    `json:"type_id"`
		}
		SpecialToken *struct {
			ID   string `json:"id"`
			Kind int    `json:"type_id"`
		}
	}
	var n struct {
		typed
		Single  []element               `json:"single"`
		Pair    []element               `json:"pair"`
		Special map[string]specialToken `json:"special_tokens"`
	}
	if err := c.decode(&n, "single", "pair", "special_tokens"); err != nil {
		return postProcessor{}, err
	}
	read := func(elements []element, texts int) (slots []slot, err error) {
		for _, e := range elements {
			switch {
			case e.Sequence != nil && e.SpecialToken == nil:
				s := slot{text: 0, kind: e.Sequence.Kind}
				if e.Sequence.ID == "B" {
					s.text = 1
				} else if e.Sequence.ID != "A" {
					return nil, fmt.Errorf("template has the text %s, want A or B", quote.Text(e.Sequence.ID))
				}
				if s.text >= texts {
					return nil, errors.New("template for one text has a second one")
				}
				slots = append(slots, s)
			case e.SpecialToken != nil && e.Sequence == nil:
				t, ok := n.Special[e.SpecialToken.ID]
				if !ok || len(t.IDs) != len(t.Tokens) {
					return nil, fmt.Errorf("template has %s, which special_tokens do not have with as many ids as tokens",
						quote.Text(e.SpecialToken.ID))
				}
				slots = append(slots, slot{none, e.SpecialToken.Kind, t.IDs, t.Tokens})
			default:
				return nil, errors.New("template, want elements that are one of Sequence and SpecialToken")
			}
		}
		return slots, nil
	}
	p := postProcessor{hasTemplate: true}
	var err error
	if p.single, err = read(n.Single, 1); err == nil {
		p.pair, err = read(n.Pair, 2)
	}
	return p, c.fail(err)
}

// added returns how many special tokens a template has.
func added(slots []slot) int {
	n := 0
	for _, s := range slots {
		n += len(s.ids)
	}
	return n
}

// uses reports whether a template has a text.
func uses(slots []slot, text int) bool {
	for _, s := range slots {
		if s.text == text {
			return true
		}
	}
	return false
}

// apply takes spaces off the offsets of a text's tokens. The first token keeps a space
// that only the tokenizer has put there.
func (t trim) apply(parts []part, text string) {
	table := classes()
	isSpace := func(r rune) bool { return r == spaceChar || table.has(r, space) }
	for i := range parts {
		leading, trailing := 0, 0
		for _, r := range parts[i].text {
			if !isSpace(r) {
				break
			}
			leading++
		}
		for rest := parts[i].text; rest != ""; trailing++ {
			r, n := utf8.DecodeLastRuneInString(rest)
			if !isSpace(r) {
				break
			}
			rest = rest[:len(rest)-n]
		}
		at := &parts[i].at
		if leading == 1 && t.prefixSpace && (i == 0 || at.Start == 0) {
			leading = 0
		}
		for ; leading > 0 && at.Start < at.End; leading-- {
			_, n := utf8.DecodeRuneInString(text[at.Start:])
			at.Start += n
		}
		end := at.End
		for ; trailing > 0 && end > 0; trailing-- {
			_, n := utf8.DecodeLastRuneInString(text[:end])
			end -= n
		}
		if trailing == 0 {
			at.End = max(end, at.Start)
		}
	}
}
