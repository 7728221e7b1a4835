package tokenizer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// Tokenizer converts text to the token ids of a model's vocabulary, and back.
//
// It is immutable after loading, and several goroutines may use it at the same time. A call runs on the
// calling goroutine only. A Stream is not shared: each goroutine makes its own.
type Tokenizer struct {
	normalizer   normalizer   // or nil
	preTokenizer preTokenizer // or nil
	model        model
	post         postProcessor
	decoder      decoder // or nil
	added        *addedTokens
	truncation   *truncation
	padding      *padding
	side         string     // of truncation, Left or Right; empty for that of the file
	target       *Tokenizer // tokenizer of the texts that the model writes; nil if it is the same
	files        []string   // files that Load has read
}

// Options select how texts are encoded. The zero value follows the file, like encode of the Python package.
type Options struct {
	// NoSpecial leaves out the special tokens that a model expects around texts, such as [CLS] and [SEP].
	NoSpecial bool
	// NoTruncation keeps all tokens, even if the file sets truncation.
	NoTruncation bool
	// NoPadding adds no padding, even if the file sets padding.
	NoPadding bool
	// MaxLength, if it is not 0, truncates encodings to this length, including special tokens. The other
	// settings of truncation are those of the file.
	//
	// A text is read until its first tokens are known, so time and memory do not depend on the length of the
	// rest, and errors in the rest are not reported. More than the limit is read where tokens depend on it:
	//   - to the end of a word, if the model is WordPiece or WordLevel, and of a run of unknown characters,
	//     of removed characters or of marks, or where an expression looks for a longer match: this takes at most
	//     some 100 bytes of memory for each byte, and tokens after the limit are not made;
	//   - all of a text with unused pieces in a BPE model of SentencePiece, in as much memory;
	//   - all of a text with truncation at the left, in some 200 bytes of memory for each of its bytes at most: the
	//     tokens before the last ones are dropped as it is read, but not within a long word with SpecialAsText;
	//   - all of a text with Overflow, whose tokens are all returned, in some 600 bytes of memory for each of its
	//     bytes at most, and after ">>" in a text for Marian;
	//   - all of the shorter text of a pair, if LongestFirst gives an odd number of tokens to two texts
	//     that are both too long: the longer text gets one more.
	MaxLength int
	// Strategy selects which text of a pair is truncated. Empty means the strategy of the file, or
	// LongestFirst if it has none.
	Strategy Strategy
	// Overflow returns the tokens that truncation removes in Encoding.Overflow.
	Overflow bool
	// Stride is the number of tokens of a text that an encoding in Overflow shares with the previous one. 0
	// means the stride of the file.
	Stride int
	// SpecialAsText treats special tokens in a text, such as [SEP], as ordinary text, so that the input of
	// a user cannot end a text or begin another. A text that has no other tokens is an error.
	SpecialAsText bool
	// Literal are ranges of bytes of the first text that come from a user, as in the template of a chat. The special
	// tokens of the text are those of the rest: they are the same whatever the ranges contain, also where a range and
	// the text beside it make a special token together, or where only the normalized text has it. As in every text, a
	// token with single_word is text beside a letter, and a token that the normalizer Prepend changes is text unless a
	// space is before it, also if the range has that letter or space. (Differs: in the Python package it is text, too, if a
	// normalized token of several spaces takes that space.) Added tokens that are not special, such as
	// spaces, are found everywhere, but for those that the rest has and that look special: words between signs, such as
	// <｜User｜>.
	Literal []Span
	// Context, if not nil, ends the call with its error, also within a long text: of 8 MB, all but a few models
	// of SentencePiece ask for it after at most 0.1 s.
	Context context.Context
}

