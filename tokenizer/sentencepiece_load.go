package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// pieceTokenizer builds a tokenizer from a SentencePiece model, without special tokens.
func pieceTokenizer(data []byte) (*Tokenizer, error) {
	f, err := readPieceFile(data)
	if err != nil {
		return nil, err
	}
	pieces, err := newPieceModel(f)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		normalizer: &pieceNormalizer{pieceRules: f.normalizer, user: pieces.user, suffix: f.suffix},
		post:       plainPair,
		decoder:    newPieceDecoder(f, pieces),
	}
	if f.kind == pieceUnigram {
		t.model = newPieceUnigrams(pieces)
	} else {
		t.model = newPieceJoins(pieces)
	}
	return t, nil
}

// setSpecial adds tokens that are cut out of the original text before SentencePiece processes the rest.
// Never in the normalized text: transformers cuts them out before it calls the library, which does not know them.
func (t *Tokenizer) setSpecial(list []addedToken) (err error) {
	for i := range list {
		list[i].Normalized = false
	}
	if t.added, err = newAddedTokens(list, t.model, nil); err == nil {
		t.decoder.(*pieceDecoder).special = t.added.special
	}
	return err
}

// pieceClasses are functions that set up the special tokens of tokenizers with one SentencePiece model.
func pieceClasses() map[string]func(s *settings, t *Tokenizer) ([]addedToken, error) {
	return map[string]func(s *settings, t *Tokenizer) ([]addedToken, error){
		"T5Tokenizer": t5Specials, "LlamaTokenizer": llamaSpecials, "GemmaTokenizer": gemmaSpecials,
		"XLMRobertaTokenizer": fairseqClasses["XLMRobertaTokenizer"].specials,
		"CamembertTokenizer":  fairseqClasses["CamembertTokenizer"].specials,
	}
}

// readPieces returns a function that builds a tokenizer of one of the given classes from a spiece.model, a
// tokenizer.model or a sentencepiece.bpe.model.
func readPieces(classes ...string) func(from *folder, data []byte) (*Tokenizer, error) {
	return func(from *folder, data []byte) (*Tokenizer, error) {
		s, class, err := readSettings(from, classes...)
		if err == nil {
			err = s.usual()
		}
		if err != nil {
			return nil, err
		}
		t, err := pieceTokenizer(data)
		if err != nil {
			return nil, err
		}
		if p := t.normalizer.(*pieceNormalizer); s.PrefixSpace != nil && *s.PrefixSpace != p.dummyPrefix {
			return nil, fmt.Errorf("has add_dummy_prefix %t, but tokenizer_config.json add_prefix_space %t",
				p.dummyPrefix, *s.PrefixSpace)
		}
		list, err := pieceClasses()[class](s, t)
		if err != nil {
			return nil, err
		}
		if list, err = s.addedTo(from, t.model, list); err != nil {
			return nil, err
		}
		t.decoder.(*pieceDecoder).cleanup = s.Cleanup
		return t, t.setSpecial(list)
	}
}

// usual returns an error if settings of SentencePiece change tokens.
func (s *settings) usual() error {
	if len(s.Library) > 0 {
		return fmt.Errorf("sp_model_kwargs of tokenizer_config.json has %s, want none", quote.Name(sorted(s.Library)[0]))
	}
	return nil
}

// t5Specials adds </s> after each text. The tokens <extra_id_0>, … mark gaps to fill in. They follow the
// pieces in descending order.
func t5Specials(s *settings, t *Tokenizer) ([]addedToken, error) {
	list, err := s.specials(t.model, use{"eos_token", "</s>"}, use{"unk_token", "<unk>"}, use{"pad_token", "<pad>"})
	if err != nil {
		return nil, err
	}
	extra := 100
	if s.ExtraIDs != nil {
		extra = *s.ExtraIDs
	}
	if extra < 0 || extra > 10000 {
		return nil, fmt.Errorf("extra_ids of tokenizer_config.json is %d, want 0 to 10000", extra)
	}
	for i := extra - 1; i >= 0; i-- {
		// T5 has reserved the last numbers, and <extra_id_0> is the last of all.
		id := t.model.size() + extra - 1 - i
		text := "<extra_id_" + strconv.Itoa(i) + ">"
		list = append(list, addedToken{ID: id, Content: text, Special: true, LStrip: true, RStrip: true})
	}
	eos := list[0].token().slot(0)
	t.post = postProcessor{single: []slot{{text: 0}, eos}, pair: []slot{{text: 0}, eos, {text: 1}, eos}}
	return list, nil
}

