package main

import (
	"context"
	"fmt"
	"io"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/models"
)

type embedCommand struct {
	Model       string `required:"" help:"Directory of a pretrained encoder." placeholder:"DIR"`
	JSON        bool   `name:"json" help:"Write a JSON object for each line, with its vector." xor:"form"`
	TSV         bool   `name:"tsv" help:"Write the numbers of each vector in columns, with the error in the last column." xor:"form"`
	NPY         string `name:"npy" help:"Write a NumPy array [lines width]." placeholder:"FILE" xor:"form" writes:"file"`
	Safetensors string `name:"safetensors" help:"Write a safetensors file with the tensor vectors [lines width]." placeholder:"FILE" xor:"form" writes:"file"`
	Strict      bool   `help:"Stop at the first line that cannot be embedded."`
	texts.Embedding
	formatFlag
	File string `arg:"" optional:"" help:"Text file with one text per line; without it, standard input." placeholder:"FILE" stdin:""`
}

func (embedCommand) Help() string {
	return `Examples:

  attn embed --model all-MiniLM-L6-v2 texts.txt > vectors.jsonl
  attn embed --model all-MiniLM-L6-v2 --npy vectors.npy texts.txt
  attn embed --model bert-base-uncased --pooling mean --normalize < texts.txt
  attn embed --model e5-small-v2 --prompt "query: " questions.txt
  attn embed --model Qwen3-Embedding-0.6B --prompt-name query questions.txt
  attn embed --model opensearch-neural-sparse-encoding-doc-v3-distill --route query questions.txt

The output has one JSON array per input line, in the same order, or for a sparse encoder
one object {"indices": […], "values": […]}: token ids and their weights. A line that cannot be
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
	if e.Sparse() {
		return errSparse
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

func (cmd *embedCommand) streams() bool {
	return cmd.File == "" && cmd.NPY == "" && cmd.Safetensors == ""
}

func (cmd *embedCommand) model() (string, bool) { return cmd.Model, true }

func (cmd *embedCommand) stream(c console) (shards.Stream, error) {
	e, err := cmd.embedder(c)
	if err != nil {
		return nil, err
	}
	f := texts.Vectors(e)
	f.Strict = cmd.Strict
	switch {
	case cmd.JSON:
		f.Write = filter.JSON[texts.Vector]
	case cmd.TSV && e.Sparse():
		return nil, errSparse
	case cmd.TSV:
		f.Write = filter.TSV(e.Width(), texts.Vector.Columns)
	}
	return embeddingStream(f, e, c), nil
}

var errSparse = flags.Errorf("the vectors of this model are sparse, want them in JSON: no --npy, --safetensors or --tsv")

// embeddingStream returns the stream of a filter. At the end, it reports the number of truncated
// texts.
func embeddingStream(f filter.Filter[texts.Vector], e *models.Embedder, c console) shards.Stream {
	f, cut := texts.CountCut(f)
	s := newStream(f, c)
	return func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error) {
		*cut = 0
		stats, err := s(ctx, in, name, out)
		if *cut > 0 {
			fmt.Fprintf(c.err, "%d of %d texts were truncated to %d tokens\n", *cut, stats.Lines, e.MostTokens)
		}
		return stats, err
	}
}

// embedder loads the model.
func (cmd *embedCommand) embedder(c console) (*models.Embedder, error) {
	return load(c, cmd.Embedding.Load, cmd.Model, cmd.options())
}
