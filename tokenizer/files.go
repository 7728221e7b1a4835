package tokenizer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// FormatError is an error in the files of a tokenizer. Any other error of Load means that a file could not be read.
type FormatError struct {
	Path string
	Err  error
}

// Error returns the path of the file and the error.
func (e *FormatError) Error() string {
	return "tokenizer: " + quote.Name(e.Path) + ": " + e.Err.Error()
}

// Unwrap returns the error without the path.
func (e *FormatError) Unwrap() error { return e.Err }

// Load reads the tokenizer in a model's directory. It uses the first of these files that exists: tokenizer.json, and
// target.json in the same format for the texts that the model writes, if that exists;
// vocab.txt of BERT; source.spm, target.spm and vocab.json of Marian; spiece.model of T5; tokenizer.model of Llama or
// Gemma; sentencepiece.bpe.model of XLM-R or CamemBERT; vocab.json and merges.txt of GPT-2 or RoBERTa. With all files
// except tokenizer.json it also reads tokenizer_config.json and special_tokens_map.json.
//
// Errors: a directory without these files, and the errors of Read.
func Load(dir string) (*Tokenizer, error) {
	from := &folder{path: dir}
	forms := []struct {
		file   string
		read   func(from *folder, data []byte) (*Tokenizer, error)
		second string // another required file; empty for none
	}{
		{"tokenizer.json", readBoth, ""},
		{"vocab.txt", readBERT, ""},
		{"source.spm", readMarian, "target.spm"}, // before vocab.json, which Marian has too
		{"spiece.model", readPieces("T5Tokenizer", "LlamaTokenizer", "GemmaTokenizer"), ""},
		{"tokenizer.model", readPieces("T5Tokenizer", "LlamaTokenizer", "GemmaTokenizer"), ""},
		{"sentencepiece.bpe.model", readPieces("CamembertTokenizer", "XLMRobertaTokenizer"), ""},
		{"vocab.json", readGPT2, "merges.txt"},
	}
	for _, form := range forms {
		path, data, err := from.read(form.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if why := modeldir.Explain(dir, form.file); err != nil && why != nil {
			return nil, &FormatError{dir, why}
		} else if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		t, err := form.read(from, data)
		var inner *FormatError
		if errors.As(err, &inner) {
			return nil, inner
		} else if err != nil {
			return nil, &FormatError{path, err}
		}
		for _, other := range forms { // other programs may read these
			for _, name := range []string{other.file, other.second} {
				path := filepath.Join(dir, name)
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !slices.Contains(from.files, path) {
					from.files = append(from.files, path)
				}
			}
		}
		t.files = from.files
		t.follow(from.configured)
		return t, nil
	}
	files := []string{"config.json"} // of a model without a tokenizer
	for _, form := range forms {
		files = append(files, form.file)
	}
	if why := modeldir.Explain(dir, files...); why != nil {
		return nil, &FormatError{dir, why}
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return nil, &FormatError{dir, errors.New("has no tokenizer.json, and no vocab.txt, vocab.json with merges.txt, " +
		"spiece.model, tokenizer.model, sentencepiece.bpe.model, or source.spm with target.spm and vocab.json")}
}

// Files returns the paths of the files that Load has read, and of files in other formats in the same
// directory. It is empty for a tokenizer from Read.
func (t *Tokenizer) Files() []string { return slices.Clone(t.files) }

// folder is the directory of a tokenizer.
type folder struct {
	path       string
	files      []string  // files that were read
	configured *settings // of tokenizer_config.json, nil if it was not read
}

// read reads a file and also returns its path.
func (f *folder) read(name string) (path string, data []byte, err error) {
	path = filepath.Join(f.path, name)
	data, err = atomicfile.ReadFile(path, atomicfile.Large)
	if err == nil {
		f.files = append(f.files, path)
	}
	return path, data, err
}

// require is read for a file that must exist.
func (f *folder) require(name, want string) (path string, data []byte, err error) {
	path, data, err = f.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = &FormatError{path, fmt.Errorf("is missing, want %s", want)}
	}
	return path, data, err
}

// readIfThere reads a JSON file if it exists.
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

// readBoth reads a tokenizer.json, and a target.json beside it.
func readBoth(from *folder, data []byte) (*Tokenizer, error) {
	t, err := parse(data)
	if err == nil {
		t, err = t.configured(from)
	}
	if err != nil {
		return nil, err
	}
	path, data, err := from.read("target.json")
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		t.target, err = parse(data)
	}
	if err != nil {
		return nil, &FormatError{path, err}
	}
	return t, nil
}

// families are the classes of models whose tokenizer_config.json has no class.
var families = map[string]string{
	"t5": "T5Tokenizer", "llama": "LlamaTokenizer", "mistral": "LlamaTokenizer",
	"gemma": "GemmaTokenizer", "gemma2": "GemmaTokenizer", "gemma3": "GemmaTokenizer", "gemma3_text": "GemmaTokenizer",
	"xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer",
}

