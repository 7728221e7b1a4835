// Package modeldir explains why a path is not the directory of a model.
package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
)

// TokenizerFiles are the names of the files that tokenizers of models are read from.
var TokenizerFiles = []string{
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "vocab.txt",
	"vocab.json", "merges.txt", "tokenizer.model", "sentencepiece.bpe.model", "spiece.model", "source.spm", "target.spm",
	"target_vocab.json",
}

// Adapter returns an error that says how to merge an adapter of peft if a directory contains one. transformers does not
// read weights beside it either.
func Adapter(dir string) error {
	data, err := atomicfile.ReadFile(filepath.Join(dir, "adapter_config.json"), atomicfile.Small)
	if err != nil {
		return nil
	}
	a := struct {
		Type string `json:"peft_type"`
		Base string `json:"base_model_name_or_path"`
	}{Base: "BASE"} // if the file names none
	_ = json.Unmarshal(data, &a) // attn merge reports errors
	return fmt.Errorf("is a %s adapter of %s, not a model; to merge them: attn merge --base %s --adapter %s --out DIR",
		quote.Name(strings.Replace(a.Type, "LORA", "LoRA", 1)), quote.Text(a.Base), quote.Shell(a.Base), quote.Shell(dir))
}

// Explain returns an error that says what a path is, and what to give in its place, if it is not a directory with one of
// the given files. It returns nil if it is one, and if the path does not exist.
func Explain(dir string, files ...string) error {
	info, err := os.Stat(dir)
	switch {
	case dir == "":
		return errors.New("is an empty path, want the directory of a model")
	case isGGUF(dir) && (err != nil || !info.IsDir()):
		return errors.New("is in the format GGUF, which is not read; " + format)
	case err != nil:
		return nil
	case !info.IsDir():
		return errors.New("is a file, want the directory of the model")
	}
	in := os.DirFS(dir)
	has := func(folder string) bool {
		return slices.ContainsFunc(files, func(name string) bool {
			_, err := fs.Stat(in, filepath.ToSlash(filepath.Join(folder, name)))
			return err == nil
		})
	}
	if has(".") {
		return nil
	}
	if why := Adapter(dir); why != nil {
		return why
	}
	var within []string
	for _, pattern := range []string{"*", "snapshots/*"} { // the cache of the hub has snapshots
		folders, _ := fs.Glob(in, pattern)
		for _, folder := range folders {
			if has(folder) {
				within = append(within, quote.Name(filepath.Join(dir, folder)))
			}
		}
	}
	switch n := len(within); {
	case n == 1:
		return fmt.Errorf("is not the directory of a model, but %s is; want that directory", within[0])
	case n > 3:
		within = append(within[:3], "…")
		fallthrough
	case n > 1:
		return fmt.Errorf("is not the directory of a model, but contains several, want one of %s", strings.Join(within, ", "))
	}
	entries, _ := fs.ReadDir(in, ".")
	if i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return isGGUF(e.Name()) }); i >= 0 {
		return fmt.Errorf("has a model in the format GGUF, %s, which is not read; "+format, quote.Name(entries[i].Name()))
	}
	return fmt.Errorf("has no %s, so it is not the directory of a model; "+format, files[0])
}

const format = "want a model in Hugging Face's format, a directory with config.json, model.safetensors and tokenizer.json"

func isGGUF(path string) bool { return strings.EqualFold(filepath.Ext(path), ".gguf") }
