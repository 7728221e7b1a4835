package pruning

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
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
	if err != nil {
		t.Fatal(err)
	}
	without := func(heads ...int) *models.Model {
		m, err := m.Keep(map[string][]int{"encoder.0.self": heads})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	old, next := without(0, 1, 2), without(3)
	out := filepath.Join(dir, "out")
	keep := func(m *models.Model, r *train.Recipe) {
		store, err := atomicfile.Lock(out)
		if err != nil {
			t.Fatal(err)
		}
		o := Output{dir: out, store: store}
		defer o.Close()
		if err := o.write(lessonForms(m, r)); err != nil {
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
			got, err := models.LoadTranslator(folder)
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
