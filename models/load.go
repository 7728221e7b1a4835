package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// Options configures Load. The zero value uses all families of this package.
type Options struct {
	// Families is the table of families. Nil means Families().
	Families Table
	// Tokens is the maximum length of a sequence in a decoder with rotary positions. With the
	// scalings "dynamic" and "longrope", the frequencies depend on it; with others it only sets
	// the limit, which may differ from the length in training. 0 means the limit in config.json,
	// which for "longrope" is the length before scaling.
	Tokens int
	// Format is the number format of the matrices of weights and of their products; 0 means tensor.Float32. Matrices are
	// packed for inference and for the current processor. Memory limits the speed of generation, and multiply-adds that
	// of prompts and encoders: tensor.BFloat16Weights makes the former faster, tensor.BFloat16 and tensor.Int8 both, see
	// tensor.Packed. With the latter two, layers of attention compute in bfloat16, which is also the default format of
	// their caches. Norms and activations are computed in float32.
	Format tensor.Format
	// Allowed are names of unknown settings in config.json that Load ignores, such as "text_config.note", and of those
	// in files beside it, such as "tokenizer_config.json:note" and "generation_config.json:note". They must have no
	// effect on the result. A name that is not in the file, or is known, is an error.
	Allowed []string
	// Pooling is the name of the pooling of LoadEmbedder, such as "mean", for a directory whose modules.json does not say;
	// one that does is then not read. "splade" makes a sparse vector of the logits of masked words. Other functions do
	// not use it.
	Pooling string
	// Route is the route of LoadEmbedder through a Router in modules.json, such as "query"; empty means its default
	// route. Of Jina Embeddings 3 as published, it is the task whose adapter Load adds to the weights, such as
	// "retrieval.query", and whose prompt LoadEmbedder sets; empty means none.
	Route string
	// Trainable loads the weights as float32 parameters instead of packing them. Such a model can
	// be trained, pruned, measured by package probe, saved and exported, but runs more slowly. Format must be 0 or
	// tensor.Float32.
	Trainable bool

	encoder bool // an encoder–decoder is loaded without its decoder, if the family can
}

// Model is a model from a directory, or a new one from NewTranslator.
//
// Several goroutines may use a Model at the same time, each with its own tape, Session and State, as
// long as nothing changes it: training does. One call uses all processors (GOMAXPROCS), and calls at
// the same time share them; their number does not change the bits.
type Model struct {
	Network
	Dir      string // empty for a new model
	Family   Family
	Settings *Settings

	tokenizer  *tokenizer.Tokenizer // nil if there is none
	untokened  error                // why there is no tokenizer
	language   []int                // code of the language with which targets begin, nil if none was chosen
	params     nn.Vars
	dict       nn.StateDict
	lost       lost            // removed heads
	tied       []string        // tensors in the file that duplicate another one
	options    Options         // of Load
	generation *Settings       // generation_config.json, nil if there is none
	tokens     *Settings       // tokenizer_config.json, nil if there is none
	limit      float64         // tokens to which the tokenizer truncates, +Inf without a limit
	changed    map[string]bool // tensors of the file that differ from those in the directory
	files      []string
	beside     []atomicfile.File // the files that Save writes besides the weights and config.json
}

// newModel returns a model that a Builder has built.
func newModel(n Network, b *Builder, f Family, o Options) *Model {
	m := &Model{Network: n, Family: f, Settings: b.Config, params: b.params, dict: b.dict, lost: b.lost, options: o}
	for _, tie := range b.ties {
		m.tied = append(m.tied, tie[0])
	}
	return m
}

// WantTrainable returns an error of an operation that needs Options.Trainable: if matrices are packed rather than
// parameters.
func (m *Model) WantTrainable(op string) error {
	if m.options.Trainable {
		return nil
	}
	return &tensor.ValueError{
		Op: op, Arg: "the model of " + quote.Name(m.Dir),
		Got: "packed for inference", Want: "one loaded with models.Options{Trainable: true}",
	}
}

// FormatError is an error in a file of a model or in its directory. For errors in weights and
// tokenizers, see packages safetensors and tokenizer.
type FormatError struct {
	Path string
	Err  error
}

// Error returns the path and the error in the file.
func (e *FormatError) Error() string { return "models: " + quote.Name(e.Path) + ": " + e.Err.Error() }

// Unwrap returns the error without the path.
func (e *FormatError) Unwrap() error { return e.Err }

