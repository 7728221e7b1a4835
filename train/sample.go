package train

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// mostSampled is the limit on the weights of a model, in bytes, for a Sampler to load it after each
// save: sampling should not slow down the training.
const mostSampled = 256 << 20

// Sample is the output of a checkpoint for a text, with its attention.
type Sample = curve.Sample

// Sampler computes the output of the last checkpoint of a run for a text. It is thread-safe.
type Sampler struct {
	Dir  string
	Text string // if empty, a source of the run's test pairs
	// Draw returns the title of a layer of attention and its picture.
	Draw func(record *heads.Record, layer int) (title, picture string, err error)

	mu     sync.Mutex
	saved  time.Time // time of the checkpoint that was read last
	asked  bool      // the recipe has been read
	note   string
	sample Sample
}

// Read returns a note about losses and the sample of the current checkpoint. Parts that cannot be read,
// or do not exist yet, are empty.
func (s *Sampler) Read(ctx context.Context) (note string, sample Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(filepath.Join(s.Dir, models.WeightsFile))
	if err != nil || info.ModTime().Equal(s.saved) {
		return s.note, s.sample
	}
	s.saved = info.ModTime()
	if !s.asked {
		s.ask()
	}
	if s.Text == "" || info.Size() > mostSampled {
		return s.note, s.sample
	}
	if sample, err := s.read(ctx); err == nil {
		s.sample = sample
	}
	return s.note, s.sample
}

// ask reads the recipe of the run, and chooses the default text if none is given.
func (s *Sampler) ask() {
	r, err := ReadRecipe(s.Dir)
	if err != nil || r == nil {
		return
	}
	s.asked, s.note = true, curve.LossNote(r.Network.Dropout, r.Training.Smoothing)
	if s.Text != "" {
		return
	}
	if data, err := r.Pairs(); err == nil && len(data.Test) > 0 {
		s.Text = data.Example()
	}
}

// read translates the text and draws the last layer of cross-attention.
func (s *Sampler) read(ctx context.Context) (sample Sample, err error) {
	m, err := models.Load(s.Dir, models.Options{})
	if err != nil {
		return sample, err
	}
	written, err := m.Translate(ctx, []string{s.Text}, 1)
	if err != nil {
		return sample, err
	}
	sample = Sample{Source: s.Text, Written: written[0]}
	record, err := probe.RecordTexts(ctx, m, s.Text, written[0], heads.RecorderOptions{Kinds: []heads.Kind{heads.Cross}})
	if ctx.Err() != nil {
		return sample, ctx.Err()
	}
	if err != nil || len(record.Layers) == 0 {
		return sample, nil // it has no attention
	}
	sample.Title, sample.Heads, err = s.Draw(record, len(record.Layers)-1)
	return sample, err
}
