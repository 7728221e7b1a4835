package pruning

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/train"
)

type killed struct{}

// killedAt runs f and stops it before its n-th operation on the disk, as if the process were killed. It
// reports whether f reached that operation.
func killedAt(n int, f func()) (dead bool) {
	atomicfile.Before = func(string, string) {
		if n--; n < 0 {
			panic(killed{})
		}
	}
	defer func() {
		atomicfile.Before = nil
		if r := recover(); r == (killed{}) {
			dead = true
		} else if r != nil {
			panic(r)
		}
	}()
	f()
	return false
}

// The models and the reports of a pruning change in one step.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: ends at every operation on the disk")
	}
	dir := t.TempDir()
	r := train.DatesRecipe()
	r.Network.Arch, r.Network.Width, r.Network.Hidden = models.Transformer, 8, 3
	source, target := train.Vocabularies(train.Dates(13, 1), r.Units, r.VocabSize)
	m, err := models.NewTranslator(r.Network, source, target, rand.New(rand.NewPCG(1, 2)))
	whole := filepath.Join(dir, "whole")
	if err == nil {
		err = m.Save(whole)
	}
	if err == nil {
		m, err = models.Load(whole, models.Options{Trainable: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	// without returns a probe without some heads.
	without := func(heads ...int) *probe.Probe {
		var gone []prune.Head
		for _, h := range heads {
			gone = append(gone, prune.Head{Layer: "encoder.0.self", Number: h})
		}
		p, err := probeOf(t, m, train.Dates(3, 1)).Without(gone)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	old, next := without(3), without(0, 1, 2)
	out := filepath.Join(dir, "out")
	keep := func(p *probe.Probe, r *train.Recipe) {
		f, err := formsOf(&tasks.Model{Model: m, Dir: whole, Recipe: r}, p.Model(), p.Kept())
		if err != nil {
			t.Fatal(err)
		}
		store, err := atomicfile.Lock(out)
		if err != nil {
			t.Fatal(err)
		}
		o := Output{dir: out, store: store}
		defer o.Close()
		if err := o.write(f); err != nil {
			t.Fatal(err)
		}
	}
	first := filepath.Join(dir, "first")
	reports := []string{ReportFile, PageFile, filepath.Join(MaskedDir, ReportFile), filepath.Join(MaskedDir, PageFile)}
	keep(old, &r)
	for _, name := range reports {
		if err := os.WriteFile(filepath.Join(out, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(out, first); err != nil {
		t.Fatal(err)
	}
	states := map[string]int{}
	for n := 0; ; n++ {
		if err := errors.Join(os.RemoveAll(out), os.CopyFS(out, os.DirFS(first))); err != nil {
			t.Fatal(err)
		}
		dead := killedAt(n, func() { keep(next, nil) })
		state := ""
		for _, folder := range []string{out, filepath.Join(out, MaskedDir)} {
			got, err := models.Load(folder, models.Options{Trainable: true})
			if err != nil {
				t.Fatalf("killed before operation %d: %v", n, err)
			}
			recipe, err := train.ReadRecipe(folder)
			if err != nil {
				t.Fatal(err)
			}
			state += fmt.Sprint(len(got.Attention()[0].Q.Weight.Data()), recipe != nil, " ")
		}
		for _, name := range reports {
			state += fmt.Sprint(atomicfile.Exists(filepath.Join(out, name)))
		}
		states[state]++
		if !dead {
			break
		}
	}
	if len(states) != 2 {
		t.Errorf("after a kill there are %v, want two states", states)
	}
	for _, name := range append(reports, train.RecipeFile) {
		if atomicfile.Exists(filepath.Join(out, name)) {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestVacant(t *testing.T) {
	const trained = "--out DIR contains a run of attn train; choose another directory"
	for file, want := range map[string][2]string{
		"":                         {},
		"notes.txt":                {},
		"page/report.html":         {},
		"training.safetensors":     {trained, trained},
		"model.safetensors":        {"--out DIR already contains a model; use --force to overwrite it"},
		"masked/model.safetensors": {"--out DIR already contains a model; use --force to overwrite it"},
		"pruning.json":             {"DIR/pruning.json already exists; use --force to overwrite it"},
		"recipe.json":              {"DIR/recipe.json already exists; use --force to overwrite it"},
		"tokenizer.json":           {"DIR/tokenizer.json already exists; use --force to overwrite it"},
	} {
		t.Chdir(t.TempDir())
		if path := filepath.Join("DIR", file); file != "" {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		for i, force := range []bool{false, true} {
			got := ""
			if err := Vacant("DIR", force); err != nil {
				got = filepath.ToSlash(err.Error())
			}
			if got != want[i] {
				t.Errorf("%q, force %v: %q, want %q", file, force, got, want[i])
			}
		}
	}
}

// The copy of a pretrained model has its settings, its tokenizer and its pipeline, without weights and reports.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../models/testdata/sentence_dense")); err != nil {
		t.Fatal(err)
	}
	e, err := models.LoadEmbedder(dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"merges.txt", "chat_template.jinja", "model.safetensors.index.json", ReportFile, UnfinishedFile, "README.md",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := otherFiles(dir, e.Files())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.ToSlash(f.Path))
		var got bytes.Buffer
		if err := f.Write(&got); err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(filepath.Join(dir, f.Path)); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s has other bytes (%v)", f.Path, err)
		}
	}
	for name, want := range map[string]bool{
		"config.json": true, "tokenizer.json": true, "modules.json": true, "merges.txt": true, "chat_template.jinja": true,
		"1_Pooling/config.json": true, "2_Dense/model.safetensors": true,
		"model.safetensors": false, "model.safetensors.index.json": false, ReportFile: false, UnfinishedFile: false,
		"README.md": false,
	} {
		if got := slices.Contains(names, name); got != want {
			t.Errorf("%s is copied: %v, want %v", name, got, want)
		}
	}
	if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("files %v, some of them twice", names)
	}
}
