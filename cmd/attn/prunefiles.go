package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// This file has what attn prune writes.

// forms are the files of what is left of a model: in its compact form, with the masked one in a
// folder, or where there is none, the masked form alone.
type forms struct {
	files     []atomicfile.File
	gone      []string // files of an earlier run
	compact   bool
	loads     string // what loads the compact form
	noCompact string // why there is none
}

// write writes the forms. What describes the models of an earlier run goes in the same step,
// so that the numbers of a report always belong to the models beside it.
func (cmd *pruneCommand) write(f forms) error {
	for _, name := range []string{models.WeightsFile + ".index.json", reportFile, pageFile} {
		if f.gone = append(f.gone, name); exists(cmd.masked()) {
			f.gone = append(f.gone, filepath.Join(maskedDir, name))
		}
	}
	return cmd.store.Replace(f.files, f.gone...)
}

// keep writes what is left. It checks that both forms load, and say the same on a part of the
// data.
func (cmd *pruneCommand) keep(
	l *loaded, task *pruning.Task,
) func(ctx context.Context, left *models.Probe, r *reports.Report) error {
	return func(ctx context.Context, left *models.Probe, r *reports.Report) error {
		part, f, err := pruning.Selecting, forms{}, error(nil)
		if l.Translator != nil {
			f = cmd.translatorForms(left.Model())
		} else if f, err = cmd.forms(left); err != nil {
			return err
		} else {
			part = pruning.Reporting
		}
		dirs := []string{cmd.Out}
		if f.compact {
			dirs = append(dirs, cmd.masked())
		}
		if err := cmd.write(f); err != nil {
			return err
		}
		reference, err := models.NewReference(ctx, left.On(task.Parts[part]))
		if err != nil {
			return err
		}
		largest := 0.
		for _, dir := range dirs {
			difference, err := written(ctx, dir, task.Parts[part], reference)
			if err != nil {
				return err
			}
			largest = max(largest, difference)
		}
		r.Result.Difference = reports.Number(largest)
		r.Result.Masked, r.Result.Loads, r.Result.NoCompact = dirs[len(dirs)-1], f.loads, f.noCompact
		if f.compact {
			r.Result.Compact = cmd.Out
		}
		return nil
	}
}

// forms returns the forms of a pretrained model, beside the other files that it has.
func (cmd *pruneCommand) forms(left *models.Probe) (f forms, err error) {
	beside, err := besideWeights(cmd.Model)
	if err != nil {
		return f, err
	}
	config, err := left.Config()
	if err != nil {
		return f, err
	}
	beside = withConfig(beside, config)
	f.files = in("", beside, left.WriteMasked)
	compact, err := left.Compact()
	if err != nil {
		f.noCompact = err.Error()
		for _, file := range f.files {
			if path := filepath.Join(maskedDir, file.Path); exists(filepath.Join(cmd.Out, path)) { // of an earlier run
				f.gone = append(f.gone, path)
			}
		}
		return f, nil
	}
	small := in("", withConfig(beside, compact.Config), compact.Write)
	f.files = append(in(maskedDir, beside, left.WriteMasked), small...)
	f.compact, f.loads = true, compact.Loads
	return f, nil
}

// translatorForms returns the forms of a translator of attn train, each with its recipe: it
// tells which dates the model has learnt.
func (cmd *pruneCommand) translatorForms(m *models.Model) (f forms) {
	f.compact, f.files = true, append(m.Saved(""), m.Expand().Saved(maskedDir)...)
	for _, folder := range []string{"", maskedDir} {
		name := filepath.Join(folder, train.RecipeFile)
		if cmd.recipe == nil {
			f.gone = append(f.gone, name)
			continue
		}
		f.files = append(f.files, atomicfile.File{Path: name, Write: cmd.recipe.File().Write})
	}
	return f
}

// written loads a model that was written, and returns by how much its outputs differ from a
// reference. It is an error if that is not rounding.
func written(ctx context.Context, dir string, part *models.Probe, reference *models.Reference) (float64, error) {
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		return 0, err
	}
	again, err := part.Of(m)
	if err != nil {
		return 0, err
	}
	largest, scale, err := reference.Difference(ctx, again)
	if err != nil {
		return 0, err
	}
	return largest, pruning.Agree(largest, scale)
}

// in returns the files of a model in a folder of the directory.
func in(folder string, beside []atomicfile.File, weights func(io.Writer) error) []atomicfile.File {
	files := []atomicfile.File{{Path: filepath.Join(folder, models.WeightsFile), Write: weights}}
	for _, f := range beside {
		files = append(files, atomicfile.File{Path: filepath.Join(folder, f.Path), Write: f.Write})
	}
	return files
}

// withConfig returns files with another config.json.
func withConfig(files []atomicfile.File, config []byte) []atomicfile.File {
	files = slices.Clone(files)
	for i, f := range files {
		if f.Path == "config.json" {
			files[i].Write = func(w io.Writer) error {
				_, err := w.Write(config)
				return err
			}
		}
	}
	return files
}

// modulesFile names the parts of a pipeline of sentence-transformers.
const modulesFile = "modules.json"

// besideWeights are the files of a pretrained model that are not its weights: settings, the
// tokenizer, a template, and the other modules of a pipeline with all they have.
func besideWeights(dir string) ([]atomicfile.File, error) {
	files, err := copies(dir, "", func(name string) bool {
		kind := strings.ToLower(filepath.Ext(name))
		return slices.Contains([]string{".json", ".txt", ".model", ".spm", ".jinja"}, kind) &&
			!strings.HasSuffix(name, ".index.json") && name != reportFile && name != unfinishedFile
	})
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, modulesFile))
	if os.IsNotExist(err) {
		return files, nil
	}
	var modules []struct{ Path string }
	if err == nil {
		err = strictjson.Lenient(data, &modules)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if m.Path == "" || !filepath.IsLocal(m.Path) || !exists(filepath.Join(dir, m.Path)) {
			continue // old pipelines have no folder for what needs no settings
		}
		more, err := copies(dir, m.Path, func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// copies returns copies of the files of a folder in dir whose names are wanted.
func copies(dir, folder string, wanted func(name string) bool) (files []atomicfile.File, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !wanted(entry.Name()) {
			continue
		}
		name := filepath.Join(folder, entry.Name())
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil { // which follows a link
			return nil, err
		} else if info.IsDir() {
			continue
		}
		files = append(files, atomicfile.File{Path: name, Write: func(w io.Writer) error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(w, f)
			return err
		}})
	}
	return files, nil
}
