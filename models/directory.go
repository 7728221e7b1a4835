package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// directory is a model directory: its settings, and the headers of its tensors.
type directory struct {
	settings *Settings // config.json
	r        *safetensors.Reader
	tokens   int           // Options.Tokens: most tokens of a sequence, 0 for the limit in the settings
	format   tensor.Format // of packed matrices; 0 for parameters
	encoder  bool          // Options.encoder
	route    string        // Options.Route
}

// openDirectory opens a directory. check is called before the weights are opened.
func openDirectory(dir string, check func(*Settings) error) (*directory, error) {
	if why := modeldir.Adapter(dir); why != nil {
		return nil, &FormatError{dir, why}
	}
	settings, err := openSettings(filepath.Join(dir, configFile))
	if err != nil {
		return nil, err
	}
	if err := check(settings); err != nil {
		return nil, &FormatError{settings.path, err}
	}
	if err := wantWeights(dir); err != nil {
		return nil, err
	}
	r, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	return &directory{settings: settings, r: r}, nil
}

// openWeights opens the weights of a directory, which a killed process may have left beside their place.
func openWeights(dir string) (*safetensors.Reader, error) {
	if path := filepath.Join(dir, WeightsFile); atomicfile.Exists(path) {
		return atomicfile.Read(path, safetensors.Open)
	}
	return safetensors.Open(dir)
}

// files returns the files of a directory, including its pipeline and the files of the tokenizer
// t, or the file that the error untokened refers to.
func (s *directory) files(t *tokenizer.Tokenizer, untokened error) []string {
	dir := filepath.Dir(s.settings.path)
	weights := s.r.Files()
	if path := filepath.Join(dir, WeightsFile); atomicfile.Exists(path) {
		weights = []string{path}
	}
	files := append([]string{s.settings.path}, weights...)
	var bad *tokenizer.FormatError
	switch {
	case t != nil:
		files = append(files, t.Files()...)
	case errors.As(untokened, &bad) && bad.Path != dir:
		files = append(files, bad.Path)
	}
	files = appendExisting(files, dir, generationFile, tokenizerConfigFile, "special_tokens_map.json", "chat_template.jinja")
	return appendPipeline(files, dir)
}

// openSettings reads a settings file.
func openSettings(path string) (*Settings, error) {
	data, err := atomicfile.ReadFile(path, atomicfile.Small)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	s := &Settings{path: path, wrong: new([]error)}
	if err := s.parse(data); err != nil {
		return nil, &FormatError{path, err}
	}
	return s, nil
}

// readJSON decodes a JSON file.
func readJSON(path string, to any) error {
	data, err := atomicfile.ReadFile(path, atomicfile.Small)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if err := strictjson.Unmarshal(data, to); err != nil {
		return &FormatError{path, err}
	}
	return nil
}

// optionalSettings is openSettings for a file that may be missing. The result then has no values: values is nil.
func optionalSettings(path string) (*Settings, error) {
	s, err := openSettings(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Settings{path: path, read: map[string]bool{}, wrong: new([]error)}, nil
	}
	return s, err
}

// plan calls a constructor with a Builder that checks the settings against the tensors. The
// result has nil tensors.
func plan[T any](s *directory, construct func(*Builder) T) (T, *Builder, error) {
	var none T
	b := newBuilder(s, true)
	x, err := attempt(b, construct)
	if err != nil {
		return none, nil, err
	}
	err = b.finish()
	var mismatch *statedict.MismatchError
	switch {
	case err == nil:
		return x, b, nil
	case errors.As(err, new(*safetensors.FormatError)):
		return none, nil, err
	case errors.As(err, &mismatch):
		return none, nil, &safetensors.FormatError{Path: s.r.Path(), Err: mismatch}
	}
	return none, nil, &FormatError{s.settings.path, err}
}

// attempt calls a constructor and checks that all settings have been read, unless the tensors are those of another model.
func attempt[T any](b *Builder, construct func(*Builder) T) (x T, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil, hopeless: // finish has an error
		default:
			panic(e)
		}
	}()
	x = construct(b)
	b.checkLost(b.settings)
	return x, b.settings.check()
}

// build calls a constructor again after plan has succeeded, and reads the tensors.
func build[T any](s *directory, construct func(*Builder) T) (T, *Builder, error) {
	none, _, err := plan(s, construct)
	if err != nil {
		return none, nil, err
	}
	b := newBuilder(s, false)
	x := construct(b)
	if err := b.finish(); err != nil {
		return none, nil, fmt.Errorf("models: %s: two builds of the model differ: %w", s.settings.path, err)
	}
	if err := b.load(); err != nil {
		return none, nil, err
	}
	return x, b, cmp.Or(b.addLoRA(), b.checkTies())
}

// load reads the tensors of the table.
func (b *Builder) load() error {
	b.skip.Names = func(nn.Module) (nn.StateDict, error) { return b.dict, nil }
	return statedict.LoadFrom(b.r, nil, b.skip)
}
