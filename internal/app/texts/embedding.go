package texts

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
)

// Embedding configures an embedder by the flags of attn embed.
type Embedding struct {
	Pooling    *string `help:"Pooling of the hidden states into a vector, for a model without pooling settings: ${poolings_or}." enum:"${poolings}" placeholder:"NAME"`
	Normalize  bool    `help:"With --pooling, divide each vector by its length." needs:"pooling"`
	Route      string  `help:"Route through the modules of a directory that has several, such as query and document, or the task whose adapter is added to the weights (default from the model directory)." placeholder:"NAME" excludes:"pooling"`
	Prompt     *string `help:"Prefix for each text (default from the model directory)." placeholder:"TEXT" xor:"prompt"`
	PromptName *string `help:"Prefix for each text, by its name in the model directory." placeholder:"NAME" xor:"prompt"`
}

// Load loads an embedder that has a tokenizer.
//
// Errors: those of models.LoadEmbedder, and *flags.Error for a prompt that does not fit the model.
func (o Embedding) Load(dir string, l models.Options) (*models.Embedder, error) {
	if o.Pooling != nil {
		l.Pooling = *o.Pooling
	}
	l.Route = o.Route
	e, err := models.LoadEmbedder(dir, l)
	if err != nil {
		return nil, err
	}
	if o.Normalize {
		e.Layers = append(e.Layers, models.Normalize())
	}
	if _, err := e.Model.Tokenizer(); err != nil {
		return nil, err
	}
	return e, o.setPrompt(e, dir)
}

// setPrompt sets the prefix of texts. A prompt equal to the name of a prompt is an error: the name as a prefix
// would give plausible but wrong vectors.
func (o Embedding) setPrompt(e *models.Embedder, dir string) error {
	if o.Prompt == nil && o.PromptName == nil {
		return nil
	}
	prompts, _, err := models.Prompts(dir)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(prompts))
	model := quote.Shell(dir)
	if o.Prompt != nil {
		e.Prompt = *o.Prompt
		if slices.Contains(names, e.Prompt) {
			return flags.Errorf("--prompt %s: %s has a prompt of that name, want --prompt-name %[1]s, or another text",
				quote.Shell(e.Prompt), model)
		}
		return nil
	}
	name := quote.Shell(*o.PromptName)
	prompt, ok := prompts[*o.PromptName]
	switch e.Prompt = prompt; {
	case len(names) == 0:
		return flags.Errorf("--prompt-name %s: %s names no prompts", name, model)
	case !ok:
		return flags.Errorf("--prompt-name %s: %s has the prompts %s", name, model, strings.Join(names, ", "))
	}
	return nil
}

// CountCut returns the filter with a count of the truncated texts that it has written.
func CountCut(f filter.Filter[Vector]) (filter.Filter[Vector], *int) {
	cut, write := new(int), f.Write
	f.Write = func(w io.Writer, l *filter.Line[Vector]) error {
		if l.Value.Cut {
			*cut++
		}
		return write(w, l)
	}
	return f, cut
}
