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
	TSV         bool    `name:"tsv" help:"Write the numbers of each vector in columns, with the error in the last column." xor:"form"`
	NPY         string  `name:"npy" help:"Write a NumPy array [lines width]." placeholder:"FILE" xor:"form" writes:"file"`
	Safetensors string  `name:"safetensors" help:"Write a safetensors file with the tensor vectors [lines width]." placeholder:"FILE" xor:"form" writes:"file"`
	Strict      bool    `help:"Stop at the first line that cannot be embedded."`
	Pooling     *string `help:"Pooling of the hidden states into a vector, for a model without pooling settings: ${poolings_or}." enum:"${poolings}" placeholder:"NAME"`
	Normalize   bool    `help:"With --pooling, divide each vector by its length." needs:"pooling"`
	Prompt      *string `help:"Prefix for each text (default from the model directory)." placeholder:"TEXT" xor:"prompt"`
	PromptName  *string `help:"Prefix for each text, by its name in the model directory." placeholder:"NAME" xor:"prompt"`
	File        string  `arg:"" optional:"" help:"Text file with one text per line; without it, standard input." placeholder:"FILE" stdin:""`
}

func (embedCommand) Help() string {
	return `Examples:

  attn embed --model all-MiniLM-L6-v2 texts.txt > vectors.jsonl
  attn embed --model all-MiniLM-L6-v2 --npy vectors.npy texts.txt
  attn embed --model bert-base-uncased --pooling mean --normalize < texts.txt
  attn embed --model e5-small-v2 --prompt "query: " questions.txt
  attn embed --model Qwen3-Embedding-0.6B --prompt-name query questions.txt

The output has one JSON array per input line, in the same order. A line that cannot be
embedded becomes {"error": "…"}; with --strict, --npy or --safetensors, it ends the run.
The vector of a line does not depend on the other lines. See docs/scale.md for details.

Pooling, normalisation, maximum length and prompt are read from the sentence-transformers
pipeline in the directory. Longer texts are truncated, and standard error reports how many.`
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

// embeddingStream returns the stream of a filter. At the end, it reports the number of truncated
// texts.
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
			fmt.Fprintf(c.err, "%d of %d texts were truncated to %d tokens\n", cut, stats.Lines, e.MostTokens)
		}
		return stats, err
	}
}

// embedder loads the model and checks that it has a tokenizer.
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

// setPrompt sets the prefix of texts. A --prompt equal to the name of a prompt is an error: the name
// as a prefix would give plausible but wrong vectors.
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
			err = fmt.Errorf("%w; use --pooling, such as --pooling mean", err)
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
