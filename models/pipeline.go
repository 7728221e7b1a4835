package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/quote"
)

// ErrNoPipeline is the error of LoadEmbedder for a directory without modules.json.
var ErrNoPipeline = errors.New("has no modules.json, which defines how hidden states are pooled into a vector; " +
	"want modules.json, or a pooling: Options.Pooling, or --pooling of attn embed, such as mean")

// LoadEmbedder loads a sentence-transformers pipeline from a directory: modules.json and the
// modules that it names, which are a transformer, a pooling, dense layers and a normalisation; a
// SparseEncoder; a StaticEmbedding; or, with Options.Route, those of a Router. With Options.Pooling, it
// loads a model and pools its hidden states.
//
// Errors: those of Load; a *FormatError about the files of the pipeline, among them a
// directory without modules.json.
func LoadEmbedder(dir string, o Options) (*Embedder, error) {
	o.encoder = true
	if o.Pooling != "" {
		p, err := PoolingByName(o.Pooling)
		if err != nil && o.Pooling != splade {
			return nil, fmt.Errorf("models: Options.Pooling is %w", err)
		}
		m, err := loadReader(dir, o)
		if err != nil {
			return nil, err
		}
		e := NewEmbedder(m, []Pooling{p})
		if o.Pooling == splade {
			return e, e.poolSplade(false, false)
		}
		return e, cmp.Or(e.setTask(""), e.readDimensions())
	}
	if IsLate(dir) && !hasM3(dir) {
		return nil, &FormatError{dir, errors.New("is a model of late interaction, whose vectors are those of tokens, " +
			"want LoadLateEmbedder, or attn rerank")}
	}
	list := filepath.Join(dir, PipelineFile)
	modules, err := readModules(dir)
	if err != nil {
		if why := modeldir.Explain(dir, configFile, PipelineFile); why != nil {
			return nil, &FormatError{dir, why}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmp.Or(missing(dir), error(&FormatError{dir, ErrNoPipeline}))
	}
	if err != nil {
		return nil, err
	}
	if modules, _, err = followRoute(dir, modules, o.Route); err != nil {
		return nil, err
	}
	if err := checkModules(modules); err != nil {
		return nil, &FormatError{list, err}
	}
	var e *Embedder
	var y tail
	var kinds []string
	for _, m := range modules {
		kinds = append(kinds, m.kind())
	}
	for i, m := range modules {
		at := filepath.Join(dir, m.Path)
		switch kinds[i] {
		case "Transformer", "MLMTransformer":
			e, err = loadTransformer(at, o, kinds[0], kinds[1])
		case "StaticEmbedding":
			e, err = loadStatic(at, o, slices.Contains(kinds, "Normalize"))
		case "SparseStaticEmbedding":
			e, err = loadWeights(at, o)
		case "Pooling":
			err = e.readPooling(at)
		case "SpladePooling":
			err = e.readSplade(at)
		case "Dense":
			err = y.readDense(at, path.Clean(m.Path), sentenceVector)
		case "Normalize":
			err = y.readNormalize(at, sentenceVector)
		}
		if err != nil {
			return nil, err
		}
		if y.layers == nil { // the pooling may have some
			y.layers, y.width = e.Layers, e.width
		}
	}
	e.Layers, e.width, e.params, e.files = y.layers, y.width, y.params, appendPipeline(nil, dir)
	kind := sentenceTransformer
	if e.sparse {
		kind = sparseEncoder
	}
	prompts, usual, first, err := readPrompts(dir, kind)
	e.Prompts, e.Prompt = prompts, prompts[usual]
	if err = cmp.Or(err, e.setTask(modules[0].Type)); err == nil && hasM3(dir) {
		err = e.readM3(dir)
	}
	if err = cmp.Or(err, e.readDimensions()); first > 0 && first < e.width {
		e.Layers, e.width = append(e.Layers, firstElements(first)), first
		e.Dimensions = slices.DeleteFunc(e.Dimensions, func(n int) bool { return n > first })
	}
	return e, err
}

// module is an entry of modules.json.
type module struct {
	Path, Type string
	Idx        int    // its number
	Name       string // the same
	Kwargs     []string
}

// readModules reads the modules.json of a directory.
func readModules(dir string) (list []module, err error) {
	return list, readJSON(filepath.Join(dir, PipelineFile), &list)
}

// checkModules returns an error for modules that LoadEmbedder does not support.
func checkModules(modules []module) error {
	for i, m := range modules {
		if err := m.checkPath(i); err != nil {
			return err
		}
	}
	before := ""
	for i, m := range modules {
		if known := following[before]; !slices.Contains(known, m.kind()) {
			return fmt.Errorf("module %d is %s, want %s", i, quote.Text(m.Type), cmp.Or(strings.Join(known, ", "), "no module behind "+before))
		}
		before = m.kind()
	}
	if slices.Contains(following[before], "Pooling") || before == "" || before == "MLMTransformer" {
		return fmt.Errorf("has %d modules, want a Transformer and a Pooling at least", len(modules))
	}
	return nil
}

// checkPath returns an error if the path of module i is not within the directory.
func (m module) checkPath(i int) error {
	if m.Path != "" && !(filepath.IsLocal(m.Path) && quote.Fit(m.Path)) {
		return fmt.Errorf("module %d has path %s, want one within the directory", i, quote.Text(m.Path))
	}
	return nil
}

// following are the classes of modules that may be behind a module, by its class; empty is the beginning. Dropout only
// matters in training.
var following = map[string][]string{
	"":                {"Transformer", "MLMTransformer", "StaticEmbedding", "SparseStaticEmbedding"},
	"Transformer":     {"Pooling", "SpladePooling"},
	"MLMTransformer":  {"SpladePooling"},
	"Pooling":         {"Dense", "Normalize", "Dropout"},
	"StaticEmbedding": {"Dense", "Normalize", "Dropout"},
	"Dense":           {"Dense", "Normalize", "Dropout"},
	"Normalize":       {"Dense", "Normalize", "Dropout"},
	"Dropout":         {"Dense", "Normalize", "Dropout"},
}

// transformerFolder returns the folder of the transformer according to modules.json. It is empty
// if that is the directory itself or unknown.
func transformerFolder(dir string) string {
	modules, err := readModules(dir)
	if err != nil || len(modules) == 0 || !filepath.IsLocal(modules[0].Path) {
		return ""
	}
	return modules[0].Path
}

// appendPipeline appends the paths of the files of a pipeline, if a directory has one:
// modules.json, related files beside it, and all files in the folders of modules.
func appendPipeline(files []string, dir string) []string {
	modules, err := readModules(dir)
	if err != nil && !errors.As(err, new(*FormatError)) { // LoadEmbedder reports invalid modules
		return files
	}
	files = appendExisting(files, dir, append([]string{PipelineFile, promptsFile, routeFile}, lengthFiles...)...)
	if len(modules) > 0 && modules[0].kind() == "Router" {
		if s, err := readRouter(dir, modules[0]); err == nil {
			for id := range s.types() {
				modules = append(modules, module{Path: path.Join(modules[0].Path, id)})
			}
		}
	}
	for _, m := range modules {
		if !filepath.IsLocal(m.Path) || filepath.Clean(m.Path) == "." { // the model's own folder
			continue
		}
		folder := filepath.Join(dir, m.Path)
		entries, _ := os.ReadDir(folder) // old pipelines have no folder for a module without settings
		for _, e := range entries {
			if !e.IsDir() {
				files = append(files, filepath.Join(folder, e.Name()))
			}
		}
	}
	return files
}

// appendExisting appends the paths of the named files that exist in a directory.
func appendExisting(files []string, dir string, names ...string) []string {
	for _, name := range names {
		if path := filepath.Join(dir, name); !slices.Contains(files, path) {
			if _, err := os.Stat(path); err == nil {
				files = append(files, path)
			}
		}
	}
	return files
}

// kind returns the class name of a sentence-transformers module, whose package path differs
// between versions. It is empty for a class of another package.
func (m module) kind() string {
	if m.Type == customTransformer { // setTask checks what the model is
		return "Transformer"
	}
	if !strings.HasPrefix(m.Type, "sentence_transformers.") {
		return ""
	}
	return m.Type[strings.LastIndex(m.Type, ".")+1:]
}

// PipelineFile lists the modules of a sentence-transformers pipeline; other directories lack it.
const PipelineFile = "modules.json"