// llamaSpecials adds <s> before each text.
func llamaSpecials(s *settings, t *Tokenizer) ([]addedToken, error) {
	// In transformers, a text after a special token is treated like the beginning of a text if legacy is
	// true. If it is false, no space is added before it.
	t.normalizer.(*pieceNormalizer).firstOnly = s.Legacy == nil || !*s.Legacy
	return s.bounds(t, s.AddBos == nil || *s.AddBos,
		use{"bos_token", "<s>"}, use{"eos_token", "</s>"}, use{"unk_token", "<unk>"})
}

func gemmaSpecials(s *settings, t *Tokenizer) ([]addedToken, error) {
	return s.bounds(t, s.AddBos == nil || *s.AddBos,
		use{"bos_token", "<bos>"}, use{"eos_token", "<eos>"}, use{"unk_token", "<unk>"})
}

// addedTo returns the special tokens of list together with the tokens that a directory's files add, in the
// order of their ids. The files override the list.
func (s *settings) addedTo(from *folder, m model, list []addedToken) ([]addedToken, error) {
	byID := map[int]addedToken{}
	for _, token := range list {
		byID[token.ID] = token
	}
	declared, err := s.added()
	if err != nil {
		return nil, err
	}
	for _, token := range declared {
		if old, there := byID[token.ID]; there && old.Content != token.Content {
			return nil, fmt.Errorf("added_tokens_decoder of tokenizer_config.json has %s with id %d, want %s",
				quote.Text(token.Content), token.ID, quote.Text(old.Content))
		}
		token.Normalized = false
		byID[token.ID] = token
	}
	var ids map[string]int
	path, err := from.readIfThere("added_tokens.json", &ids)
	if err != nil {
		return nil, err
	}
	for _, text := range sorted(ids) {
		if old, there := byID[ids[text]]; there && old.Content != text {
			return nil, &FormatError{path, fmt.Errorf("has %s with id %d, which is the id of %s",
				quote.Text(text), ids[text], quote.Text(old.Content))}
		} else if !there {
			byID[ids[text]] = addedToken{ID: ids[text], Content: text}
		}
	}
	if err := s.alsoSpecial(m, byID); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// added returns the tokens of added_tokens_decoder by their ids.
func (s *settings) added() (list []addedToken, err error) {
	for key, token := range s.Added {
		if token.ID, err = strconv.Atoi(key); err != nil {
			return nil, fmt.Errorf("added_tokens_decoder of tokenizer_config.json has the id %s", quote.Text(key))
		}
		list = append(list, token)
	}
	slices.SortFunc(list, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// allSpecial returns the special tokens that the settings list by their texts.
func (s *settings) allSpecial() (list []addedToken, err error) {
	add := func(name string, raw json.RawMessage) {
		token, failed := special(raw, "")
		if failed != nil {
			err = cmp.Or(err, fmt.Errorf("%s: %w", name, failed))
		}
		list = append(list, token)
	}
	for _, name := range specialNames {
		if raw := *s.token(name); !absent(raw) {
			add(name, raw)
		}
	}
	for _, raw := range s.Additional {
		add("additional_special_tokens", raw)
	}
	if absent(s.Extra) {
		return list, err
	}
	const extra = "extra_special_tokens"
	var texts []json.RawMessage
	var named map[string]json.RawMessage
	if strictjson.Lenient(s.Extra, &texts) != nil {
		if err := strictjson.Lenient(s.Extra, &named); err != nil {
			return nil, fmt.Errorf("%s of tokenizer_config.json: %w", extra, err)
		}
	}
	for _, name := range sorted(named) {
		texts = append(texts, named[name])
	}
	for _, raw := range texts {
		add(extra, raw)
	}
	return list, err
}

// alsoSpecial marks the tokens as special that the settings list only by their texts.
func (s *settings) alsoSpecial(m model, byID map[int]addedToken) error {
	ids := map[string]int{}
	for id, token := range byID {
		ids[token.Content] = id
	}
	all, err := s.allSpecial()
	if err != nil {
		return err
	}
	for _, token := range all {
		id, ok := ids[token.Content]
		if !ok {
			id, ok = m.id(token.Content)
		}
		if !ok {
			return fmt.Errorf("has no id for the special token %s, want one in added_tokens_decoder of tokenizer_config.json",
				quote.Text(token.Content))
		}
		if old, there := byID[id]; there {
			token = old
		}
		token.ID, token.Special = id, true
		byID[id] = token
	}
	return nil
}

// renumbered maps the pieces of a model to the numbers of another vocabulary.
// The file of SentencePiece has numbers for its pieces, but the programs that trained these models used a separate
// vocabulary.
type renumbered struct {
	vocabulary
	pieces  model
	number  func(piece token) int
	unknown int // id
}

func (m *renumbered) unk() int { return m.unknown }

func (m *renumbered) tokenize(out []token, p *piece) ([]token, error) {
	first := len(out)
	out, err := m.pieces.tokenize(out, p)
	for i := range out[first:] {
		tok := &out[first+i]
		tok.id = m.number(*tok)
	}
	return out, err
}

// readMarian builds a tokenizer from a source.spm, which splits texts, a vocab.json with the vocabulary,
// and a target.spm for the texts that the model writes.
func readMarian(from *folder, source []byte) (*Tokenizer, error) {
	s, _, err := readSettings(from, "", "MarianTokenizer")
	if err == nil {
		err = s.usual()
	}
	if err != nil {
		return nil, err
	}
	t, err := marianSide(from, s, "vocab.json", source)
	if err != nil {
		return nil, err
	}
	path, target, err := from.require("target.spm", "it next to source.spm")
	if err != nil {
		return nil, err
	}
	words := "vocab.json"
	if s.Separate {
		words = "target_vocab.json"
	}
	if t.target, err = marianSide(from, s, words, target); err != nil && !errors.As(err, new(*FormatError)) {
		err = &FormatError{path, err}
	}
	return t, err
}

// marianSide returns the tokenizer of the source or of the target.
func marianSide(from *folder, s *settings, words string, data []byte) (*Tokenizer, error) {
	t, err := pieceTokenizer(data)
	if err != nil {
		return nil, err
	}
	path, text, err := from.require(words, "the ids of the pieces")
	if err != nil {
		return nil, err
	}
	bad := func(err error) error { return &FormatError{path, err} }
	m := &renumbered{pieces: t.model}
	if err := m.vocabulary.read(text); err != nil {
		return nil, bad(err)
	}
	t.model = m
	list, err := s.specials(m, use{"eos_token", "</s>"}, use{"unk_token", "<unk>"}, use{"pad_token", "<pad>"})
	if err != nil {
		return nil, bad(err)
	}
	eos, unknown := list[0].token().slot(0), list[1].ID
	m.unknown = unknown
	number := func(text string) int {
		if id, ok := m.id(text); ok {
			return id
		}
		return unknown
	}
	m.number = func(piece token) int { return number(piece.text) }
	t.post = postProcessor{single: []slot{{text: 0}, eos}, pair: []slot{{text: 0}, {text: 1}, eos}}
	if list, err = s.addedTo(from, m, list); err != nil {
		return nil, bad(err)
	}
	d := t.decoder.(*pieceDecoder)
	d.marian, d.cleanup = true, s.Cleanup
	if err := t.setSpecial(list); err != nil {
		return nil, bad(err)
	}
	// A text for several languages begins with the one to write, such as >>fra<<. transformers looks this word up as
	// a whole, and it is unknown if the vocabulary lacks it.
	t.added.lead = func(text string) (id, n int) {
		if !strings.HasPrefix(text, ">>"[:min(2, len(text))]) {
			return 0, 0
		}
		end := strings.Index(text, "<<")
		if end < 0 {
			return 0, -1
		}
		return number(text[:end+2]), end + 2
	}
	return t, nil
}
