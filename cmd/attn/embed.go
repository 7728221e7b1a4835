package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

type embedCommand struct {
	Model       string  `required:"" help:"Directory of a pretrained encoder." placeholder:"DIR"`
	NPY         string  `name:"npy" help:"Write a NumPy array [lines width]." placeholder:"FILE"`
	Safetensors string  `name:"safetensors" help:"Write a safetensors file with the tensor vectors [lines width]." placeholder:"FILE"`
	Pooling     *string `help:"How hidden states become a vector, for a directory that does not say it: ${poolings_or}." enum:"${poolings}" placeholder:"NAME"`
	Normalize   bool    `help:"With --pooling, divide each vector by its length."`
	Prompt      *string `help:"What each text begins with (default as the directory says)." placeholder:"TEXT"`
	File        string  `arg:"" optional:"" help:"Text file with a text on each line; without it, standard input." placeholder:"FILE"`
}

func (embedCommand) Help() string {
	return `Examples:

  attn embed --model all-MiniLM-L6-v2 texts.txt > vectors.jsonl
  attn embed --model all-MiniLM-L6-v2 --npy vectors.npy texts.txt
  attn embed --model bert-base-uncased --pooling mean --normalize < texts.txt
  attn embed --model e5-small-v2 --prompt "query: " questions.txt

Without --npy or --safetensors, standard output gets a JSON array for each line, in the
order of the input. Pooling, normalisation, the longest text and the prompt are those
of the pipeline of sentence-transformers in the directory.`
}

// Validate is called by the parser.
func (cmd *embedCommand) Validate() error {
	switch {
	case cmd.NPY != "" && cmd.Safetensors != "":
		return errors.New("--npy and --safetensors exclude each other")
	case cmd.Normalize && cmd.Pooling == nil:
		return errors.New("--normalize goes with --pooling")
	}
	return nil
}

func (cmd *embedCommand) touches() touched {
	return touched{
		models: []place{{"--model", cmd.Model}}, reads: []place{{"file", cmd.File}},
		writes: []place{{"--npy", cmd.NPY}, {"--safetensors", cmd.Safetensors}}, stdin: cmd.File == "",
	}
}

func (cmd *embedCommand) Run(ctx context.Context, c console) error {
	e, err := cmd.embedder()
	if err != nil {
		return err
	}
	if _, err := e.Model.Tokenizer(); err != nil {
		return err
	}
	in, name := c.in, "standard input"
	if cmd.File != "" {
		file, err := os.Open(cmd.File)
		if err != nil {
			return err
		}
		defer file.Close()
		in, name = file, cmd.File
	} else {
		c.invite("type texts to embed, one per line; " + endOfInput() + " ends the input")
	}
	out, err := cmd.sink(c, e.Width())
	if err != nil {
		return err
	}
	run := &embedding{embedder: e, name: name, out: out, tape: tensor.NewTape(tensor.Infer)}
	err = run.lines(ctx, in)
	if run.cut > 0 {
		fmt.Fprintf(c.err, "%d of %d texts were cut off at %d tokens\n", run.cut, run.count, e.MostTokens)
	}
	return out.end(err)
}

// embedder loads the model.
func (cmd *embedCommand) embedder() (*models.Embedder, error) {
	e, err := cmd.load()
	if err != nil {
		return nil, err
	}
	if cmd.Prompt != nil {
		e.Prompt = *cmd.Prompt
	}
	return e, nil
}

func (cmd *embedCommand) load() (*models.Embedder, error) {
	if cmd.Pooling == nil {
		e, err := models.LoadEmbedder(cmd.Model, models.Options{Weights: attn.Float32{}})
		if errors.Is(err, models.ErrNoPipeline) {
			err = fmt.Errorf("%w: --pooling mean, say", err)
		}
		return e, err
	}
	m, err := models.Load(cmd.Model, models.Options{Weights: attn.Float32{}})
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

// How many texts are sorted by their length and cut into batches at a time, and how large
// a batch is: padding included, its hidden states stay within the caches.
const (
	textsAtOnce  = 1024
	mostInBatch  = 64
	tokensAtOnce = 2048
)

// embedding is a run over an input.
type embedding struct {
	embedder *models.Embedder
	name     string // of the input
	out      sink
	tape     *tensor.Tape
	waiting  []*tokenizer.Encoding
	count    int // of texts
	cut      int // of these, those that were cut off
}

// lines embeds the lines of an input. What is at hand is written out when nothing more is,
// since somebody may be typing.
func (r *embedding) lines(ctx context.Context, in io.Reader) error {
	rows := readRows(ctx, in)
	for {
		var next row
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next = <-rows:
		}
		if next.err == io.EOF && next.text == "" {
			return r.flush(ctx)
		}
		if next.err != nil && next.err != io.EOF {
			return next.err
		}
		r.count++
		text := strings.TrimSuffix(strings.TrimSuffix(next.text, "\n"), "\r")
		x, cut, err := r.embedder.Encode(text)
		if err != nil {
			return &seq2seq.InputError{Name: r.name, Line: r.count, Reason: err.Error()}
		}
		if cut {
			r.cut++
		}
		r.waiting = append(r.waiting, x)
		if next.last || len(r.waiting) == textsAtOnce {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
	}
}

// flush embeds the texts that wait: similar lengths together, and back in their order.
func (r *embedding) flush(ctx context.Context) error {
	order := make([]int, len(r.waiting))
	for i := range order {
		order[i] = i
	}
	length := func(i int) int { return len(r.waiting[i].IDs) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(length(b), length(a)) })
	vectors := make([][]float32, len(order))
	for len(order) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(order), mostInBatch, max(1, tokensAtOnce/length(order[0])))
		batch := make([]*tokenizer.Encoding, n)
		for i, at := range order[:n] {
			batch[i] = r.waiting[at]
		}
		r.tape.Reset()
		y := r.embedder.Forward(r.tape, models.BatchOf(batch...))
		for i, at := range order[:n] {
			width := r.embedder.Width()
			vectors[at] = slices.Clone(y.Data()[i*width : (i+1)*width])
		}
		order = order[n:]
	}
	r.waiting = r.waiting[:0]
	return r.out.write(vectors)
}

// sink is where vectors go.
type sink interface {
	write(vectors [][]float32) error
	// end is called after the last vector, or with what has gone wrong, which it returns.
	end(err error) error
}

// jsonLines is a JSON array for each vector.
type jsonLines struct{ w *bufio.Writer }

func (s jsonLines) write(vectors [][]float32) error {
	for _, v := range vectors {
		line, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("a vector is not finite: %w", err)
		}
		if _, err := s.w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return s.w.Flush()
}

func (s jsonLines) end(err error) error { return errors.Join(err, s.w.Flush()) }
