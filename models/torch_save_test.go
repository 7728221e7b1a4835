package models_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
)

// TestTorchSave loads weights of torch.save, in one file with tied tensors and in several files, and compares every bit
// with the same model in safetensors.
func TestTorchSave(t *testing.T) {
	for base, files := range map[string]map[string]string{
		"bert_words": {"bert_words.bin": "pytorch_model.bin"},
		"bert": {"pytorch_model.bin.index.json": "", "pytorch_model-00001-of-00002.bin": "",
			"pytorch_model-00002-of-00002.bin": ""},
	} {
		dir := t.TempDir()
		copyFile := func(from, name string) {
			data, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name), string(data))
		}
		copyFile(filepath.Join("testdata", base, "config.json"), "config.json")
		for from, to := range files {
			if to == "" {
				to = from
			}
			copyFile(filepath.Join("testdata/torch_save", from), to)
		}
		got, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		want, err := models.Load(filepath.Join("testdata", base), models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		numbers := map[string][]float32{}
		for name, x := range want.Params() {
			numbers[name] = x.Data()
		}
		n := 0
		for name, x := range got.Params() {
			if n++; !slices.EqualFunc(x.Data(), numbers[name], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Errorf("%s: %s differs", base, name)
			}
		}
		if n != len(numbers) {
			t.Errorf("%s: %d parameters, want %d", base, n, len(numbers))
		}
		if d, err := models.Describe(dir, models.Options{}); err != nil || d.Parameters < 1000 {
			t.Errorf("%s: described as %+v, %v", base, d, err)
		}
		if files := got.Files(); len(files) < 2 || filepath.Ext(files[len(files)-1]) != ".bin" {
			t.Errorf("%s: files %q", base, files)
		}
		saved := filepath.Join(t.TempDir(), "out")
		if err := got.Save(saved); err != nil {
			t.Fatal(err)
		}
		if entries, _ := os.ReadDir(saved); len(entries) != 2 { // config.json and model.safetensors
			t.Errorf("%s: saved %v", base, entries)
		}
	}
}
