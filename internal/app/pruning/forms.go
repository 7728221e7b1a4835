package pruning

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
)

// forms are the files of a pruned model: its compact form and, in a folder, its masked form; or the masked
// form alone.
type forms struct {
	files     []atomicfile.File
	gone      []string // files of an earlier run
	compact   bool
	loads     string // programs that load the compact form, for users
	noCompact string // why there is no compact form
}

// inFolder returns the files of a form in a folder of the directory.
func inFolder(folder string, others []atomicfile.File, weights func(io.Writer) error) []atomicfile.File {
	files := []atomicfile.File{{Path: filepath.Join(folder, models.WeightsFile), Write: weights}}
	for _, f := range others {
		files = append(files, atomicfile.File{Path: filepath.Join(folder, f.Path), Write: f.Write})
	}
	return files
}

// with returns files with another file of a name.
func with(files []atomicfile.File, name string, text []byte) []atomicfile.File {
	return replaced(files, atomicfile.File{Path: name, Write: func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}})
}

// replaced returns files with others in place of those with the same path.
func replaced(files []atomicfile.File, others ...atomicfile.File) []atomicfile.File {
	files = slices.DeleteFunc(slices.Clone(files), func(f atomicfile.File) bool {
		return slices.ContainsFunc(others, func(o atomicfile.File) bool { return o.Path == f.Path })
	})
	return append(files, others...)
}

// otherFiles returns copies of the files of a pretrained model other than its weights: settings, tokenizer,
// chat template, and the folders of a pipeline's modules. modelFiles are the paths of the files that the
// model was read from.
func otherFiles(dir string, modelFiles []string) (files []atomicfile.File, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		name := entry.Name()
		known := slices.Contains([]string{".json", ".txt", ".model", ".spm", ".jinja"}, strings.ToLower(filepath.Ext(name)))
		if known && !strings.HasSuffix(name, ".index.json") && name != ReportFile && name != UnfinishedFile {
			paths = append(paths, name)
		}
	}
	for _, path := range modelFiles {
		if name, err := filepath.Rel(dir, path); err == nil && filepath.Dir(name) != "." && !slices.Contains(paths, name) {
			paths = append(paths, name)
		}
	}
	for _, name := range paths {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil { // which follows a link
			return nil, err
		} else if !info.IsDir() {
			files = append(files, atomicfile.Copy(dir, name))
		}
	}
	return files, nil
}
