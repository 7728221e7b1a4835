package tokenizer_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/tokenizer"
)

// languageGolden is the content of languages.json.gz.
type languageGolden struct {
	Texts []string
	Cases []languageCase
}

type languageCase struct {
	Name           string
	Files          map[string]string
	From, To       string
	Source, Target [][]int
	Pair           []int
	Decoded        []string
}

func readLanguages(t *testing.T) (g languageGolden) {
	t.Helper()
	if readGzip(t, "../testdata/tokenizer/languages.json.gz", &g); len(g.Cases) == 0 {
		t.Fatal("no cases")
	}
	return g
}

// readGzip decodes a compressed JSON file.
func readGzip(t *testing.T, path string, to any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		err = json.NewDecoder(z).Decode(to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func loadFiles(t *testing.T, files map[string]string) (*tokenizer.Tokenizer, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := tokenizer.Load(dir)
	return tok, dir, err
}

// TestLanguages compares sources and targets in several languages with NllbTokenizer of transformers. In the case
// "mixed", tokenizer.json has the template of an older class.
func TestLanguages(t *testing.T) {
	g := readLanguages(t)
	for _, c := range g.Cases {
		source, _, err := loadFiles(t, c.Files)
		if err != nil {
			t.Fatal(err)
		}
		target, err := source.In(c.To)
		if c.To == "" {
			target, err = source, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.From != "" {
			if source, err = source.In(c.From); err != nil {
				t.Fatal(err)
			}
		}
		encode := func(t *tokenizer.Tokenizer, text string) []int {
			e, err := t.Encode(text, tokenizer.Options{})
			if err != nil {
				return nil
			}
			return e.IDs
		}
		for i, text := range g.Texts {
			if got := encode(source, text); !slices.Equal(got, c.Source[i]) {
				t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.Source[i])
			}
			if got := encode(target, text); !slices.Equal(got, c.Target[i]) {
				t.Errorf("%s: target %q is %v, want %v", c.Name, text, got, c.Target[i])
			}
			if got := source.Decode(c.Source[i]); got != c.Decoded[i] {
				t.Errorf("%s: %v is %q, want %q", c.Name, c.Source[i], got, c.Decoded[i])
			}
		}
		e, err := source.EncodePair(g.Texts[0], g.Texts[1], tokenizer.Options{})
		if err != nil || !slices.Equal(e.IDs, c.Pair) {
			t.Errorf("%s: pair %v, want %v (error %v)", c.Name, e.IDs, c.Pair, err)
		}
	}
}

// TestLanguageCodes checks which tokens are codes, and what is refused.
func TestLanguageCodes(t *testing.T) {
	g := readLanguages(t)
	files := g.Cases[0].Files
	tok, dir, err := loadFiles(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(tok.Languages(), " "); got != "deu_Latn eng_Latn fra_Latn fur_Latn zho_Hans" {
		t.Errorf("languages %s", got)
	}
	if !slices.Contains(tok.Files(), filepath.Join(dir, "tokenizer_config.json")) {
		t.Errorf("files %v, want tokenizer_config.json among them", tok.Files())
	}
	for code, want := range map[string]string{
		"fr":    `"fr" is not one of the 5 languages of the tokenizer [deu_Latn eng_Latn fra_Latn fur_Latn zho_Hans]`,
		"zzz":   `"zzz" is not one of the 5 languages of the tokenizer [fur_Latn zho_Hans]`,
		"":      `"" is not one of the 5 languages of the tokenizer [deu_Latn eng_Latn fra_Latn]`,
		"</s>":  `"</s>" is not one of the 5 languages of the tokenizer [deu_Latn eng_Latn fra_Latn]`,
		"Hello": `"Hello" is not one of the 5 languages of the tokenizer [deu_Latn eng_Latn fra_Latn]`,
	} {
		if _, err := tok.In(code); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	others := strings.NewReplacer("eng_Latn", "__en__", "fra_Latn", "__ast__", "deu_Latn", "__pad___", "fur_Latn", "__a__", "zho_Hans", "[xx_Hans")
	m2m, _, err := loadFiles(t, map[string]string{"tokenizer.json": others.Replace(files["tokenizer.json"])})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m2m.Languages(), " "); got != "__ast__ __en__" {
		t.Errorf("languages %s, want __ast__ __en__", got)
	}
	one, err := m2m.In("__ast__")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := one.Encode("", tokenizer.Options{}); err != nil || !slices.Equal(e.Tokens, []string{"__ast__", "</s>"}) {
		t.Errorf("tokens %v, want the code and the end (error %v)", e.Tokens, err)
	}
	// transformers loses the codes of some directories; their tokenizer is refused.
	none := strings.NewReplacer("deu_Latn", "a1", "eng_Latn", "a2", "fra_Latn", "a3", "fur_Latn", "a4", "zho_Hans", "a5").Replace(files["tokenizer.json"])
	if _, _, err := loadFiles(t, map[string]string{"tokenizer.json": none, "tokenizer_config.json": `{"tokenizer_class": "NllbTokenizer"}`}); err == nil ||
		!strings.HasSuffix(err.Error(), `tokenizer_config.json: src_lang: "eng_Latn" is not one of the 0 languages of the tokenizer []`) {
		t.Errorf("error %v", err)
	}
	// Without the class, the template of tokenizer.json is used; with it, it needs its language.
	mixed := g.Cases[slices.IndexFunc(g.Cases, func(c languageCase) bool { return c.Name == "mixed" })].Files
	bare, _, err := loadFiles(t, map[string]string{"tokenizer.json": mixed["tokenizer.json"]})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := bare.Encode("", tokenizer.Options{}); err != nil || !slices.Equal(e.Tokens, []string{"</s>", "deu_Latn"}) {
		t.Errorf("tokens %v, want the end and the code (error %v)", e.Tokens, err)
	}
	for config, want := range map[string]string{
		`{"tokenizer_class": "NllbTokenizerFast", "src_lang": "ita_Latn"}`: `tokenizer_config.json: src_lang: "ita_Latn" is not one of the 5 languages`,
		`{"tokenizer_class": "NllbTokenizer", "legacy_behaviour": 3}`:      "tokenizer_config.json: ",
	} {
		_, _, err := loadFiles(t, map[string]string{"tokenizer.json": files["tokenizer.json"], "tokenizer_config.json": config})
		var bad *tokenizer.FormatError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
