package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// postProcessor combines texts with the special tokens of a model. Every post-processor of the format is
// equivalent to two templates and the removal of spaces from offsets.
type postProcessor struct {
	single, pair []slot
	trims        []trim
	hasTemplate  bool
}

// untype gives all tokens the type 0.
func (p *postProcessor) untype() {
	for _, slots := range []*[]slot{&p.single, &p.pair} {
		*slots = slices.Clone(*slots)
		for i := range *slots {
			(*slots)[i].kind = 0
		}
	}
}

// plainPair adds no special tokens.
var plainPair = postProcessor{
	single: []slot{{text: 0}},
	pair:   []slot{{text: 0}, {text: 1, kind: 1}},
}

// slot is a text or some special tokens, and the type of its tokens.
type slot struct {
	text    int // 0 or 1, or none
	kind    int
	special []token
}

// trim removes spaces from the offsets of tokens in byte-level form.
type trim struct{ prefixSpace bool }

// postProcessorStage reads the post-processor of a tokenizer.json.
func postProcessorStage() stage[postProcessor] {
	return stage[postProcessor]{
		name: "post-processor", parts: "processors",
		join: joinPostProcessors,
		kinds: map[string]kind[postProcessor]{
			"TemplateProcessing": from(templates.finish),
			"ByteLevel":          from(byteLevel.post),
			"BertProcessing": from(func(s struct {
				Sep token `json:"sep"`
				Cls token `json:"cls"`
			}) (postProcessor, error) {
				return bertTemplate(s.Cls, s.Sep), nil
			}),
			"RobertaProcessing": from(func(s struct {
				Sep    token `json:"sep"`
				Cls    token `json:"cls"`
				Trim   bool  `json:"trim_offsets"`
				Prefix bool  `json:"add_prefix_space"`
			}) (postProcessor, error) {
				p := robertaTemplate(s.Cls, s.Sep)
				if s.Trim {
					p.trims = []trim{{s.Prefix}}
				}
				return p, nil
			}),
		},
	}
}

// joinPostProcessors combines several post-processors. The order of trims does not matter, because special
// tokens have no spaces. At most one post-processor may add special tokens.
// The reference runs templates one after the other, each around the result of the one before. No known file does.
func joinPostProcessors(parts []postProcessor) (postProcessor, error) {
	p := plainPair
	for _, part := range parts {
		if part.hasTemplate {
			if p.hasTemplate {
				return p, errors.New("has two processors that add special tokens, want one")
			}
			p.single, p.pair, p.hasTemplate = part.single, part.pair, true
		}
		p.trims = append(p.trims, part.trims...)
	}
	return p, nil
}

func bertTemplate(cls, sep token) postProcessor {
	return postProcessor{
		single:      []slot{cls.slot(0), {text: 0}, sep.slot(0)},
		pair:        []slot{cls.slot(0), {text: 0}, sep.slot(0), {text: 1, kind: 1}, sep.slot(1)},
		hasTemplate: true,
	}
}

func robertaTemplate(cls, sep token) postProcessor {
	begin, end := cls.slot(0), sep.slot(0)
	return postProcessor{
		single:      []slot{begin, {text: 0}, end},
		pair:        []slot{begin, {text: 0}, end, end, {text: 1}, end},
		hasTemplate: true,
	}
}

// post makes ByteLevel a post-processor.
func (b byteLevel) post() (postProcessor, error) {
	p := plainPair
	if b.TrimOffsets {
		p.trims = []trim{{b.PrefixSpace}}
	}
	return p, nil
}

// read reads a special token with its id: ["[SEP]", 102].
func (t *token) read(raw json.RawMessage) error {
	var list []json.RawMessage
	if strictjson.Unmarshal(raw, &list) != nil || len(list) != 2 ||
		strictjson.Unmarshal(list[0], &t.text) != nil || strictjson.Unmarshal(list[1], &t.id) != nil {
		return fmt.Errorf("has %s, want a token and its id", quote.JSON(raw))
	}
	t.word = none
	return nil
}

// slot returns a special token as a part of a template.
func (t token) slot(kind int) slot { return slot{text: none, kind: kind, special: []token{t}} }

// templateTokens are one or several tokens to which a template refers.
type templateTokens struct {
	ID     string   `json:"id"`
	IDs    []int    `json:"ids"`
	Tokens []string `json:"tokens"`
}

// templates has the templates for one text and for two.
type templates struct {
	Single  []templatePart            `json:"single"`
	Pair    []templatePart            `json:"pair"`
	Special map[string]templateTokens `json:"special_tokens"`
}

// templatePart is a text, A or B, or a special token.
type templatePart struct {
	Sequence, SpecialToken *struct {
		ID   string `json:"id"`
		Kind int    `json:"type_id"`
	}
}

func (n templates) finish() (p postProcessor, err error) {
	p.hasTemplate = true
	if p.single, err = n.slots(n.Single, 1); err == nil {
		p.pair, err = n.slots(n.Pair, 2)
	}
	return p, err
}

// slots returns the slots of a template for one or two texts.
func (n templates) slots(parts []templatePart, texts int) (slots []slot, err error) {
	for _, e := range parts {
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
				return nil, fmt.Errorf("template has %s, want it in special_tokens, with as many ids as tokens",
					quote.Text(e.SpecialToken.ID))
			}
			s := slot{text: none, kind: e.SpecialToken.Kind}
			for i, id := range t.IDs {
				s.special = append(s.special, specialToken(id, t.Tokens[i]))
			}
			slots = append(slots, s)
		default:
			return nil, errors.New("template has an element that is not one of Sequence and SpecialToken")
		}
	}
	return slots, nil
}

// apply removes spaces from the offsets of a text's tokens. The first token keeps a space that the tokenizer added.
// The spaces are counted in the token and not in the text, as in the reference: a space that the tokenizer added is
// in the token only, and counting it would move the beginning into the word.
func (t trim) apply(tokens []token, text string) {
	trims := func(r rune) bool { return r == spaceChar || isSpace(r) }
	for i := range tokens {
		s := tokens[i].text
		leading := utf8.RuneCountInString(s[:len(s)-len(strings.TrimLeftFunc(s, trims))])
		trailing := utf8.RuneCountInString(s[len(strings.TrimRightFunc(s, trims)):])
		at := &tokens[i].at
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