const (
	// configFile contains the settings of a model.
	configFile = "config.json"
	// tokenizerConfigFile contains the settings of its tokenizer.
	tokenizerConfigFile = "tokenizer_config.json"
)

// Load reads the model in a directory: config.json, and weights of type F32, F16 or BF16 in
// model.safetensors or in the files listed in model.safetensors.index.json, or without these in
// pytorch_model.bin or its index: see safetensors.Open. It also reads the tokenizer; without one,
// the model accepts token ids only.
//
// Errors: a *FormatError about config.json or the directory; a *safetensors.FormatError
// about the weights, which wraps a *statedict.MismatchError if tensors are missing, left over or
// of another shape; an
// error of the operating system, wrapped. Nothing is allocated for a model whose settings do not
// fit its files.
func Load(dir string, o Options) (*Model, error) {
	d, family, err := open(dir, o)
	if err != nil {
		return nil, err
	}
	defer d.r.Close()
	network, b, err := build(d, family.New)
	if err != nil {
		return nil, err
	}
	m := newModel(network, b, family, o)
	m.Dir = dir
	m.tokenizer, m.untokened = tokenizer.Load(dir)
	if err := cmp.Or(m.wantVocabularies(), m.readBeside()); err != nil {
		return nil, err
	}
	if id, given, err := m.generationToken(forcedToken); given && err == nil && m.tokenizer != nil {
		code, _ := m.tokenizer.Token(id)
		if other, err := m.WithLanguages("", code); err == nil { // or else it is not the code of a language
			m = other
		}
	}
	m.files = d.files(m.tokenizer, m.untokened)
	for _, path := range m.files[1:] { // after config.json
		name, err := filepath.Rel(dir, path)
		weights := name == WeightsFile || strings.HasSuffix(name, ".safetensors.index.json") || slices.Contains(d.r.Files(), path)
		if err == nil && !weights {
			m.beside = append(m.beside, atomicfile.Copy(dir, name))
		}
	}
	return m, m.checkIdentity(d.r.Metadata())
}

// Files returns the paths of the files that the model was read from, and of the files of its
// tokenizer, generation settings and pipeline.
func (m *Model) Files() []string { return slices.Clone(m.files) }

// Allowed returns Options.Allowed, to load a copy of the model.
func (m *Model) Allowed() []string { return slices.Clone(m.options.Allowed) }

// Params returns the parameters under their names in the file. If one tensor of the file stores
// several parameters, their names end in ".0", ".1" and so on.
//
// It panics with a *tensor.ValueError if the model was loaded without Options.Trainable. Its
// matrices are then not parameters, and training or saving only the others would be a mistake.
func (m *Model) Params() nn.Params {
	if err := m.WantTrainable("models: Params"); err != nil {
		panic(err)
	}
	return m.params.Params()
}

// StateDict returns the layout of the tensors in the file, with which statedict.Save writes a file that
// other programs can read:
//
//	statedict.Save(path, m, statedict.SaveOptions{Names: models.StateDict})
func StateDict(m nn.Module) (nn.StateDict, error) {
	model, ok := m.(*Model)
	if !ok {
		return nil, fmt.Errorf("models: StateDict: %T is not a *models.Model", m)
	}
	return slices.Clone(model.dict), model.WantTrainable("models: StateDict")
}

// Tokenizer returns the tokenizer of the directory.
//
// Errors: those of tokenizer.Load if there is no tokenizer.
func (m *Model) Tokenizer() (*tokenizer.Tokenizer, error) { return m.tokenizer, m.untokened }

