package heads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/safetensors"
)

// Film is the attention of a model on one text at several steps of its training.
type Film struct {
	Frames []Frame // in ascending order of steps
}

// Frame is one step of a film.
type Frame struct {
	Step   int     // steps that the model was trained for; 0 is the untrained model
	Loss   float64 // training loss at this step, nats per token; NaN if unknown
	Record *Record // weights of the same heads and tokens in every frame
}

// Add appends a frame.
//
// Errors: a step that is not after the last one; other layers, heads or tokens than those of the first
// frame.
//
// Aliasing: the film contains the record, not a copy, and uses only its weights.
func (f *Film) Add(frame Frame) error {
	last := -1
	if n := len(f.Frames); n > 0 {
		last = f.Frames[n-1].Step
	}
	if frame.Step <= last {
		return fmt.Errorf("heads: film: step %d, want more than %d", frame.Step, last)
	}
	all := append(f.Frames, frame)
	if err := all[0].Record.sameHeads(frame.Record); err != nil {
		return fmt.Errorf("heads: film: step %d: %w", frame.Step, err)
	}
	f.Frames = all
	return nil
}

// Keys of a film's metadata, besides those of a record.
const (
	keySteps  = "steps"
	keyLosses = "losses"
)

// Limits on the films that ReadFilm accepts.
const (
	maxFrames      = 1 << 12
	maxFilmWeights = 1 << 26 // 256 MB in memory
)

// Write writes the film as a safetensors file: that of a record whose tensors have one more dimension,
// the frame, first. Weights are rounded to half precision. See docs/heads.md.
//
// Errors: those of Record.Write, no frames, steps that do not ascend, and frames with other layers,
// heads or tokens than the first.
func (f *Film) Write(w io.Writer) error {
	file, err := f.file()
	if err != nil {
		return fmt.Errorf("heads: film: %w", err)
	}
	return file.Write(w)
}

func (f *Film) file() (*safetensors.File, error) {
	if len(f.Frames) == 0 {
		return nil, errors.New("no frames")
	}
	first := withoutVectors(f.Frames[0].Record)
	file, err := first.file()
	if err != nil {
		return nil, err
	}
	steps, losses := make([]int, len(f.Frames)), make([]strictjson.Number, len(f.Frames))
	for i, frame := range f.Frames {
		steps[i], losses[i] = frame.Step, strictjson.Number(frame.Loss)
		if err := first.sameHeads(frame.Record); err != nil {
			return nil, fmt.Errorf("frame %d: %w", i, err)
		}
	}
	if err := checkSteps(steps); err != nil {
		return nil, err
	}
	for key, list := range map[string]any{keySteps: steps, keyLosses: losses} {
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		file.Metadata[key] = string(text)
	}
	for i := range file.Tensors {
		t := &file.Tensors[i]
		t.DType, t.Shape, t.Data = safetensors.F16, append([]int{len(f.Frames)}, t.Shape...), nil
		for _, frame := range f.Frames {
			if t.Data, err = safetensors.AppendFloat32s(t.Data, t.DType, frame.Record.Layers[i].Weights); err != nil {
				return nil, fmt.Errorf("layer %s at step %d: %w", quote.Text(t.Name), frame.Step, err)
			}
		}
	}
	return file, nil
}

// withoutVectors returns a record that has only the weights of another.
func withoutVectors(r *Record) *Record {
	plain := *r
	plain.Layers = slices.Clone(r.Layers)
	for i := range plain.Layers {
		l := &plain.Layers[i]
		l.ValueNorms, l.QueryVectors, l.KeyVectors, l.ScoreScale = nil, nil, nil, 0
	}
	return &plain
}

// sameHeads returns an error unless another record has the same layers, heads and tokens.
func (r *Record) sameHeads(o *Record) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if len(o.Layers) != len(r.Layers) {
		return fmt.Errorf("%d layers, want %d as in the first frame", len(o.Layers), len(r.Layers))
	}
	for i := range r.Layers {
		a, b := &r.Layers[i], &o.Layers[i]
		if a.Name != b.Name || a.Heads != b.Heads || a.Signed != b.Signed || !slices.Equal(a.Chosen, b.Chosen) ||
			!slices.Equal(a.Queries, b.Queries) || !slices.Equal(a.Keys, b.Keys) {
			return fmt.Errorf("layer %s differs from layer %s of the first frame in name, heads or tokens",
				quote.Text(b.Name), quote.Text(a.Name))
		}
	}
	return nil
}

// checkSteps returns an error unless steps ascend from 0 or more.
func checkSteps(steps []int) error {
	last := -1
	for i, step := range steps {
		if step <= last {
			return fmt.Errorf("steps[%d] is %d, want more than %d", i, step, last)
		}
		last = step
	}
	return nil
}

// ErrNotFilm is the error for a readable safetensors file that is not a film. Such a file may contain a record.
var ErrNotFilm = errors.New("is not a film: its metadata do not have both " + quote.Text(keySteps) + " and " +
	quote.Text(keyLosses) + "; want the film.safetensors of a run of attn train")

// ReadFilm reads a film from a file that Write has written.
//
// Errors: ErrNotFilm, wrapped, or another error in the format, with the path; errors of the operating system.
func ReadFilm(path string) (*Film, error) { return fromPath(path, filmFrom) }

func filmFrom(f *safetensors.Reader) (*Film, error) {
	var steps []int
	var losses []strictjson.Number
	for _, part := range []struct {
		key string
		to  any
	}{{keySteps, &steps}, {keyLosses, &losses}} {
		switch given, err := metadata(f, part.key, part.to); {
		case err != nil:
			return nil, err
		case !given:
			return nil, ErrNotFilm
		}
	}
	n := len(steps)
	if n < 1 || n > maxFrames || len(losses) != n {
		return nil, fmt.Errorf("%d steps and %d losses, want 1 to %d of both", n, len(losses), maxFrames)
	}
	if err := checkSteps(steps); err != nil {
		return nil, err
	}
	first, err := outline(f, n, false)
	if err != nil {
		return nil, err
	}
	stacks, total := make([][]float32, len(first.Layers)), 0 // weights of all frames, by layer
	for i, l := range first.Layers {
		// The file contains these numbers, so the product does not overflow.
		size := n * l.Heads * len(l.Queries) * len(l.Keys)
		if total += size; total > maxFilmWeights {
			return nil, fmt.Errorf("tensor %s: %d weights so far, want at most %d", quote.Text(l.Name), total, maxFilmWeights)
		}
		stacks[i] = make([]float32, size)
		if err := f.ReadFloat32s(l.Name, stacks[i], 0); err != nil {
			return nil, &readError{err}
		}
	}
	film := &Film{}
	for at, step := range steps {
		r := *first
		r.Layers = slices.Clone(first.Layers)
		for i := range r.Layers {
			all := stacks[i]
			r.Layers[i].Weights = all[at*len(all)/n : (at+1)*len(all)/n]
		}
		film.Frames = append(film.Frames, Frame{step, float64(losses[at]), &r})
	}
	return film, nil
}