// modelType returns the family in the directory's config.json, if there is one.
func (f *folder) modelType() string {
	var config struct {
		Type string `json:"model_type"`
	}
	// Not a file of the tokenizer, so it is not in the list of those.
	own := folder{path: f.path}
	_, _ = own.readIfThere("config.json", &config) // loading the model reports its errors
	return config.Type
}

// readBERT builds a tokenizer from a vocab.txt, which has one token per line.
func readBERT(from *folder, data []byte) (*Tokenizer, error) {
	s, _, err := readSettings(from, "", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
	if err != nil {
		return nil, err
	}
	ids := map[string]int{}
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		token := strings.TrimRightFunc(string(line), unicode.IsSpace)
		if !utf8.ValidString(token) {
			return nil, fmt.Errorf("line %d, %s, is not UTF-8", i+1, quote.Text(token))
		}
		if _, twice := ids[token]; twice {
			return nil, fmt.Errorf("line %d repeats the token %s", i+1, quote.Text(token))
		}
		ids[token] = i
	}
	v, err := newVocabulary(ids)
	if err != nil {
		return nil, err
	}
	added, err := s.specials(&v, use{"unk_token", "[UNK]"}, use{"cls_token", "[CLS]"},
		use{"sep_token", "[SEP]"}, use{"pad_token", "[PAD]"}, use{"mask_token", "[MASK]"})
	if err != nil {
		return nil, err
	}
	lower, err := lowerCase(s, ids, added)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		normalizer:   bertNormalizer{true, s.Chinese == nil || *s.Chinese, s.Accents, lower},
		preTokenizer: bertWords,
		model:        newWordPiece(v, added[0].Content, "##", 100),
		post:         bertTemplate(added[1].token(), added[2].token()),
		decoder:      wordPieceDecoder{"##", true},
	}
	if s.Cleanup {
		t.decoder = decoders{t.decoder, closer{}}
	}
	if err := s.onlyThese(from, t.model, added); err != nil {
		return nil, err
	}
	t.added, err = newAddedTokens(added, t.model, t.normalizer)
	return t, err
}

// lowerCase reports whether a tokenizer converts texts to lower case. Without a setting, it does if the
// vocabulary has no capital letters.
// A wrong guess would be silent: every capital letter of a text would be unknown, or every word another one.
func lowerCase(s *settings, ids map[string]int, added []addedToken) (bool, error) {
	if s.Lower != nil {
		return *s.Lower, nil
	}
	isSpecial := func(token string) bool {
		return slices.ContainsFunc(added, func(t addedToken) bool { return t.Content == token })
	}
	for _, token := range sorted(ids) {
		if strings.ContainsFunc(token, unicode.IsUpper) && !isSpecial(token) && !strings.HasPrefix(token, "[unused") {
			return false, fmt.Errorf("has capital letters, as in %s, and tokenizer_config.json does not set do_lower_case",
				quote.Text(token))
		}
	}
	return true, nil
}

// readGPT2 builds a tokenizer from a vocab.json and a merges.txt.
func readGPT2(from *folder, data []byte) (*Tokenizer, error) {
	path, lines, err := from.require("merges.txt", "it next to vocab.json, or a tokenizer.json")
	if err != nil {
		return nil, err
	}
	s, class, err := readSettings(from, "GPT2Tokenizer", "RobertaTokenizer")
	if err != nil {
		return nil, err
	}
	m := new(bpe)
	if err := m.vocabulary.read(data); err != nil {
		return nil, err
	}
	var rows []string
	number := 0
	for row := range strings.Lines(string(lines)) {
		number++
		if !utf8.ValidString(row) {
			return nil, &FormatError{path, fmt.Errorf("line %d is not UTF-8", number)}
		}
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
	prefix := s.PrefixSpace != nil && *s.PrefixSpace
	t := &Tokenizer{preTokenizer: byteLevel{prefix, true, true}, model: m, post: plainPair, decoder: byteLevel{}}
	var added []addedToken
	if class == "RobertaTokenizer" {
		added, err = s.specials(m, use{"cls_token", "<s>"}, use{"sep_token", "</s>"},
			use{"unk_token", "<unk>"}, use{"pad_token", "<pad>"}, use{"mask_token", "<mask>"})
		if err != nil {
			return nil, err
		}
		t.post = robertaTemplate(added[0].token(), added[1].token())
		added[4].LStrip = s.stripsMask(added[4])
		if s.TrimOffsets == nil || *s.TrimOffsets {
			t.post.trims = []trim{{prefix}}
		}
	} else {
		const usual = "<|endoftext|>"
		uses := []use{{"bos_token", usual}, {"eos_token", usual}, {"unk_token", usual}}
		if !absent(s.Pad) {
			uses = append(uses, use{"pad_token", ""})
		}
		added, err = s.bounds(t, s.AddBos != nil && *s.AddBos, uses...)
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(added, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	for i := range added {
		added[i].Normalized = true
	}
	if err := s.onlyThese(from, t.model, added); err != nil {
		return nil, err
	}
	t.added, err = newAddedTokens(added, t.model, nil)
	return t, err
}
