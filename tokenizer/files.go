package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// FormatError says what is wrong with the files of a tokenizer. Any other error of
// Load is a failure to read them.
type FormatError struct {
	Path string
	Err  error
}

// Error names the file and what is wrong with it.
func (e *FormatError) Error() string {
	return "tokenizer: " + quote.Name(e.Path) + ": " + e.Err.Error()
}

// Unwrap returns what is wrong without the path.
func (e *FormatError) Unwrap() error { return e.Err }

// Load reads the tokenizer in a model's directory: its tokenizer.json, or else the
// vocab.txt of BERT, the source.spm, target.spm and vocab.json of Marian, the spiece.model
// of T5, the tokenizer.model of Llama or Gemma, the sentencepiece.bpe.model of XLM-R or
// CamemBERT, or the vocab.json and merges.txt of GPT-2 or RoBERTa, with the
// tokenizer_config.json and special_tokens_map.json that belong to them.
//
// Errors: a directory without these files, and what Read refuses.
func Load(dir string) (*Tokenizer, error) {
	from := &folder{path: dir}
	forms := []struct {
		file   string
		read   func(from *folder, data []byte) (*Tokenizer, error)
		second string // that belongs to it, empty for none
	}{
		{"tokenizer.json", func(_ *folder, data []byte) (*Tokenizer, error) { return parse(data) }, ""},
		{"vocab.txt", readBERT, ""},
		{"source.spm", readMarian, "target.spm"}, // which has a vocab.json too
		{"spiece.model", readPieces, ""},
		{"tokenizer.model", readPieces, ""},
		{"sentencepiece.bpe.model", readFairseq, ""},
		{"vocab.json", readGPT2, "merges.txt"},
	}
	for _, form := range forms {
		path, data, err := from.read(form.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		t, err := form.read(from, data)
		var inner *FormatError
		switch {
		case errors.As(err, &inner):
			return nil, inner
		case err != nil:
			return nil, &FormatError{path, err}
		}
		for _, other := range forms { // which other programs may read
			for _, name := range []string{other.file, other.second} {
				path := filepath.Join(dir, name)
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !slices.Contains(from.files, path) {
					from.files = append(from.files, path)
				}
			}
		}
		t.files = from.files
		return t, nil
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return nil, &FormatError{dir, errors.New("has no tokenizer.json, and no vocab.txt, vocab.json with merges.txt, spiece.model, tokenizer.model, sentencepiece.bpe.model, or source.spm with target.spm and vocab.json")}
}

// Files returns the paths of the files that Load has read, and of those of other forms beside
// them. It is empty for a tokenizer of Read.
func (t *Tokenizer) Files() []string { return slices.Clone(t.files) }

// folder is the directory of a tokenizer.
type folder struct {
	path  string
	files []string // that were read
}

// read reads a file, and returns its path too.
func (f *folder) read(name string) (path string, data []byte, err error) {
	path = filepath.Join(f.path, name)
	data, err = os.ReadFile(path)
	if err == nil {
		f.files = append(f.files, path)
	}
	return path, data, err
}

// settings are those of a tokenizer_config.json that old tokenizers depend on.
type settings struct {
	Class       string          `json:"tokenizer_class"`
	Lower       *bool           `json:"do_lower_case"`
	Accents     *bool           `json:"strip_accents"`
	Chinese     *bool           `json:"tokenize_chinese_chars"`
	PrefixSpace *bool           `json:"add_prefix_space"`
	Cleanup     bool            `json:"clean_up_tokenization_spaces"`
	Unknown     json.RawMessage `json:"unk_token"`
	Bos         json.RawMessage `json:"bos_token"`
	Eos         json.RawMessage `json:"eos_token"`
	Cls         json.RawMessage `json:"cls_token"`
	Sep         json.RawMessage `json:"sep_token"`
	Pad         json.RawMessage `json:"pad_token"`
	Mask        json.RawMessage `json:"mask_token"`

	// Of tokenizers that are a model of SentencePiece:
	Additional   []json.RawMessage          `json:"additional_special_tokens"`
	Extra        json.RawMessage            `json:"extra_special_tokens"`
	Added        map[string]addedToken      `json:"added_tokens_decoder"`
	AddBos       *bool                      `json:"add_bos_token"`
	AddEos       bool                       `json:"add_eos_token"`
	ExtraIDs     *int                       `json:"extra_ids"`
	Legacy       *bool                      `json:"legacy"`
	Separate     bool                       `json:"separate_vocabs"`
	SplitSpecial bool                       `json:"split_special_tokens"`
	Library      map[string]json.RawMessage `json:"sp_model_kwargs"`
}

// readSettings reads the tokenizer_config.json and the special_tokens_map.json of a
// directory, as far as they are there.
func readSettings(from *folder) (s settings, err error) {
	if _, err := from.readIfThere("tokenizer_config.json", &s); err != nil {
		return s, err
	}
	var m map[string]json.RawMessage
	path, err := from.readIfThere("special_tokens_map.json", &m)
	if err != nil {
		return s, err
	}
	for _, name := range sorted(m) {
		if err := s.setSpecial(name, m[name]); err != nil {
			return s, &FormatError{path, err}
		}
	}
	return s, nil
}

// readIfThere reads a file of JSON, which may be missing.
func (f *folder) readIfThere(name string, to any) (path string, err error) {
	path, data, err := f.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return path, err
	}
	if err := strictjson.Lenient(data, to); err != nil {
		return path, &FormatError{path, err}
	}
	return path, nil
}

// setSpecial sets what special_tokens_map.json says of special tokens, which older versions
// of the library wrote there alone.
func (s *settings) setSpecial(name string, raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	if name == "additional_special_tokens" {
		var list []json.RawMessage
		if err := strictjson.Lenient(raw, &list); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.Additional = append(s.Additional, list...)
		return nil
	}
	to := map[string]*json.RawMessage{
		"unk_token": &s.Unknown, "bos_token": &s.Bos, "eos_token": &s.Eos, "cls_token": &s.Cls,
		"sep_token": &s.Sep, "pad_token": &s.Pad, "mask_token": &s.Mask,
	}[name]
	if to == nil {
		s.Additional = append(s.Additional, raw)
		return nil
	}
	here, err := special(raw, "")
	if err != nil {
		return err
	}
	there, err := special(*to, here)
	if err != nil {
		return err
	}
	if here != there {
		return fmt.Errorf("has %s %s, but tokenizer_config.json %s", name, quote.Text(here), quote.Text(there))
	}
	*to = raw
	return nil
}

// onlyThese returns an error if the files of a directory name other special or added tokens
// than those of a list.
func (s *settings) onlyThese(from *folder, m model, list []addedToken) error {
	all, err := s.addedTo(from, m, slices.Clone(list))
	if err != nil {
		return err
	}
	for _, t := range all {
		known := func(u addedToken) bool {
			return t.ID == u.ID && t.SingleWord == u.SingleWord && t.LStrip == u.LStrip && t.RStrip == u.RStrip
		}
		if !slices.ContainsFunc(list, known) {
			return fmt.Errorf("goes with an added token %s that only a tokenizer.json can describe, want one",
				quote.Text(t.Content))
		}
	}
	return nil
}

// special returns a special token of the settings: a text, or an object with one. The
// first of several that are given counts.
func special(raw json.RawMessage, usual string) (string, error) {
	if absent(raw) {
		return usual, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var object struct{ Content string }
	if err := json.Unmarshal(raw, &object); err != nil || object.Content == "" {
		return "", fmt.Errorf("the settings have a special token %s, want a text", quote.JSON(raw))
	}
	return object.Content, nil
}

// readBERT makes the tokenizer of a vocab.txt, with a token on each line.
func readBERT(from *folder, data []byte) (*Tokenizer, error) {
	s, err := readSettings(from)
	if err != nil {
		return nil, err
	}
	if class := strings.TrimSuffix(s.Class, "Fast"); !slices.Contains([]string{"", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"}, class) {
		return nil, fmt.Errorf("belongs to a tokenizer of class %s, want BertTokenizer, DistilBertTokenizer or ElectraTokenizer, or a tokenizer.json", quote.Name(s.Class))
	}
	ids := map[string]int{}
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		token := strings.TrimRightFunc(string(line), unicode.IsSpace)
		if _, twice := ids[token]; twice {
			return nil, fmt.Errorf("line %d has %s a second time", i+1, quote.Text(token))
		}
		ids[token] = i
	}
	names := map[string]json.RawMessage{"[UNK]": s.Unknown, "[CLS]": s.Cls, "[SEP]": s.Sep, "[PAD]": s.Pad, "[MASK]": s.Mask}
	var added []addedToken
	for usual, raw := range names {
		token, err := special(raw, usual)
		if err != nil {
			return nil, err
		}
		id, ok := ids[token]
		if !ok {
			return nil, fmt.Errorf("does not have the special token %s", quote.Text(token))
		}
		names[usual] = json.RawMessage(token)
		added = append(added, addedToken{ID: id, Content: token, Special: true})
	}
	lower, err := lowerCase(s, ids, added)
	if err != nil {
		return nil, err
	}
	accents := lower
	if s.Accents != nil {
		accents = *s.Accents
	}
	v, err := readVocabulary(ids)
	if err != nil {
		return nil, err
	}
	at := func(name string, kind int) slot {
		token := string(names[name])
		return numbered{token, ids[token]}.slot(kind)
	}
	t := &Tokenizer{
		normalizer:   bertNormalizer{true, s.Chinese == nil || *s.Chinese, accents, lower},
		preTokenizer: preTokenizers{cutter{splitter{at: oneOf(space), keep: removed}}, cutter{splitter{at: oneOf(punct)}}},
		model:        newWordPiece(v, string(names["[UNK]"]), "##", 100),
		post: postProcessor{
			single: []slot{at("[CLS]", 0), {text: 0}, at("[SEP]", 0)},
			pair:   []slot{at("[CLS]", 0), {text: 0}, at("[SEP]", 0), {text: 1, kind: 1}, at("[SEP]", 1)},
		},
		decoder: wordPieceDecoder{"##", true},
	}
	if err := s.onlyThese(from, t.model, added); err != nil {
		return nil, err
	}
	t.added, err = newAddedTokens(added, t.model, t.normalizer)
	return t, err
}

// lowerCase returns whether a tokenizer writes texts in lower case. Where the settings
// do not say it, a vocabulary without capital letters does.
func lowerCase(s settings, ids map[string]int, added []addedToken) (bool, error) {
	if s.Lower != nil {
		return *s.Lower, nil
	}
	specials := map[string]bool{}
	for _, t := range added {
		specials[t.Content] = true
	}
	for _, token := range sorted(ids) {
		if strings.ContainsFunc(token, unicode.IsUpper) && !specials[token] && !strings.HasPrefix(token, "[unused") {
			return false, fmt.Errorf("has capital letters, as in %s, and tokenizer_config.json does not say do_lower_case",
				quote.Text(token))
		}
	}
	return true, nil
}

// readGPT2 makes the tokenizer of a vocab.json and a merges.txt.
func readGPT2(from *folder, data []byte) (*Tokenizer, error) {
	path, lines, err := from.read("merges.txt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("has no merges.txt or tokenizer.json beside it")
	}
	if err != nil {
		return nil, err
	}
	s, err := readSettings(from)
	if err != nil {
		return nil, err
	}
	class := strings.TrimSuffix(s.Class, "Fast")
	if class != "GPT2Tokenizer" && class != "RobertaTokenizer" {
		return nil, fmt.Errorf("needs a tokenizer_config.json with tokenizer_class GPT2Tokenizer or RobertaTokenizer, got %s",
			quote.Text(s.Class))
	}
	m := new(bpe)
	ids, err := readIDs(data)
	if err != nil {
		return nil, err
	}
	if m.vocabulary, err = readVocabulary(ids); err != nil {
		return nil, err
	}
	var rows []string
	for row := range strings.Lines(string(lines)) {
		if row = strings.TrimRight(row, "\r\n"); row != "" {
			rows = append(rows, row)
		}
	}
	merges, err := splitMerges(rows)
	if err == nil {
		err = m.setMerges(merges)
	}
	if err != nil {
		return nil, &FormatError{path, err}
	}
	m.setChars()
	t := &Tokenizer{preTokenizer: byteLevel{s.PrefixSpace != nil && *s.PrefixSpace, true, true}, model: m, post: plainPair, decoder: byteLevel{}}
	var added []addedToken
	if class == "GPT2Tokenizer" {
		if id, ok := m.id("<|endoftext|>"); ok {
			added = append(added, addedToken{ID: id, Content: "<|endoftext|>", Normalized: true, Special: true})
		}
	} else {
		if added, err = robertaSpecials(s, m, t); err != nil {
			return nil, err
		}
	}
	if err := s.onlyThese(from, t.model, added); err != nil {
		return nil, err
	}
	t.added, err = newAddedTokens(added, t.model, nil)
	return t, err
}

// robertaSpecials puts <s> and </s> around texts and returns the special tokens.
func robertaSpecials(s settings, m *bpe, t *Tokenizer) ([]addedToken, error) {
	var added []addedToken
	var cls, sep numbered
	for _, x := range []struct {
		raw   json.RawMessage
		usual string
		to    *numbered
	}{{s.Cls, "<s>", &cls}, {s.Sep, "</s>", &sep}, {s.Unknown, "<unk>", nil}, {s.Pad, "<pad>", nil}, {s.Mask, "<mask>", nil}} {
		token, err := special(x.raw, x.usual)
		if err != nil {
			return nil, err
		}
		id, ok := m.id(token)
		if !ok {
			return nil, fmt.Errorf("does not have the special token %s", quote.Text(token))
		}
		if x.to != nil {
			*x.to = numbered{token, id}
		}
		added = append(added, addedToken{ID: id, Content: token, Special: true, Normalized: true, LStrip: x.usual == "<mask>"})
	}
	slices.SortFunc(added, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	a, b := cls.slot(0), sep.slot(0)
	t.post = postProcessor{
		single: []slot{a, {text: 0}, b},
		pair:   []slot{a, {text: 0}, b, b, {text: 1}, b},
		trims:  []trim{{s.PrefixSpace != nil && *s.PrefixSpace}},
	}
	return added, nil
}
