package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

const metricsFile = "metrics.jsonl"

// run is a training run in a directory, created by attn train --prepare.
type run struct {
	path     string
	dir      *atomicfile.Dir
	model    *models.Model
	settings train.Settings
	at       position
	about    map[string]json.RawMessage // the metadata of train.TrainingFile
	moments  map[string][2][]float32    // of each parameter
	ids      []int
	lengths  [][2]int // lengths of source and target of each pair
	begins   []int    // index of each pair's first ID
	metrics  []byte
}

// position is the progress of training, as stored in train.TrainingFile.
type position struct {
	Epoch   int     `json:"epoch"`
	Step    int     `json:"step"`
	Total   int     `json:"total"`
	Loss    float64 `json:"loss"`
	Count   int     `json:"count"`
	Tokens  int     `json:"tokens,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

// openRun locks a directory and loads its run.
func openRun(path string) (_ *run, err error) {
	if _, err := os.Stat(path); err != nil { // otherwise locking would create it
		return nil, err
	}
	r := &run{path: path}
	if r.dir, err = atomicfile.Lock(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.model, err = models.LoadTranslator(path); err != nil {
		return nil, err
	}
	if c := r.model.Translator.Config; c.Arch != models.Transformer {
		return nil, fmt.Errorf("%s: the network is a %s, want a %s; interop/torch trains both", path, c.Arch, models.Transformer)
	}
	if len(r.model.Translator.Config.PrunedHeads) > 0 {
		return nil, fmt.Errorf("%s: the model is pruned, want one with all its heads", path)
	}
	data, err := r.training()
	if err != nil {
		return nil, err
	}
	if err := r.examples(data); err != nil {
		return nil, err
	}
	if r.metrics, err = os.ReadFile(filepath.Join(path, metricsFile)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

func (r *run) close() { r.dir.Unlock() }

// training reads the state of training, and returns the hash of its pairs.
func (r *run) training() (data string, err error) {
	path := filepath.Join(r.path, train.TrainingFile)
	file, err := safetensors.Read(path)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal([]byte(file.Metadata["checkpoint"]), &r.about); err != nil {
		return "", fmt.Errorf("%s: its metadata contain no checkpoint: %w", path, err)
	}
	for key, to := range map[string]any{"position": &r.at, "settings": &r.settings, "data": &data} {
		if err := json.Unmarshal(r.about[key], to); err != nil {
			return "", fmt.Errorf("%s: %s of its checkpoint: %w", path, key, err)
		}
	}
	r.moments = map[string][2][]float32{}
	for name, p := range r.model.Params() {
		var m [2][]float32
		for i, moment := range []string{"m", "v"} {
			full := "adamw." + name + "." + moment
			x := file.Lookup(full)
			if x == nil || !slices.Equal(x.Shape, p.Shape()) {
				return "", fmt.Errorf("%s: want tensor %q of shape %v", path, full, p.Shape())
			}
			if m[i], err = x.Float32s(); err != nil {
				return "", err
			}
		}
		r.moments[name] = m
	}
	return data, r.settings.Validate()
}

// examples reads the pairs.
func (r *run) examples(data string) error {
	path := filepath.Join(r.path, train.ExamplesFile)
	bad := func(err error) error {
		return fmt.Errorf("%s: %w; want what attn train --prepare has written for this run", path, err)
	}
	file, err := safetensors.Read(path)
	if err != nil {
		return bad(err)
	}
	ids, lengths := file.Lookup("ids"), file.Lookup("lengths")
	if file.Metadata["data"] != data || ids == nil || lengths == nil || len(lengths.Shape) != 2 || lengths.Shape[1] != 2 {
		return bad(errors.New("contains the pairs of another run"))
	}
	if r.ids, err = ids.Ints(); err != nil {
		return bad(err)
	}
	flat, err := lengths.Ints()
	if err != nil {
		return bad(err)
	}
	at := 0
	for pair := range slices.Chunk(flat, 2) {
		if min(pair[0], pair[1]) < 1 || max(pair[0], pair[1]) > len(r.ids)-at {
			return bad(errors.New("lengths do not fit the ids"))
		}
		r.lengths, r.begins = append(r.lengths, [2]int{pair[0], pair[1]}), append(r.begins, at)
		at += pair[0] + pair[1]
	}
	if at != len(r.ids) {
		return bad(errors.New("lengths do not fit the ids"))
	}
	most := r.model.Translator.Config
	for i, pair := range r.lengths {
		source, target := r.ids[r.begins[i]:][:pair[0]], r.ids[r.begins[i]+pair[0]:][:pair[1]]
		if slices.Min(source) < 0 || slices.Max(source) >= most.SourceVocab || slices.Min(target) < 0 || slices.Max(target) >= most.TargetVocab {
			return bad(fmt.Errorf("pair %d has an id outside the vocabulary", i))
		}
	}
	return nil
}

// rectangles are the pairs of a step, padded with Pad.
type rectangles struct{ source, lengths, read, write []int32 }

// roundTo is the multiple to which lengths are rounded up, because a backend compiles a program for each shape.
const roundTo = 16

// rectangles returns pairs in rectangles of n rows. Rows without a pair have weight zero, because all their targets
// are Pad.
func (r *run) rectangles(pairs []int, n int) rectangles {
	var longest [2]int
	for _, p := range pairs {
		for side := range longest {
			longest[side] = max(longest[side], (r.lengths[p][side]+roundTo-1)/roundTo*roundTo)
		}
	}
	b := rectangles{
		source: make([]int32, n*longest[0]), lengths: make([]int32, n),
		read: make([]int32, n*longest[1]), write: make([]int32, n*longest[1]),
	}
	for i := range b.lengths {
		b.lengths[i] = 1 // so that the softmax has a key
	}
	for i, p := range pairs {
		ids, l := r.ids[r.begins[p]:], r.lengths[p]
		source, read, write := b.source[i*longest[0]:], b.read[i*longest[1]:], b.write[i*longest[1]:]
		b.lengths[i] = int32(l[0])
		for j, id := range ids[:l[0]] {
			source[j] = int32(id)
		}
		read[0] = seq2seq.BOS
		for j, id := range ids[l[0]:][:l[1]] {
			if write[j] = int32(id); j+1 < l[1] {
				read[j+1] = int32(id)
			}
		}
	}
	return b
}

// save writes the model and the state of training in attn's format.
func (r *run) save() error {
	var err error
	if r.about["position"], err = json.Marshal(r.at); err != nil {
		return err
	}
	about, err := json.Marshal(r.about)
	if err != nil {
		return err
	}
	training := &safetensors.File{Metadata: map[string]string{"checkpoint": string(about)}}
	for name, p := range r.model.Params() {
		for full, x := range map[string][]float32{
			"param." + name: p.Data(), "adamw." + name + ".m": r.moments[name][0], "adamw." + name + ".v": r.moments[name][1],
		} {
			training.Tensors = append(training.Tensors, safetensors.FromFloat32s(full, p.Shape(), x))
		}
	}
	return r.dir.Replace(append(r.model.Saved(""),
		atomicfile.File{Path: train.TrainingFile, Write: training.Write},
		atomicfile.File{Path: metricsFile, Write: func(w io.Writer) error { _, err := w.Write(r.metrics); return err }}))
}
