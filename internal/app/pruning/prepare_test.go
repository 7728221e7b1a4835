package pruning

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// sources returns the sources of pairs.
func sources(parts ...[]seq2seq.Pair) map[string]bool {
	all := map[string]bool{}
	for _, part := range parts {
		for _, p := range part {
			all[p.Source] = true
		}
	}
	return all
}

func writeRecipe(t *testing.T, r train.Recipe, dir string) {
	t.Helper()
	if err := atomicfile.Write(filepath.Join(dir, train.RecipeFile), r.File().Write); err != nil {
		t.Fatal(err)
	}
}

// Fine-tuning does not train on the parts that models are measured on, even if its file has them.
func TestPruneTrainsOnOthers(t *testing.T) {
	pairs := train.Dates(60, 1)
	var text strings.Builder
	for _, p := range pairs {
		fmt.Fprintf(&text, "%s\t%s\n", p.Source, p.Target)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "pairs.tsv")
	if err := os.WriteFile(data, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r := train.DatesRecipe()
	source, target := train.Vocabularies(pairs, r.Units, r.VocabSize)
	r.Network.Arch = models.Transformer
	m, err := models.NewTranslator(r.Network, source, target, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	r.Data, r.Training.Smoothing = data, 0.25
	writeRecipe(t, r, dir)
	for file, want := range map[string]int{"": 12, data: 60 - 2*12} {
		m, err := tasks.Open(dir, data, models.Options{}, tasks.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e := Experiment{FineTune: 1, Seed: 1, SpeedTime: time.Second}
		x, err := Prepare(t.Context(), m, Options{Experiment: e, Limit: 12, Metric: "auto", Train: file})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := Deal(m.Lines, m.Source, 12, 1, m.Items)
		if err != nil {
			t.Fatal(err)
		}
		learn := parts[0]
		if file != "" {
			if learn, err = m.ReadTraining(file, parts[1], parts[2]); err != nil {
				t.Fatal(err)
			}
		}
		for steps, want := range map[int]string{fewSteps - 1: "maps", fewSteps: "all"} {
			e.FineTune = steps
			x, err := Prepare(t.Context(), m, Options{Experiment: e, Limit: 12, Metric: "auto", Train: file, Tune: "auto"})
			if err != nil || x.Report.Settings.Tune != want {
				t.Errorf("%d steps train %q, want %q (%v)", steps, x.Report.Settings.Tune, want, err)
			}
		}
		if s := x.Report.Settings; s.Smoothing != 0.25 || s.Trained != want {
			t.Errorf("labels are smoothed by %v, not as they were in training; %d pairs to train on, want %d",
				s.Smoothing, s.Trained, want)
		}
		measured := sources(tasks.PairsOf(parts[1]), tasks.PairsOf(parts[2]))
		if len(learn) != want || len(measured) != 24 {
			t.Errorf("%d pairs to train on, want %d; %d sources to measure on", len(learn), want, len(measured))
		}
		if i := slices.IndexFunc(learn, func(l train.Line) bool { return measured[l.Columns[0]] }); i >= 0 {
			t.Errorf("%q is learnt and measured on", learn[i].Columns[0])
		}
	}

	// Built-in dates that one pruning has used are not used by the next.
	r.Data = ""
	writeRecipe(t, r, dir)
	fresh, err := tasks.Open(dir, "", models.Options{}, tasks.Limits{Dates: NewDates(12)})
	if err != nil {
		t.Fatal(err)
	}
	e := Experiment{Seed: 1, SpeedTime: time.Second}
	_, err = Prepare(t.Context(), fresh, Options{Experiment: e, Limit: 12, Metric: "auto"})
	if err != nil || !slices.Equal(fresh.Recipe.Pruned, []int{37}) {
		t.Errorf("the recipe has %v, want 37 dates of one pruning (%v)", fresh.Recipe.Pruned, err)
	}
}
