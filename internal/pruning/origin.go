package pruning

import (
	"path/filepath"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/internal/tasks"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// origin is the difference between translators of attn train and pretrained models.
type origin interface {
	// identify adds to a report the architecture of the model, and hashes of the weights and the data.
	identify(r *reports.Report, parts [3][]train.Line) error
	// training returns the default learning rate of fine-tuning, and the label smoothing.
	training() (rate float64, smoothing float32)
	// trainer returns how the model is fine-tuned on lines of a file. scoring is the scoring part.
	trainer(file string, learn, scoring []train.Line, rate float64, seed uint64) (Train, error)
	// forms returns the files of a pruned model.
	forms(left *models.Probe) (forms, error)
	// compared is the part of the data on which a model in its file is compared with the one in memory.
	compared() Part
}

func originOf(m *tasks.Model, dir string) origin {
	if m.Translator != nil {
		return lesson{m, dir}
	}
	return pretrained{m, dir}
}

// lesson is a translator of attn train.
type lesson struct {
	*tasks.Model
	dir string
}

func (l lesson) identify(r *reports.Report, parts [3][]train.Line) (err error) {
	for _, part := range parts {
		r.Data.Pairs += len(part)
	}
	r.Model.Arch, r.Data.SHA256 = l.Translator.Config.Arch, hashPairs(tasks.PairsOf(l.Lines))
	r.Model.SHA256, err = atomicfile.Read(filepath.Join(l.dir, models.WeightsFile), func(place string) (string, error) {
		return hashFiles(place)
	})
	return err
}

func (l lesson) training() (rate float64, smoothing float32) {
	if l.Recipe != nil {
		smoothing = l.Recipe.Training.Smoothing
	}
	return 0.001, smoothing
}

func (l lesson) trainer(_ string, learn, scoring []train.Line, rate float64, seed uint64) (Train, error) {
	_, smoothing := l.training()
	return TrainTranslator(l.Model.Model, tasks.PairsOf(learn), tasks.PairsOf(scoring), rate, smoothing, seed), nil
}

func (l lesson) compared() Part { return Selecting }

// forms are the model and its masked form, each with its recipe, which has the dates that the model was trained
// and pruned with.
func (l lesson) forms(left *models.Probe) (forms, error) {
	return lessonForms(left.Model(), l.Recipe), nil
}

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

// pretrained is a pretrained model.
type pretrained struct {
	*tasks.Model
	dir string
}

func (p pretrained) identify(r *reports.Report, _ [3][]train.Line) error {
	r.Model.Arch = p.Family.Name
	weights, err := filepath.Glob(filepath.Join(p.dir, "*.safetensors"))
	if err != nil {
		return err
	}
	if r.Model.SHA256, err = hashFiles(weights...); err != nil {
		return err
	}
	r.Data.SHA256, err = hashFiles(p.Data)
	return err
}

// The rate is low because the model has learnt much already.
func (p pretrained) training() (rate float64, smoothing float32) { return 5e-5, 0 }

func (p pretrained) trainer(file string, learn, _ []train.Line, rate float64, seed uint64) (Train, error) {
	probe, err := p.Probe(file, learn, seed)
	return TrainProbe(probe, rate, seed), err
}

func (p pretrained) compared() Part { return Reporting }

// forms are the compact and the masked form, or the masked form alone, with the other files of the model.
func (p pretrained) forms(left *models.Probe) (f forms, err error) {
	others, err := otherFiles(p.dir, p.Files())
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
