package models_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// multilingual returns a directory with a tiny M2M100 and a tokenizer of five languages, whose ids are 26 to 30.
func multilingual(t *testing.T, generation string) string {
	t.Helper()
	dir := copyDir(t, "testdata/seq2seq/m2m100")
	if err := os.CopyFS(dir, os.DirFS("../testdata/tokenizer/m2m100")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "generation_config.json"), generation)
	return dir
}

func loadMultilingual(t *testing.T, generation string) *models.Model {
	t.Helper()
	m, err := models.Load(multilingual(t, generation), models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWithLanguages compares a model for a language with one whose generation_config.json forces its code.
func TestWithLanguages(t *testing.T) {
	plain, german := loadMultilingual(t, `{}`), loadMultilingual(t, `{"forced_bos_token_id": 26}`)
	for _, c := range []struct {
		from, to string
		m        *models.Model
		begin    []int // tokens of the source and the target
		code     int
	}{
		{"", "deu_Latn", plain, []int{27, 19, 18, 2}, 26},
		{"", "", german, []int{27, 19, 18, 2}, 26},
		{"fra_Latn", "", german, []int{28, 19, 18, 2}, 26},
		{"deu_Latn", "zho_Hans", german, []int{26, 19, 18, 2}, 30},
		{"zho_Hans", "zho_Hans", plain, []int{30, 19, 18, 2}, 30},
	} {
		m, err := c.m.WithLanguages(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		e, err := m.Encode("the cat", "")
		if err != nil || !slices.Equal(e.IDs, c.begin) {
			t.Errorf("%s: source %v, want %v (error %v)", c.from, e.IDs, c.begin, err)
		}
		x, err := probe.TranslationExample(m, "the cat", "the cat")
		if want := append([]int{c.code}, c.begin[1:]...); err != nil || !slices.Equal(x.Targets, want) || !slices.Equal(x.Reads, append([]int{2}, want[:3]...)) {
			t.Errorf("%s: reads %v, targets %v, want %v (error %v)", c.to, x.Reads, x.Targets, want, err)
		}
		forced, err := models.Load(multilingual(t, strings.Replace(`{"forced_bos_token_id": N}`, "N", []string{26: "26", 30: "30"}[c.code], 1)), models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, beam := range []int{1, 3} {
			g := models.Generation{Beam: beam, Tokens: 12}
			got, err := m.Write(t.Context(), [][]int{e.IDs}, g)
			want, also := forced.Write(t.Context(), [][]int{e.IDs}, g)
			if err != nil || also != nil || len(got[0]) == 0 || !slices.Equal(got[0], want[0]) {
				t.Errorf("%s: writes %v, want %v (errors %v, %v)", c.to, got, want, err, also)
			}
		}
		r, err := probe.RecordTexts(t.Context(), m, "the cat", "", heads.RecorderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		code := map[int]string{26: "deu_Latn", 30: "zho_Hans"}[c.code]
		l := r.Layer(heads.Decoder, 0)
		if !slices.Equal(l.Keys[:2], []string{"</s>", code}) || l.Queries[0] != code || !slices.Contains(r.Special, code) {
			t.Errorf("%s: the decoder reads %v and writes %v, special are %v", c.to, l.Keys, l.Queries, r.Special)
		}
		if strings.Contains(r.Target, code) {
			t.Errorf("%s: target %q", c.to, r.Target)
		}
	}
}

// TestLanguageIsMissing checks what needs the language of targets, and what does not.
func TestLanguageIsMissing(t *testing.T) {
	m := loadMultilingual(t, `{}`)
	const want = "can write 5 languages, deu_Latn to zho_Hans, want one of them by --to where a command has it, Model.WithLanguages, or forced_bos_token_id in generation_config.json"
	_, generate := m.Generate(t.Context(), []int{27, 5, 2}, models.Generation{})
	_, beam := m.Beam(t.Context(), []int{27, 5, 2}, 2, models.Generation{})
	_, translate := m.Translate(t.Context(), []string{"the cat"}, 1)
	_, example := probe.TranslationExample(m, "the cat", "the cat")
	_, record := probe.RecordTexts(t.Context(), m, "the cat", "", heads.RecorderOptions{})
	_, recordTarget := probe.RecordTexts(t.Context(), m, "the cat", "the cat", heads.RecorderOptions{})
	for _, err := range []error{generate, beam, translate, example, record, recordTarget} {
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := m.Encode("the cat", ""); err != nil {
		t.Error(err)
	}
	if _, err := m.WithLanguages("eng_Latn", "eng"); err == nil || !strings.HasSuffix(err.Error(), `"eng" is not one of the 5 languages of the tokenizer [deu_Latn eng_Latn fra_Latn fur_Latn]`) {
		t.Errorf("error %v", err)
	}
	untokened, err := models.Load("testdata/seq2seq/m2m100", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := untokened.WithLanguages("", "fra_Latn"); err == nil {
		t.Error("a model without a tokenizer has languages")
	}
}
