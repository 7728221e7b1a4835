package pruning

import (
	"path/filepath"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// The functions of this file treat translators of attn train and pretrained models differently.

// identify adds to a report the architecture of the model, and hashes of the weights and the data.
func identify(m *tasks.Model, r *reports.Report, parts [3][]train.Line) (err error) {
	if m.Translator != nil {
		for _, part := range parts {
			r.Data.Pairs += len(part)
		}
		r.Model.Arch, r.Data.SHA256 = m.Translator.Config.Arch, hashPairs(tasks.PairsOf(m.Lines))
		r.Model.SHA256, err = atomicfile.Read(filepath.Join(m.Dir, models.WeightsFile), func(place string) (string, error) {
			return hashFiles(place)
		})
		return err
	}
	r.Model.Arch = m.Family.Name
	weights, err := filepath.Glob(filepath.Join(m.Dir, "*.safetensors"))
	if err != nil {
		return err
	}
	if r.Model.SHA256, err = hashFiles(weights...); err != nil {
		return err
	}
	r.Data.SHA256, err = hashFiles(m.Data)
	return err
}

// training returns the default learning rate of fine-tuning, and the label smoothing. The rate of a pretrained model is
// low because it has learnt much already.
func training(m *tasks.Model) (rate float64, smoothing float32) {
	switch {
	case m.Translator == nil:
		return 5e-5, 0
	case m.Recipe == nil:
		return 0.001, 0
	}
	return 0.001, m.Recipe.Training.Smoothing
}

// trainer returns how the model is fine-tuned on lines of a file. scoring is the scoring part.
func trainer(m *tasks.Model, file string, learn, scoring []train.Line, s reports.Settings, seed uint64) (Train, error) {
	if m.Translator != nil {
		return TrainTranslator(m.Model, tasks.PairsOf(learn), tasks.PairsOf(scoring), s.Rate, s.Smoothing, seed), nil
	}
	probe, err := m.Probe(file, learn, seed)
	return TrainProbe(probe, s.Rate, seed), err
}

// comparedOn returns a probe on which a model in its file is compared with the one in memory.
func comparedOn(m *tasks.Model, x *Task) *models.Probe {
	if m.Translator != nil {
		return x.Selecting.Probe
	}
	return x.Reporting.Probe
}

// formsOf returns the files of a pruned model: the compact and the masked form, or the masked form alone,
// with the other files of the model.
func formsOf(m *tasks.Model, left *models.Probe) (f forms, err error) {
	if m.Translator != nil {
		return lessonForms(left.Model(), m.Recipe), nil
	}
	others, err := otherFiles(m.Dir, m.Files())
	if err != nil {
		return f, err
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

// lessonForms are a translator of attn train and its masked form, each with its recipe, which has the dates that the
// model was trained and pruned with.
func lessonForms(m *models.Model, recipe *train.Recipe) (f forms) {
	f.compact, f.files = true, append(m.Saved(""), m.Expand().Saved(MaskedDir)...)
	for _, folder := range []string{"", MaskedDir} {
		name := filepath.Join(folder, train.RecipeFile)
		if recipe == nil {
			f.gone = append(f.gone, name)
			continue
		}
		f.files = append(f.files, atomicfile.File{Path: name, Write: recipe.File().Write})
	}
	return f
}
