package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// Trained returns the tokenizer.json of a vocabulary from TrainWords or TrainBPE, in which the id of a
// token is its position in tokens. merges are pairs of ids. words is the kind of pieces that texts are
// split into: "char" for characters, "word" for words and signs, or "bpe" for parts of words, the only kind
// with merges. The first special tokens never occur in a text; the last of them is the unknown token, and the
// one with the number end is added to the end of a text.
//
// White space of any kind and length counts as one space, and is removed at the ends of a text. A word that follows a
// space begins with that space, and so does the first word of a text. A word is a run of letters and digits. Every
// other character is a separate word. An apostrophe between letters belongs to the word before it: l' homme, don' t.
// Chinese and Japanese have no spaces, so each of their characters is a word, but byte-pair encoding gets the whole
// run. Marks and joiners belong to the character before them, so emoji sequences are not split. A word has at most 64
// characters, which limits the work for hostile text; decoding joins the parts of a longer word without a space.
func Trained(words string, special, end int, tokens []string, merges [][2]int32) []byte {
	type object = map[string]any
	vocab := make(map[string]int, len(tokens))
	for id, token := range tokens {
		vocab[token] = id
	}
	model := object{"type": "WordLevel", "vocab": vocab, "unk_token": tokens[special-1]}
	if words != "word" {
		pairs := make(mergeList, len(merges))
		for i, m := range merges {
			pairs[i] = mergePair{tokens[m[0]], tokens[m[1]]}
		}
		model["type"], model["merges"] = "BPE", pairs
		model["fuse_unk"], model["byte_fallback"], model["ignore_merges"] = false, false, false
		model["dropout"], model["continuing_subword_prefix"], model["end_of_word_suffix"] = nil, nil, nil
	}
	replace := func(kind, from, to string) object {
		return object{"type": "Replace", "pattern": object{kind: from}, "content": to}
	}
	normalizers := []object{
		replace("Regex", anySpaces, " "),
		{"type": "Strip", "strip_left": true, "strip_right": true},
	}
	var pre any
	if words != "char" {
		normalizers = append(normalizers, object{"type": "Prepend", "prepend": " "})
		split := func(expr string) object {
			return object{"type": "Split", "pattern": object{"Regex": expr}, "behavior": "Isolated", "invert": false}
		}
		cuts := []object{split(wordExpression(words == "word")), split(wordParts)}
		pre = object{"type": "Sequence", "pretokenizers": cuts}
	}
	var decoders []object
	for _, token := range tokens[:special] {
		decoders = append(decoders, replace("String", token, ""))
	}
	// A space at the end, which no text has, is kept: other programs fail if there is nothing to strip it from.
	decoders = append(decoders, object{"type": "Fuse"}, replace("Regex", blanks, " "),
		object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	text := func(name string) object { return object{"Sequence": object{"id": name, "type_id": 0}} }
	stop := object{"SpecialToken": object{"id": tokens[end], "type_id": 0}}
	post := object{
		"type": "TemplateProcessing", "single": []object{text("A"), stop}, "pair": []object{text("A"), stop, text("B"), stop},
		"special_tokens": object{tokens[end]: object{"id": tokens[end], "ids": []int{end}, "tokens": []string{tokens[end]}}},
	}
	data, err := json.Marshal(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []object{},
		"model":          model,
		"post_processor": post,
		"normalizer":     object{"type": "Sequence", "normalizers": normalizers},
		"pre_tokenizer":  pre,
		"decoder":        object{"type": "Sequence", "decoders": decoders},
	})
	if err != nil {
		panic("tokenizer: " + err.Error())
	}
	return data
}

