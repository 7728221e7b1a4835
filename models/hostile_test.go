package models_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/quote/hostile"
	"github.com/attn-go/attn/models"
)

// An error about a JSON file with arbitrary content is one line without control characters.
func TestHostileText(t *testing.T) {
	for i, from := range []string{"bert_shards", "bert_text", "gpt2_pruned", "sentence_dense", "decoders/gemma3_multimodal", "seq2seq/marian", "nomic_moe"} {
		text := []string{hostile.Text, hostile.Long}[i%2]
		t.Run(from, func(t *testing.T) {
			if testing.Short() && i%2 > 0 {
				t.Skip("takes long, as loading does")
			}
			t.Parallel()
			dir := copyDir(t, filepath.Join("testdata", from))
			files, refused := 0, 0
			check := func(err error) {
				if files++; err == nil {
					return
				}
				refused++
				if err := hostile.Check(strings.ReplaceAll(err.Error(), dir, "DIR")); err != nil {
					t.Error(err)
				}
			}
			err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
				if err != nil || filepath.Ext(path) != ".json" || e.Name() == "tokenizer.json" { // package tokenizer tests that one
					return err
				}
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				for changed := range hostile.Files(data, text) {
					write(t, path, string(changed))
					d, err := models.Describe(dir, models.Options{})
					check(err)
					if err != nil {
						continue
					}
					check(d.TokenizerError)
					check(d.Unpooled)
					switch filepath.Base(path) {
					case "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json":
						_, err = models.LoadEmbedder(dir, models.Options{})
						check(err)
					case "generation_config.json":
						m, err := models.Load(dir, models.Options{})
						if check(err); err == nil {
							_, err = m.EndTokens()
							check(err)
						}
					}
				}
				write(t, path, string(data))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if refused == 0 {
				t.Errorf("none of %d files is refused", files)
			}
			t.Logf("%d files, %d refused", files, refused)
		})
	}
}
