package pruning

import (
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

// training returns how a model is fine-tuned by default. The rate of a pretrained model is low because it has learnt much
// already.
func training(m *tasks.Model) train.Tuning {
	o := train.Tuning{Rate: 5e-5}
	if _, small := m.TranslatorConfig(); small {
		o.Rate = 0.001
	}
	if m.Recipe != nil {
		o.Smoothing = m.Recipe.Training.Smoothing
	}
	return o
}

// formsOf returns the files of a pruned model: the compact and the masked form, or the masked form alone, with the other
// files of the model, among them the recipe of attn train, which has the dates that the model was trained and pruned with.
func formsOf(m *tasks.Model, left *models.Probe) (f forms, err error) {
	others, err := otherFiles(m.Dir, m.Files())
	if err != nil {
		return f, err
	}
	isWeights := func(x atomicfile.File) bool { return x.Path == models.WeightsFile }
	others = replaced(others, slices.DeleteFunc(m.Saved(""), isWeights)...)
	if m.Recipe != nil {
		others = replaced(others, m.Recipe.File())
	} else {
		f.gone = []string{train.RecipeFile, filepath.Join(MaskedDir, train.RecipeFile)}
	}
	config, err := left.Config()
	if err != nil {
		return f, err
	}
	others = withConfig(others, config)
	compact, err := left.Compact()
	if err != nil {
		f.noCompact = err.Error()
		f.files = inFolder("", others, left.WriteMasked)
		for _, file := range f.files { // of an earlier run
			f.gone = append(f.gone, filepath.Join(MaskedDir, file.Path))
		}
		return f, nil
	}
	small := inFolder("", withConfig(others, compact.Config), compact.Write)
	f.files = append(inFolder(MaskedDir, others, left.WriteMasked), small...)
	f.compact, f.loads = true, compact.Loads
	return f, nil
}