// NewTrained returns the tokenizer that Read returns for the file of Trained. A program that calls NewTrained and not
// Read or Load is smaller, because it does not contain the components of other files.
//
// Errors: another kind of words than those of Trained; no special token, or an end that is not one; a token that occurs
// twice; merges of tokens that do not exist, or that make none; merges of another kind of words than "bpe".
func NewTrained(words string, special, end int, tokens []string, merges [][2]int32) (*Tokenizer, error) {
	t, err := newTrained(words, special, end, tokens, merges)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func newTrained(words string, special, end int, tokens []string, merges [][2]int32) (*Tokenizer, error) {
	switch {
	case words != "char" && words != "word" && words != "bpe":
		return nil, fmt.Errorf("words %s, want char, word or bpe", quote.Text(words))
	case words != "bpe" && len(merges) > 0:
		return nil, fmt.Errorf("%d merges, but words %s", len(merges), words)
	case special < 1 || special > len(tokens):
		return nil, fmt.Errorf("%d of %d tokens are special, want at least one", special, len(tokens))
	case end < 0 || end >= special:
		return nil, fmt.Errorf("token %d ends a text, want a special one, 0 to %d", end, special-1)
	}
	ids := make(map[string]int, len(tokens))
	for id, token := range tokens {
		if first, twice := ids[token]; twice {
			return nil, fmt.Errorf("tokens %d and %d are both %s", first, id, quote.Text(token))
		}
		ids[token] = id
	}
	pairs := make(mergeList, len(merges))
	for i, m := range merges {
		if min(m[0], m[1]) < 0 || int(max(m[0], m[1])) >= len(tokens) {
			return nil, fmt.Errorf("merge %d joins tokens %d and %d of %d", i, m[0], m[1], len(tokens))
		}
		pairs[i] = mergePair{tokens[m[0]], tokens[m[1]]}
	}
	vocab, err := newVocabulary(ids)
	if err != nil {
		return nil, err
	}
	stop := specialToken(end, tokens[end]).slot(0)
	t, unknown := new(Tokenizer), tokens[special-1]
	t.post = postProcessor{
		single: []slot{{text: 0}, stop}, pair: []slot{{text: 0}, stop, {text: 1}, stop}, hasTemplate: true,
	}
	if words == "word" {
		t.model = &wordLevel{vocab, unknown}
	} else if t.model, err = (bpeSettings{Vocab: vocab, Merges: pairs, Unknown: &unknown}).finish(); err != nil {
		return nil, err
	}
	normal := normalizers{&replace{place{spaceRun}, " "}, &strip{Left: true, Right: true}}
	if words != "char" {
		normal = append(normal, &prepend{" "})
		t.preTokenizer = preTokenizers{&splitter{At: place{wordCutter{words == "word"}}}, &splitter{At: place{wordPart}}}
	}
	t.normalizer = normal
	var decode decoders
	for _, token := range tokens[:special] {
		decode = append(decode, &replace{place{literal(token)}, ""})
	}
	t.decoder = append(decode, fuse{}, &replace{place{blankRun}, " "}, &stripDecoder{Char: " ", Start: 1})
	t.added, err = newAddedTokens(nil, t.model, t.normalizer)
	return t, err
}

// The expressions of Trained, which have handwritten scanners.
const (
	anySpaces = `\s+`
	blanks    = ` +`
	wordParts = ` ?[^ ]{1,64}`
)

// wordExpression returns the expression that matches the same words as wordCutter.
func wordExpression(each bool) string {
	const (
		extend = `\p{M}\x{200C}\x{1F3FB}-\x{1F3FF}`
		ideo   = `\p{Han}\p{Hiragana}\p{Katakana}ー`
		letter = `[[\p{L}\p{N}_]&&[^` + ideo + extend + `]]`
		ends   = `[` + extend + `]`
	)
	run := `[` + ideo + extend + `]*`
	if each {
		run = ends + `*`
	}
	body := `(?:` + ends + `+|[[` + ideo + `]&&[^` + extend + `]]` + run +
		`|` + letter + `(?:` + letter + `|` + ends + `)*|[^\s\x{200D}` + extend + ideo + `\p{L}\p{N}_]` + ends + `*)`
	joined := `(?:\x{200D}` + body + `?)`
	return ` ?(?:` + body + joined + `*|` + joined + `+)(?:(?<=\p{L})['’](?=\p{L}))?`
}

// spaceRun matches \s+.
var spaceRun = &scanner{1, func(s string, from int) (start, end int, ok bool) {
	table := classes()
	start, end, ok = oneOf(space).next(s, from)
	return start, runOf(table, s, end, space), ok
}}

// blankRun matches the expression blanks.
var blankRun = &scanner{1, func(s string, from int) (start, end int, ok bool) {
	start = strings.IndexByte(s[from:], ' ') + from
	if start < from {
		return 0, 0, false
	}
	for end = start; end < len(s) && s[end] == ' '; end++ {
	}
	return start, end, true
}}

// wordPart matches the first characters of a word, with an optional space before them.
var wordPart = &scanner{1, func(s string, from int) (start, end int, ok bool) {
	for start = from; start < len(s); start++ {
		end = afterSpace(s, start)
		for n := 0; n < 64 && end < len(s) && s[end] != ' '; n++ {
			_, size := utf8.DecodeRuneInString(s[end:])
			end += size
		}
		if end > afterSpace(s, start) {
			return start, end, true
		}
	}
	return 0, 0, false
}}

// wordCutter splits texts whose words begin with a space.
type wordCutter struct{ each bool } // each ideograph is a word

func (w wordCutter) next(s string, from int) (start, end int, ok bool) {
	table := classes()
	for start = from; start < len(s); {
		if end := w.end(table, s, afterSpace(s, start)); end > 0 {
			return start, end, true
		}
		_, n := utf8.DecodeRuneInString(s[start:])
		start += n
	}
	return 0, 0, false
}

func (w wordCutter) in(p *piece) search { return searchIn(w, p) }

// open considers an apostrophe after a word, and the letter after that.
func (w wordCutter) open(s string, from int) (start, end int, whole bool) {
	return scanner{2 * utf8.UTFMax, w.next}.open(s, from)
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// end returns the end of the word that begins at a position; 0 if none begins there.
func (w wordCutter) end(table *classTable, s string, from int) int {
	end := w.body(table, s, from)
	for {
		r, n := utf8.DecodeRuneInString(s[end:])
		if r != zeroWidthJoiner {
			break
		}
		end = w.body(table, s, end+n)
	}
	if end == from {
		return 0
	}
	before, _ := utf8.DecodeLastRuneInString(s[from:end])
	r, n := utf8.DecodeRuneInString(s[end:])
	if (r == '\'' || r == '’') && table.has(before, letter) {
		if after, _ := utf8.DecodeRuneInString(s[end+n:]); table.has(after, letter) {
			end += n
		}
	}
	return end
}

// wordKind is the role of a character in a word.
type wordKind int

const (
	breaks wordKind = iota // white space and the joiner
	letters
	ideographs
	extends // belongs to the previous character
	others
)

func kindOf(table *classTable, r rune) wordKind {
	switch {
	case table.has(r, space) || r == zeroWidthJoiner:
		return breaks
	case table.has(r, combining) || r == zeroWidthNonJoiner || '\U0001F3FB' <= r && r <= '\U0001F3FF': // skin tones
		return extends
	case table.has(r, ideograph) || r == 'ー': // the prolonged sound mark has no script
		return ideographs
	case table.has(r, letter|number) || r == '_':
		return letters
	}
	return others
}

// body returns the end of the letters, the ideographs, the marks or the sign at a position; the position
// itself if there are none.
func (w wordCutter) body(table *classTable, s string, from int) int {
	var first wordKind
	for i, r := range s[from:] {
		k := kindOf(table, r)
		switch {
		case k == breaks:
			return from + i
		case i == 0:
			first = k
		case k != extends && (k != first || k == others || k == ideographs && w.each):
			return from + i
		}
	}
	return len(s)
}

// Words returns the words of a text as passed to the model: normalized and split, including added tokens.
//
// Errors: a text that becomes too long when it is normalized; a text of 2 GiB or more.
func (t *Tokenizer) Words(text string) ([]string, error) {
	var words []string
	err := checkLength(text)
	if err == nil {
		err = t.words(newPiece(text), nil, func(p piece) bool {
			p.plain()
			words = append(words, p.s)
			return true
		})
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return words, nil
}
