package main

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/hub"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/terminal"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// Short names for functions of other packages that most commands use.
var (
	quoted = quote.Shell
	listed = flags.Listed

	isTerminal = terminal.Is
	columns    = terminal.Columns
	terminalOf = terminal.For

	checkText = input.Check

	exists  = atomicfile.Exists
	version = bench.Version
)

// deref returns the value of a text flag, or "" if it is not given.
func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// recordError returns the error for a text of the command line.
func recordError(number int, err error) error {
	return &input.Error{Name: "argument", Line: number, Err: err}
}

// findModels replaces the names of models on the command line by their directories: names on the Hub by directories in
// the cache of huggingface_hub. Its error names the commands that make a directory, because a first attempt is often a
// name on the Hub.
func findModels(parsed *kong.Context) (err error) {
	for _, v := range flags.Given(parsed) {
		if v.Tag.PlaceHolder != "DIR" || v.Tag.Has("writes") || v.Tag.Has("run") {
			continue
		}
		names := flags.Texts(v.Target)
		for i, name := range names {
			dir, missing := models.Find(name)
			if errors.Is(missing, fs.ErrNotExist) {
				missing = noModel(name)
			}
			names[i], err = cmp.Or(dir, name), cmp.Or(err, missing)
		}
		if list, ok := v.Target.Addr().Interface().(*[]string); ok {
			*list = names
		} else {
			v.Target.SetString(names[0])
		}
	}
	return err
}

// noModel returns the error for the directory of a model that does not exist.
func noModel(name string) error {
	if why := modeldir.Explain(name); why != nil {
		return &input.Error{Name: name, Err: why}
	}
	fetch := name
	if hub.CheckName(name) != nil {
		fetch = "NAME"
	}
	return input.Errorf(name, "no such directory, and no model in the cache of the Hub; "+
		"attn fetch %s downloads a pretrained model, attn train --out DIR trains a translator", fetch)
}

// load loads a model from a directory. It returns a usage error if the command would overwrite one
// of the model's files.
func load[M interface{ Files() []string }](c console, from func(string, models.Options) (M, error), dir string, o models.Options) (M, error) {
	m, err := from(dir, o)
	if err == nil {
		err = c.writes.Spare(dir, m.Files())
	}
	if err != nil {
		var none M
		return none, err
	}
	for _, name := range o.Allowed {
		c.say("warning: %s: setting %s is ignored, which may change the result", dir, name)
	}
	return m, nil
}

// languageFlags are for commands that translate.
type languageFlags struct {
	From string `help:"Code of the language of sources (default that of the directory)." placeholder:"CODE" group:"Languages" needs:"model"`
	To   string `help:"Code of the language of targets, such as fra_Latn (NLLB) or __fr__ (M2M100)." placeholder:"CODE" group:"Languages" needs:"model"`
}

// choose returns a model for the languages.
func (f languageFlags) choose(m *models.Model) (*models.Model, error) {
	if f == (languageFlags{}) {
		return m, nil
	}
	return m.WithLanguages(f.From, f.To)
}

// loadTranslator loads an encoder-decoder.
func loadTranslator(c console, dir string, o models.Options, languages languageFlags) (*models.Model, error) {
	m, err := load(c, models.Load, dir, o)
	if err != nil {
		return nil, err
	}
	if m.Sizes().Decoder == nil {
		return nil, input.Errorf(dir, "is %s model, want an encoder-decoder, such as Marian or T5, or a model of attn train", quote.A(m.Family.Name))
	}
	if _, err = m.Tokenizer(); err != nil {
		return nil, err
	}
	return languages.choose(m)
}

// openRecorded loads a model whose attention can be recorded. generate is the number of tokens that a decoder adds
// to each text.
func openRecorded(dir string, c console, generate int, f settingFlag, languages languageFlags) (s recording.Model, err error) {
	var m *models.Model
	var late *models.LateEmbedder
	if o := (models.Options{Allowed: f.AllowSetting}); models.IsLate(dir) {
		if late, err = load(c, models.LoadLateEmbedder, dir, o); err == nil {
			m = late.Model
		}
	} else {
		m, err = load(c, models.Load, dir, o)
	}
	if err == nil {
		m, err = languages.choose(m)
	}
	if err != nil {
		return s, err
	}
	s, err = recording.New(dir, m, generate, c.err)
	s.Late = late
	return s, err
}

// loadTokenizer is load for a tokenizer without its model.
func loadTokenizer(c console, dir string) (*tokenizer.Tokenizer, error) {
	return load(c, func(dir string, _ models.Options) (*tokenizer.Tokenizer, error) { return tokenizer.Load(dir) }, dir, models.Options{})
}

// settingFlag is for all commands that load a model.
type settingFlag struct {
	AllowSetting []string `help:"Setting of config.json that attn does not know, and that does not change results: ignore it, or several, comma-separated (default none)." placeholder:"NAME" group:"Model" needs:"model"`
}

// formatFlag is for commands that run a model and do not change it.
type formatFlag struct {
	settingFlag
	Format tensor.Format `help:"Number format of the weights and of products with them: float32; bfloat16, twice as fast with AVX512-BF16 (AMD), more with AMX; int8, three times as fast with AVX512-VNNI; bfloat16-weights, exact for bfloat16 files, which makes only generation faster. See docs/models.md for their errors (default float32)." placeholder:"NAME" group:"Model"`
}

// options returns the options of Load.
func (f formatFlag) options() models.Options {
	return models.Options{Format: f.Format, Allowed: f.AllowSetting}
}
