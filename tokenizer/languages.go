package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// Languages returns the codes of languages among the special tokens, sorted: eng_Latn of NLLB, __en__ of M2M100.
func (t *Tokenizer) Languages() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.added.special)), func(token string) bool { return !isLanguage(token) })
}

// isLanguage reports whether a special token is a code: 3 letters, _, 4 letters; or 2 or 3 letters between __ and __.
func isLanguage(token string) bool {
	language, script, _ := strings.Cut(token, "_")
	return language >= "a" && len(language) == 3 && len(script) == 4 ||
		len(token)/2 == 3 && strings.HasPrefix(token, "__") && strings.HasSuffix(token, "__")
}

// In returns a tokenizer for texts in a language, whose code takes the place of that in the special tokens around texts.
//
// Errors: a code that is not in Languages.
func (t *Tokenizer) In(code string) (*Tokenizer, error) {
	last := len(t.post.single) - 1
	return t.in(code, last > 0 && isCode(t.post.single[last]))
}

// in is In with the code before a text and its special tokens or, if last is true, after them.
func (t *Tokenizer) in(code string, last bool) (*Tokenizer, error) {
	codes := t.Languages()
	at, known := slices.BinarySearch(codes, code)
	if !known {
		near := codes[max(0, at-2):min(len(codes), at+3)]
		return nil, fmt.Errorf("%s is not one of the %d languages of the tokenizer %s", quote.Text(code), len(codes), near)
	}
	own, token := *t, specialToken(t.added.ids[code], code).slot(0)
	for _, slots := range []*[]slot{&own.post.single, &own.post.pair} {
		*slots = slices.DeleteFunc(slices.Clone(*slots), isCode)
		if last {
			*slots = append(*slots, token)
		} else {
			*slots = slices.Insert(*slots, 0, token)
		}
	}
	return &own, nil
}

// isCode reports whether a part of a template is the code of a language.
func isCode(s slot) bool { return len(s.special) == 1 && isLanguage(s.special[0].text) }
