package pruning

import (
	"io"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// identify adds to a report the architecture of the model, and hashes of the weights and the data.
func identify(m *tasks.Model, r *reports.Report) (err error) {
	r.Model.Arch = m.Family.Name
	var weights []string
	for _, path := range m.Files() {
		if filepath.Ext(path) == ".safetensors" {
			weights = append(weights, path)
		}
	}
	if r.Model.SHA256, err = hashFiles(weights...); err != nil {
		return err
	}
	if m.NewDates > 0 { // not from a file
		r.Data.SHA256 = hashPairs(tasks.PairsOf(m.Lines))
		return nil
	}
	r.Data.SHA256, err = hashFiles(m.Data)
	return err
}

// fewSteps is the number of steps from which a model of attn train is fine-tuned in all its parameters by default.
const fewSteps = 500

// training returns how a model is fine-tuned. The default rate of a pretrained model is low because it has learnt much
// already.
func training(m *tasks.Model, o Options) train.Tuning {
	t := train.Tuning{Rate: 5e-5, Seed: o.Seed}
	_, small := m.TranslatorConfig()
	if small {
		t.Rate = 0.001
	}
	if o.Rate != nil {
		t.Rate = *o.Rate
	}
	if m.Recipe != nil {
		t.Smoothing = m.Recipe.Training.Smoothing
	}
	if o.Tune == "maps" || o.Tune == "auto" && small && o.FineTune < fewSteps {
		t.Params = train.OutputMaps
	}
	return t
}

// formsOf returns the files of a pruned model, which has the given heads of left: the compact and the masked form, or the
// masked form alone, with the other files of the model m, among them the recipe of attn train, which has the dates that the model was trained and pruned with.
func formsOf(m *tasks.Model, left *models.Model, kept map[string][]int) (f forms, err error) {
	others, err := otherFiles(m.Dir, m.Files())
	if err != nil {
		return f, err
	}
	isWeights := func(x atomicfile.File) bool { return x.Path == models.WeightsFile }
	others = replaced(others, slices.DeleteFunc(m.Saved(), isWeights)...)
	if m.Recipe != nil {
		others = replaced(others, m.Recipe.File())
	} else {
		f.gone = []string{train.RecipeFile, filepath.Join(MaskedDir, train.RecipeFile)}
	}
	others = with(others, "config.json", left.Config())
	masked := func(w io.Writer) error { return left.WriteMasked(w, kept) }
	compact, err := left.Compact(kept)
	if err != nil {
		f.noCompact = err.Error()
		f.files = inFolder("", others, masked)
		for _, file := range f.files { // of an earlier run
			f.gone = append(f.gone, filepath.Join(MaskedDir, file.Path))
		}
		return f, nil
	}
	small := inFolder("", with(others, "config.json", compact.Config), compact.Write)
	f.files = append(inFolder(MaskedDir, others, masked), small...)
	f.compact, f.loads = true, compact.Loads
	return f, nil
}