// Read reads a tokenizer.json, the format of Hugging Face's library tokenizers.
//
// Errors: data in another format; components, settings and expressions that this package does not support.
// The error names them.
func Read(r io.Reader) (*Tokenizer, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

// parse parses a complete tokenizer.json.
func parse(data []byte) (t *Tokenizer, err error) {
	defer catchGrowth(&err)
	t, err = parseFields(data)
	if err != nil { // report invalid JSON with its position
		if err := strictjson.Unmarshal(data, new(any)); err != nil {
			return nil, err
		}
	}
	return t, err
}

func parseFields(data []byte) (*Tokenizer, error) {
	have, err := readFields(data)
	if err != nil {
		return nil, err
	}
	var file struct {
		Version       string          `json:"version,omitempty"`
		Truncation    json.RawMessage `json:"truncation,omitempty"`
		Padding       json.RawMessage `json:"padding,omitempty"`
		AddedTokens   json.RawMessage `json:"added_tokens,omitempty"`
		Normalizer    json.RawMessage `json:"normalizer,omitempty"`
		PreTokenizer  json.RawMessage `json:"pre_tokenizer,omitempty"`
		PostProcessor json.RawMessage `json:"post_processor,omitempty"`
		Decoder       json.RawMessage `json:"decoder,omitempty"`
		Model         json.RawMessage `json:"model,omitempty"`
	}
	switch err := decode(have, &file); {
	case err != nil:
		return nil, err
	case file.Version != "1.0":
		return nil, fmt.Errorf("version %s, want 1.0", quote.Text(file.Version))
	case absent(file.Model):
		return nil, errors.New("has no model")
	}
	t := &Tokenizer{post: plainPair}
	err = cmp.Or(
		readStage(normalizerStage(), file.Normalizer, &t.normalizer),
		readStage(preTokenizerStage(), file.PreTokenizer, &t.preTokenizer),
		readStage(postProcessorStage(), file.PostProcessor, &t.post),
		readStage(decoderStage(), file.Decoder, &t.decoder),
		readSetting("truncation", file.Truncation, &t.truncation, (*truncation).check),
		readSetting("padding", file.Padding, &t.padding, (*padding).check),
		readStage(modelStage(), file.Model, &t.model),
	)
	if n := growth(t.decoder); err == nil && n > mostGrowth {
		err = fmt.Errorf("decoder: a text becomes %.3g times as long, want at most %d", n, mostGrowth)
	}
	if err != nil {
		return nil, err
	}
	t.added, err = readAddedTokens(file.AddedTokens, t.model, t.normalizer)
	return t, err
}

// Encode returns the tokens of a text.
//
// If truncation is set, the text is read up to the limit: see Options.MaxLength.
//
// Errors: a text that is not UTF-8; a character without a token in a vocabulary without an unknown token; a
// length that leaves no room for special tokens; a text of 2 GiB or more.
func (t *Tokenizer) Encode(text string, o Options) (*Encoding, error) {
	return t.encode(t.post.single, o, text)
}

// EncodePair returns the tokens of two texts, such as a question and a passage, with the special tokens
// that the model expects. Offsets refer to the text given by Texts.
//
// Errors: those of Encode, and a file whose template for pairs has only one text.
func (t *Tokenizer) EncodePair(first, second string, o Options) (*Encoding, error) {
	if !slices.ContainsFunc(t.post.pair, func(s slot) bool { return s.text == 1 }) {
		return nil, errors.New("tokenizer: the template for pairs lacks the second text")
	}
	return t.encode(t.post.pair, o, first, second)
}

func (t *Tokenizer) encode(slots []slot, o Options, texts ...string) (*Encoding, error) {
	cut, err := t.truncationFor(o)
	if err != nil {
		return nil, err
	}
	special := 0
	for _, s := range slots {
		if !o.NoSpecial {
			special += len(s.special)
		}
	}
	most, err := cut.room(special)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: truncation: %w", err)
	}
	readings := make([]reading, len(texts))
	for i, text := range texts {
		if !utf8.ValidString(text) {
			return nil, errors.New("tokenizer: the text is invalid UTF-8")
		}
		readings[i] = reading{text: text}
		switch {
		case o.SpecialAsText:
			readings[i].literal = []Span{{0, len(text)}}
		case i == 0:
			readings[i].literal = o.Literal
		}
	}
	var ended func() error
	if o.Context != nil {
		ended = o.Context.Err
	}
	if err := t.readTexts(readings, cut, most, ended); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	total := 0
	for _, s := range readings {
		total += s.dropped + len(s.tokens)
	}
	windows, err := cut.apply(readings, most)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: truncation: %w", err)
	}
	for i := range windows {
		for j := range windows[i] {
			if len(t.post.trims) > 0 && o.Overflow {
				windows[i][j] = slices.Clone(windows[i][j]) // windows share tokens
			}
			for _, trim := range t.post.trims {
				trim.apply(windows[i][j], texts[i])
			}
		}
	}
	e := build(slots, windows, make([]int, len(slots)), !o.NoSpecial)
	e.Truncated = total > most
	if o.Overflow {
		all, err := overflowing(slots, windows)
		if err != nil {
			return nil, fmt.Errorf("tokenizer: truncation: %w", err)
		}
		for _, chosen := range all {
			e.Overflow = append(e.Overflow, build(slots, windows, chosen, !o.NoSpecial))
		}
	}
	if !o.NoPadding && t.padding != nil {
		longest := len(e.IDs)
		for _, x := range append(e.Overflow, e) {
			t.padding.apply(x, longest)
		}
	}
	return e, nil
}

