package train

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/models"
)

// mostSampled bounds the weights of a model, in bytes, that a Sampler loads after each
// save: the training should not feel it.
const mostSampled = 256 << 20

// Sample is what a checkpoint makes of a text, and which of its tokens the heads attend to.
type Sample = curve.Sample

// Sampler keeps what the last checkpoint of a run makes of a text. It is thread-safe.
type Sampler struct {
	Dir  string
	Text string // if empty, one of those that the run is measured on
	// Draw returns a picture of a layer of attention.
	Draw func(record *heads.Record, layer int) (string, error)

	mu     sync.Mutex
	saved  time.Time // when the checkpoint was, that has been read
	asked  bool      // the recipe has been read
	note   string
	sample Sample
}

// Read returns a note about losses and the sample of the checkpoint that is there now. What
// cannot be read, or is not there yet, is left out.
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

// ask reads how the run is trained, and chooses the text if none was given.
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

// read translates the text and draws the last layer of cross attention.
func (s *Sampler) read(ctx context.Context) (sample Sample, err error) {
	m, err := models.LoadTranslator(s.Dir)
	if err != nil {
		return sample, err
	}
	written, err := m.Translate(ctx, []string{s.Text}, 1)
	if err != nil {
		return sample, err
	}
	sample = Sample{Source: s.Text, Written: written[0]}
	record, err := m.Record(s.Text, written[0], heads.RecorderOptions{Kinds: []heads.Kind{heads.Cross}})
	last := len(record.Layers) - 1
	if err != nil || last < 0 {
		return sample, nil // has no attention
	}
	sample.Title = fmt.Sprintf("%s attention, layer %d", record.Layers[last].Kind, record.Layers[last].Index)
	sample.Heads, err = s.Draw(record, last)
	return sample, err
}
