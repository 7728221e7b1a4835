package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDownload(t *testing.T) {
	f, dir := newFake(t), filepath.Join(t.TempDir(), "new")
	m, err := f.hub(t, "").Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	var have, all int64
	var whole []string
	w := Watch{Bytes: func(h, a int64) { have, all = h, a }, Whole: func(f File) { whole = append(whole, f.Path) }}
	if err := m.Download(t.Context(), dir, w); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
	if n := int64(len(big) + len(f.Files["config.json"])); have != n || all != n || m.Commit != commit {
		t.Errorf("%d of %d bytes of commit %s, want %d", have, all, m.Commit, n)
	}
	if got := strings.Join(whole, " "); got != "config.json model.safetensors" {
		t.Errorf("told of %s", got)
	}
	// Existing files are not downloaded again.
	before := len(f.Asked())
	if err := m.Download(t.Context(), dir, w); err != nil || len(f.Asked()) != before || have != all {
		t.Errorf("a second time: %v, requests %q", err, f.Asked()[before:])
	}
}

// A model split into several files, and a sentence-transformers model with modules in folders.
func TestChoose(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	f.Files = map[string][]byte{
		"config.json": []byte("{}"), "tokenizer.json": []byte("{}"), "model.safetensors.index.json": []byte(`{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-1.safetensors"}}`),
		"m-1.safetensors": big, "m-2.safetensors": big[:7], "m-3.safetensors": big[:5], "onnx/model.onnx": big,
		"modules.json":          []byte(`[{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}]`),
		"1_Pooling/config.json": []byte("{}"), "2_Dense/config.json": []byte("{}"), "2_Dense/model.safetensors": big[:11], "2_Dense/pytorch_model.bin": big,
	}
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "tokenizer.json", "model.safetensors.index.json", "m-1.safetensors", "m-2.safetensors",
		"modules.json", "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors")

	// A Router has modules in folders, a StaticEmbedding has no config.json, and settings have old names.
	f, dir = newFake(t), t.TempDir()
	f.Files = map[string][]byte{
		"modules.json": []byte(`[{"path": "."}]`), "router_config.json": []byte(`{"types": {"query_0_X": "X", "document_0_Y": "Y"}}`),
		"query_0_X/model.safetensors": big[:5], "document_0_Y/config.json": []byte("{}"), "document_0_Y/model.safetensors": big[:7],
		"document_0_Y/sentence_xlnet_config.json": []byte("{}"), "other/config.json": []byte("{}"),
	}
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "modules.json", "router_config.json", "query_0_X/model.safetensors", "document_0_Y/config.json",
		"document_0_Y/model.safetensors", "document_0_Y/sentence_xlnet_config.json")
}

// Weights of torch.save are downloaded if there are no others, in one file or in parts, and the maps of BGE-M3.
func TestChooseTorch(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	delete(f.Files, "model.safetensors")
	f.Files["modules.json"] = []byte(`[{"path": ""}, {"path": "2_Dense"}]`)
	f.Files["2_Dense/pytorch_model.bin.index.json"] = []byte(`{"weight_map": {"a": "p-1.bin", "b": "p-2.bin"}}`)
	f.Files["2_Dense/p-1.bin"], f.Files["2_Dense/p-2.bin"], f.Files["2_Dense/training_args.bin"] = big[:7], big[:5], big[:3]
	f.Files["sparse_linear.pt"] = big[:3]
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "pytorch_model.bin", "sparse_linear.pt", "modules.json", "2_Dense/pytorch_model.bin.index.json", "2_Dense/p-1.bin", "2_Dense/p-2.bin")
}

// A partial file of another commit is removed, not resumed; a partial file that is too long or corrupt is downloaded
// again.
func TestOldParts(t *testing.T) {
	f := newFake(t)
	sum := f.Entries()[2]["lfs"].(map[string]any)["sha256"].(string)
	for name, part := range map[string]string{
		"another commit": "model.safetensors.fedcba9876543210.part",
		"too long":       "model.safetensors." + sum[:16] + ".part",
		"broken":         "model.safetensors." + sum[:16] + ".part",
	} {
		dir := t.TempDir()
		data := []byte("other bytes than those of the file")
		if name == "too long" {
			data = append(big, "more"...)
		}
		if err := os.WriteFile(filepath.Join(dir, part), data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.fetch(t, dir); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.want(t, dir, "config.json", "model.safetensors")
	}
}

// A directory with other files is not changed.
func TestStrangers(t *testing.T) {
	for name, want := range map[string]string{
		"config.json":                  "config.json differs from commit 0123456789ab of owner/tiny",
		"generation_config.json":       "generation_config.json does not belong to owner/tiny",
		"model.safetensors.index.json": "model.safetensors.index.json does not belong to owner/tiny",
	} {
		f, dir := newFake(t), t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(`{"model_type": "mine"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.fetch(t, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want … %s", name, err, want)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: %d files in the directory", name, len(entries))
		}
	}
	// A symbolic link out of the directory is not followed.
	f, dir, out := newFake(t), t.TempDir(), t.TempDir()
	f.Files["modules.json"], f.Files["1_Pooling/config.json"] = []byte(`[{"path": "1_Pooling"}]`), []byte("{}")
	if err := os.Symlink(out, filepath.Join(dir, "1_Pooling")); err != nil {
		t.Logf("no links on this system: %v", err)
		return
	}
	if err := f.fetch(t, dir); err == nil {
		t.Error("a link out of the directory is followed")
	}
	if entries, _ := os.ReadDir(out); len(entries) != 0 {
		t.Errorf("%d files behind the link", len(entries))
	}
}
