package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/viz"
)

// mostSampled bounds the weights of a model, in bytes, that attn follow loads after each
// save: the training should not feel it.
const mostSampled = 256 << 20

// sampler keeps what the last checkpoint of a run makes of a text.
type sampler struct {
	dir, text string

	mu      sync.Mutex
	saved   time.Time // when the checkpoint was, that has been read
	asked   bool      // the recipe has been read
	note    string
	example curve.Sample
}

// read returns a note about losses and the sample of the checkpoint that is there now. What
// cannot be read, or is not there yet, is left out: the page is about the run.
func (s *sampler) read(ctx context.Context) (note string, sample curve.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(filepath.Join(s.dir, seq2seq.WeightsFile))
	if err != nil || info.ModTime().Equal(s.saved) {
		return s.note, s.example
	}
	s.saved = info.ModTime()
	if !s.asked {
		s.recipe()
	}
	if s.text == "" || info.Size() > mostSampled {
		return s.note, s.example
	}
	if sample, err := sampleOf(ctx, s.dir, s.text); err == nil {
		s.example = sample
	}
	return s.note, s.example
}

// recipe reads how the run is trained, and chooses the text if none was given.
func (s *sampler) recipe() {
	r, err := readRecipe(s.dir)
	if err != nil || r == nil {
		return
	}
	s.asked, s.note = true, curve.LossNote(r.Network.Dropout, r.Training.Smoothing)
	if s.text != "" {
		return
	}
	if data, err := r.pairs(); err == nil && len(data.test) > 0 {
		s.text = exampleOf(data.test)
	}
}

// sampleOf translates a text and draws the heads of the last layer of cross attention.
func sampleOf(ctx context.Context, dir, text string) (sample curve.Sample, err error) {
	m, err := seq2seq.Load(dir)
	if err != nil {
		return sample, err
	}
	written, err := m.Translate(ctx, []string{text}, seq2seq.Decoding{Beam: 1})
	if err != nil {
		return sample, err
	}
	sample = curve.Sample{Source: text, Written: written[0]}
	record, err := m.Record(text, written[0], heads.RecorderOptions{Kinds: []heads.Kind{heads.Cross}})
	if err != nil || len(record.Layers) == 0 {
		return sample, nil // has no attention
	}
	l := &record.Layers[len(record.Layers)-1]
	f := viz.Figure{Inline: true}
	for h := range l.Heads {
		p := newPanel(l, h, l.Head(h))
		p.Title = fmt.Sprintf("head %d", l.Number(h))
		f.Panels = append(f.Panels, p)
	}
	var svg strings.Builder
	if err := shortMarks(f, record.Special).SVG(&svg); err != nil {
		return sample, err
	}
	sample.Title, sample.Heads = fmt.Sprintf("%s attention, layer %d", l.Kind, l.Index), svg.String()
	return sample, nil
}