// truncationFor returns the truncation for the options; nil if there is none.
func (t *Tokenizer) truncationFor(o Options) (*truncation, error) {
	switch {
	case o.MaxLength < 0:
		return nil, fmt.Errorf("tokenizer: MaxLength is %d, want at least 0", o.MaxLength)
	case o.Stride < 0:
		return nil, fmt.Errorf("tokenizer: Stride is %d, want at least 0", o.Stride)
	case o.MaxLength > 0 && o.NoTruncation:
		return nil, errors.New("tokenizer: MaxLength and NoTruncation exclude each other")
	case o.Strategy != "" && !slices.Contains(strategies, o.Strategy):
		return nil, fmt.Errorf("tokenizer: Strategy is %s, want one of %q", quote.Text(string(o.Strategy)), strategies)
	case o.NoTruncation || o.MaxLength == 0 && t.truncation == nil:
		return nil, nil
	}
	cut := truncation{Direction: "Right", Strategy: LongestFirst}
	if t.truncation != nil {
		cut = *t.truncation
	}
	if t.side != "" {
		cut.Direction = t.side
	}
	if o.MaxLength > 0 {
		cut.Max = o.MaxLength
	}
	if o.Strategy != "" {
		cut.Strategy = o.Strategy
	}
	if o.Stride > 0 {
		cut.Stride = o.Stride
	}
	cut.overflow = o.Overflow
	return &cut, nil
}

// words normalizes a text, splits it, and calls yield with its words until yield returns false. The ranges of l are the
// user's; l may be nil.
func (t *Tokenizer) words(text piece, l *literals, yield func(piece) bool) (err error) {
	defer catchGrowth(&err)
	size, normal := 0, 0 // of the words, and of the pieces that they are from
	word := func(p piece) bool {
		size += len(p.s)
		checkGrowth(normal, size)
		return p.s == "" || yield(p)
	}
	for _, p := range t.added.split(text, t.normalizer, l) {
		normal += len(p.s)
		if p.token != none || t.preTokenizer == nil {
			if !word(p) {
				break
			}
		} else if !t.preTokenizer.preTokenize(p, word) {
			break
		}
	}
	return nil
}

// mostReserved is the maximum number of tokens for which memory is reserved: a long text may have none.
const mostReserved = 1 << 14

// cutText returns the tokens of one text, without the special tokens around it. It returns all of them, or those up to
// the end of a word if these are at least need; of a text with keep, those that it keeps.
func (t *Tokenizer) cutText(text *piece, l *literals, need int) (tokens []token, err error) {
	tokens = make([]token, 0, min(len(text.s)/6, mostReserved, need)+1)
	word := 0
	stopped := t.words(*text, l, func(p piece) bool {
		done := len(tokens)
		if p.keep = text.keep; l != nil { // of a text with ranges of a user, all tokens of a word are checked
			p.keep = 0
		}
		if p.token != none {
			tokens = append(tokens, token{id: p.token, text: p.s, at: Span{0, len(p.s)}})
		} else if tokens, err = t.tokenizeFirst(tokens, &p, l, need); err != nil {
			return false
		}
		done = max(done-p.dropped, 0)
		for j := range tokens[done:] {
			p.poll(j + 1) // not for each word
			tok := &tokens[done+j]
			tok.at, tok.word = p.offsets(tok.at.Start, tok.at.End), word
		}
		word++
		text.dropped += p.dropped
		tokens = text.drop(tokens)
		return len(tokens) < need
	})
	if err = cmp.Or(stopped, err); err != nil {
		return nil, err
	}
	return tokens, nil
}

