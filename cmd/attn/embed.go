package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/texts"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

type embedCommand struct {
	Model       string  `required:"" help:"Directory of a pretrained encoder." placeholder:"DIR"`
	JSON        bool    `name:"json" help:"Write a JSON object for each line, with its vector." xor:"form"`
	TSV         bool    `name:"tsv" help:"Write the numbers of each vector in columns, and the error in another." xor:"form"`
	NPY         string  `name:"npy" help:"Write a NumPy array [lines width]." placeholder:"FILE" xor:"form" writes:"file"`
	Safetensors string  `name:"safetensors" help:"Write a safetensors file with the tensor vectors [lines width]." placeholder:"FILE" xor:"form" writes:"file"`
	Strict      bool    `help:"Stop at the first line that cannot be embedded."`
	Pooling     *string `help:"How hidden states become a vector, for a directory that does not say it: ${poolings_or}." enum:"${poolings}" placeholder:"NAME"`
	Normalize   bool    `help:"With --pooling, divide each vector by its length." needs:"pooling"`
	Prompt      *string `help:"What each text begins with (default as the directory says)." placeholder:"TEXT" xor:"prompt"`
	PromptName  *string `help:"Name of the prompt of the directory with which each text begins." placeholder:"NAME" xor:"prompt"`
	File        string  `arg:"" optional:"" help:"Text file with a text on each line; without it, standard input." placeholder:"FILE" stdin:""`
}

func (embedCommand) Help() string {
	return `Examples:

  attn embed --model all-MiniLM-L6-v2 texts.txt > vectors.jsonl
  attn embed --model all-MiniLM-L6-v2 --npy vectors.npy texts.txt
  attn embed --model bert-base-uncased --pooling mean --normalize < texts.txt
  attn embed --model e5-small-v2 --prompt "query: " questions.txt
  attn embed --model Qwen3-Embedding-0.6B --prompt-name query questions.txt

Standard output gets a JSON array for each line, in the order of the input. One that
cannot be embedded becomes {"error": "…"}, or ends the run with --strict, and always with
--npy and --safetensors, which have no place for an error. What a line becomes does not
depend on the others. docs/scale.md has more.

Pooling, normalisation, the longest text and the prompt are those of the pipeline of
sentence-transformers in the directory. Longer texts are cut off, and standard error
tells how many.`
}

func (cmd *embedCommand) Run(ctx context.Context, c console) error {
	const invitation = "type texts to embed, one per line"
	if cmd.NPY == "" && cmd.Safetensors == "" {
		return runLines(ctx, c, cmd, cmd.File, invitation)
	}
	e, err := cmd.embedder(c)
	if err != nil {
		return err
	}
	return texts.WriteArray(cmd.NPY, cmd.Safetensors, e.Width(), func(spool io.Writer) (int, error) {
		c := c
		c.out = spool
		f := texts.Vectors(e)
		f.Strict, f.Write = true, texts.WriteNumbers // an array has no place for an error
		s, err := runStream(ctx, c, embeddingStream(f, e, c), cmd.File, invitation)
		return s.Lines, err
	})
}

func (cmd *embedCommand) streams() error {
	if cmd.File != "" || cmd.NPY != "" || cmd.Safetensors != "" {
		return errNotLines
	}
	return nil
}

func (cmd *embedCommand) modelDir() string { return cmd.Model }

func (cmd *embedCommand) modelFiles() ([]string, error) { return pretrainedFiles(cmd.Model, true) }

func (cmd *embedCommand) stream(c console) (lineStream, error) {
	e, err := cmd.embedder(c)
	if err != nil {
		return nil, err
	}
	f := texts.Vectors(e)
	f.Strict = cmd.Strict
	switch {
	case cmd.JSON:
		f.Write = filter.JSON[texts.Vector]
	case cmd.TSV:
		f.Write = filter.TSV(e.Width(), texts.Vector.Columns)
	}
	return embeddingStream(f, e, c), nil
}

// embeddingStream returns the stream of a filter, which says at the end how many texts were
// cut off.
func embeddingStream(f filter.Filter[texts.Vector], e *models.Embedder, c console) lineStream {
	cut, write := 0, f.Write
	f.Write = func(w io.Writer, l *filter.Line[texts.Vector]) error {
		if l.Value.Cut {
			cut++
		}
		return write(w, l)
	}
	s := newStream(f, c)
	return func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error) {
		cut = 0
		stats, err := s(ctx, in, name, out)
		if cut > 0 {
			fmt.Fprintf(c.err, "%d of %d texts were cut off at %d tokens\n", cut, stats.Lines, e.MostTokens)
		}
		return stats, err
	}
}

// embedder loads the model, which has a tokenizer.
func (cmd *embedCommand) embedder(c console) (*models.Embedder, error) {
	e, err := cmd.load(c)
	if err != nil {
		return nil, err
	}
	if _, err := e.Model.Tokenizer(); err != nil {
		return nil, err
	}
	return e, cmd.setPrompt(e)
}

// setPrompt sets what texts begin with. A prompt that is the name of another one is an error:
// vectors of texts behind that word would look right and be wrong.
func (cmd *embedCommand) setPrompt(e *models.Embedder) error {
	if cmd.Prompt == nil && cmd.PromptName == nil {
		return nil
	}
	prompts, _, err := models.Prompts(cmd.Model)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(prompts))
	if cmd.Prompt != nil {
		e.Prompt = *cmd.Prompt
		if slices.Contains(names, e.Prompt) {
			return usage("--prompt %s: %s has a prompt of that name, want --prompt-name %[1]s, or another text", quoted(e.Prompt), quoted(cmd.Model))
		}
		return nil
	}
	prompt, ok := prompts[*cmd.PromptName]
	switch e.Prompt = prompt; {
	case len(names) == 0:
		return usage("--prompt-name %s: %s names no prompts", quoted(*cmd.PromptName), quoted(cmd.Model))
	case !ok:
		return usage("--prompt-name %s: %s has the prompts %s", quoted(*cmd.PromptName), quoted(cmd.Model), strings.Join(names, ", "))
	}
	return nil
}

func (cmd *embedCommand) load(c console) (*models.Embedder, error) {
	if cmd.Pooling == nil {
		e, err := load(c, models.LoadEmbedder, cmd.Model, models.Options{Weights: tensor.Float32})
		if errors.Is(err, models.ErrNoPipeline) {
			err = fmt.Errorf("%w: --pooling mean, say", err)
		}
		return e, err
	}
	m, err := load(c, models.Load, cmd.Model, models.Options{Weights: tensor.Float32})
	if err != nil {
		return nil, err
	}
	p, err := models.PoolingByName(*cmd.Pooling)
	if err != nil {
		return nil, err
	}
	var behind []models.Layer
	if cmd.Normalize {
		behind = append(behind, models.Normalize())
	}
	return models.NewEmbedder(m, []models.Pooling{p}, behind...), nil
}