// open reads config.json and the headers of the weights.
func open(dir string, o Options) (*directory, Family, error) {
	if o.Families == nil {
		o.Families = Families()
	}
	var family Family
	if o.Tokens < 0 || o.Tokens > mostSize {
		return nil, family, fmt.Errorf("models: Options.Tokens is %d, want 0 to %d", o.Tokens, mostSize)
	}
	format := cmp.Or(o.Format, tensor.Float32)
	if err := format.Check(); err != nil {
		return nil, family, fmt.Errorf("models: Options.Format is %w", err)
	}
	if o.Trainable && format != tensor.Float32 {
		return nil, family, fmt.Errorf("models: Options.Format is %v, want float32 for Options.Trainable", format)
	}
	d, err := openDirectory(dir, func(s *Settings) (err error) {
		family, err = o.familyOf(s)
		return err
	})
	if err != nil {
		if modules, _ := readModules(dir); len(modules) > 0 && !strings.HasSuffix(modules[0].kind(), "Transformer") && modules[0].kind() != "" {
			err = &FormatError{dir, fmt.Errorf("is a pipeline that begins with a %s, not with a Transformer; LoadEmbedder and attn embed read it", modules[0].kind())}
		} else if folder := transformerFolder(dir); folder != "" && errors.Is(err, fs.ErrNotExist) {
			err = &FormatError{dir, fmt.Errorf("is a pipeline whose transformer is in %[1]s; load that directory, or use LoadEmbedder for the pipeline", filepath.Join(dir, folder))}
		} else if why := modeldir.Explain(dir, configFile); why != nil {
			err = &FormatError{dir, why}
		} else if gone := missing(dir); gone != nil {
			err = gone
		}
		return nil, family, err
	}
	if d.tokens, d.encoder, d.route = o.Tokens, o.encoder, o.Route; !o.Trainable {
		d.format = format
	}
	return d, family, nil
}

// missing returns an error with advice if a directory does not exist.
func missing(dir string) error {
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	name := "NAME"
	if filepath.IsLocal(dir) && strings.Count(filepath.ToSlash(dir), "/") < 2 {
		name = quote.Shell(dir)
	}
	return fmt.Errorf("models: %w; models.Find finds a model in the cache of the Hub, and attn fetch %s downloads one", err, name)
}

// familyOf returns the family that settings name, and marks those as read that have no effect in it.
func (o *Options) familyOf(s *Settings) (Family, error) {
	family, err := o.Families.named(s)
	s.Ignore(harmless...)
	s.Ignore(family.Harmless...)
	s.ignoreCode(family.Code)
	s.allowed(*o)
	return family, err
}

// foreign are weight files of other programs, with a description of each.
var foreign = []struct{ name, what string }{
	{"tf_model.h5", "TensorFlow"}, {"flax_model.msgpack", "Flax"}, {"model.ckpt.index", "TensorFlow"},
}

// wantWeights returns an error with advice if a directory has weights only in formats that attn
// does not read.
func wantWeights(dir string) error {
	for _, name := range []string{"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"} {
		if path := filepath.Join(dir, name); atomicfile.Exists(path) {
			return nil // opening the file reports errors in it
		}
	}
	for _, p := range foreign {
		if _, err := os.Stat(filepath.Join(dir, p.name)); err == nil {
			return &FormatError{dir, fmt.Errorf("has its weights in %s (%s), want model.safetensors; in Python, "+
				"transformers.AutoModel.from_pretrained(DIR).save_pretrained(OUT) writes it, with the class of the model's head in place of AutoModel", p.name, p.what)}
		}
	}
	return &FormatError{dir, errors.New("has no model.safetensors, model.safetensors.index.json or pytorch_model.bin")}
}

// checkTies returns an error unless tied tensors are equal.
func (b *Builder) checkTies() error {
	for _, tie := range b.ties {
		info, _ := b.r.Lookup(tie[0])
		same, there := b.r.Lookup(tie[1])
		bad := func(format string, args ...any) error {
			return &safetensors.FormatError{Path: b.r.Path(), Err: fmt.Errorf("tensor %s "+format, append([]any{quote.Text(tie[0])}, args...)...)}
		}
		if !there || !slices.Equal(info.Shape, same.Shape) {
			return bad("has shape %v, but config.json ties it to %s of shape %v", info.Shape, quote.Text(tie[1]), same.Shape)
		}
		n := info.Len()
		const most = 1 << 13
		errs := make([]error, (n+most-1)/most)
		par.For(len(errs), 16, func(lo, hi int) {
			x, y := make([]float32, most), make([]float32, most)
			for i := lo; i < hi; i++ {
				at := i * most
				x, y := x[:min(most, n-at)], y[:min(most, n-at)]
				if errs[i] = errors.Join(b.r.ReadFloat32s(tie[0], x, at), b.r.ReadFloat32s(tie[1], y, at)); errs[i] != nil {
					return
				}
				for j := range x {
					if math.Float32bits(x[j]) != math.Float32bits(y[j]) {
						errs[i] = bad("differs from %s at element %d, but config.json ties them (tie_word_embeddings)",
							quote.Text(tie[1]), at+j)
						return
					}
				}
			}
		})
		if err := cmp.Or(errs...); err != nil {
			return err
		}
	}
	return nil
}