// tokenizeFirst appends the tokens of a word. If there are need tokens before the end of a long word, it replaces the
// word by its beginning: a run of 10 MB would take a gigabyte, and most of it for tokens that truncation removes.
func (t *Tokenizer) tokenizeFirst(out []token, p *piece, l *literals, need int) ([]token, error) {
	if l == nil { // of a text with ranges of a user, more may be cut
		p.need = need
	}
	for n := firstBytes * (min(need-len(out), len(p.s)) + 32); n < len(p.s)/2; n *= 4 {
		first, done := *p, len(out)
		first.cut(beginning(p.s, n))
		first.open = true
		if out, err := t.tokenize(out, &first, l); err != nil || len(out) >= need {
			*p = first
			return out, err
		}
		out = out[:done]
	}
	return t.tokenize(out, p, l)
}

// Unknown returns the parts of a text that Encode replaces by the unknown token, such as [UNK], each once, without the space
// around them, in the order of the text. It returns nil if all are known, and for a text that Encode refuses.
func (t *Tokenizer) Unknown(text string) (list []string) {
	e, err := t.Encode(text, Options{NoSpecial: true, NoTruncation: true, NoPadding: true})
	if err != nil {
		return nil
	}
	return t.UnknownIn(e, text)
}

// UnknownIn is Unknown for the texts of an encoding.
func (t *Tokenizer) UnknownIn(e *Encoding, texts ...string) (list []string) {
	for i, at := range e.Offsets {
		if e.IDs[i] != t.model.unk() || e.Texts[i] == none {
			continue
		}
		part := texts[e.Texts[i]][at.Start:at.End]
		if part = cmp.Or(strings.TrimSpace(part), part); !slices.Contains(list, part) {
			list = append(list, part)
		}
	}
	return list
}

// UnknownToken returns the token of unknown text, such as [UNK], or "" if there is none.
func (t *Tokenizer) UnknownToken() string {
	token, _ := t.Token(t.model.unk())
	return token
}

// Decode returns the text of tokens, without special tokens. Ids that are not in the vocabulary have no
// text, because models may have more rows than tokens.
func (t *Tokenizer) Decode(ids []int) string { return t.decode(ids, false) }

// DecodeSpecial returns the text of tokens, including special tokens.
func (t *Tokenizer) DecodeSpecial(ids []int) string { return t.decode(ids, true) }

func (t *Tokenizer) decode(ids []int, special bool) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		token, ok := t.written(id)
		if ok && (special || !t.added.special[token]) {
			tokens = append(tokens, token)
		}
	}
	if t.decoder == nil {
		return strings.Join(tokens, " ")
	}
	return strings.Join(t.decoder.decode(tokens), "")
}

// written returns a token as written in normalized text, which decoders expect.
func (t *Tokenizer) written(id int) (string, bool) {
	if _, ok := t.added.byID[id]; ok {
		return t.added.text(id), true
	}
	return t.model.token(id)
}

// WithTarget returns a tokenizer whose Target is the given one.
func (t *Tokenizer) WithTarget(target *Tokenizer) *Tokenizer {
	both := *t
	both.target = target
	return &both
}

// Target returns the tokenizer of the texts that a translator writes: in a directory of Marian the
// tokenizer of target.spm, in one of attn train that of target.json, otherwise t itself.
func (t *Tokenizer) Target() *Tokenizer {
	return cmp.Or(t.target, t)
}

// ID returns the id of a token as written in the vocabulary, such as "[MASK]".
func (t *Tokenizer) ID(token string) (id int, ok bool) {
	if id, ok := t.added.ids[token]; ok {
		return id, true
	}
	return t.model.id(token)
}

// Token returns the token with an id, as written in the vocabulary.
func (t *Tokenizer) Token(id int) (token string, ok bool) {
	if added, ok := t.added.byID[id]; ok {
		return added.Content, true
	}
	return t.model.token(id)
}

// Same reports whether two tokenizers have the same tokens with the same ids.
func (t *Tokenizer) Same(u *Tokenizer) bool {
	if t == u {
		return true
	}
	n := t.Size()
	if n != u.Size() {
		return false
	}
	for id := range n {
		mine, ok := t.Token(id)
		if its, also := u.Token(id); mine != its || ok != also {
			return false
		}
	}
	return true
}

// IsSpecial reports whether id is a special token, such as [SEP]. Decode leaves out special tokens.
func (t *Tokenizer) IsSpecial(id int) bool { return t.added.byID[id].Special }

// Size returns the number of tokens, including added tokens.
func (t *Tokenizer) Size() int {
	n := t.model.size()
	for token := range t.added.ids {
		if _, ok := t.model.id(token); !ok {
			n++
		}
	}
	return n
}
