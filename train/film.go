package train

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
)

// FilmFile is the name of the recording in a run's directory: the attention of all heads on one test
// pair, at several steps of the training. See heads.Film.
const FilmFile = "film.safetensors"

const (
	// mostFilmed bounds the frames of a recording, besides the last: they are at the steps unit·i² with i
	// below mostFilmed. More frames are at the beginning, because heads form early.
	mostFilmed = 80
	// mostWeights bounds the weights of a frame. Layers that exceed it are omitted.
	mostWeights = 1 << 16
)

// filmed reports whether the recording of a run of total steps has a frame at a step, besides the
// last. Frames of a longer run are a subset, so that the recording does not depend on interruptions.
func filmed(step, total int) bool {
	unit := 1
	for total >= unit*mostFilmed*mostFilmed {
		unit *= 4
	}
	root := int(math.Round(math.Sqrt(float64(step / unit))))
	return step == unit*root*root
}

// camera records the attention of a run as a film.
type camera struct {
	heads.Film
	pair seq2seq.Pair
	keep map[string]bool // names of the recorded layers
}

// newCamera returns the camera of a session, with the saved frames of a resumed run, which must be of the same model.
// It returns nil if the model has no attention that can be recorded.
func (s *Session) newCamera() (*camera, error) {
	f := &camera{pair: s.Data.example(), keep: map[string]bool{}}
	if s.resumed {
		if err := f.read(s.Dir, s.Trainer.Total()); err != nil {
			return nil, err
		}
	}
	wrong := func(err error) error {
		return input.Errorf(filepath.Join(s.Dir, FilmFile), "was made with another model or text: %v", err)
	}
	all, err := probe.RecordTexts(context.Background(), s.Model, f.pair.Source, f.pair.Target, heads.RecorderOptions{OnRequest: true})
	switch {
	case err != nil && len(f.Frames) > 0:
		return nil, wrong(err)
	case err != nil:
		return nil, nil // a model without heads
	}
	order := slices.Clone(all.Layers)
	slices.SortStableFunc(order, func(a, b heads.Layer) int { // cross-attention first, the last layers first
		return cmp.Or(-cmp.Compare(a.Kind, b.Kind), -cmp.Compare(a.Index, b.Index))
	})
	weights := 0
	for _, l := range order {
		if n := l.Heads * len(l.Queries) * len(l.Keys); weights+n <= mostWeights {
			weights += n
			f.keep[l.Name] = true
		}
	}
	if len(f.keep) == 0 {
		return nil, nil // the texts are too long
	}
	if len(f.Frames) > 0 {
		now, err := f.record(s.Model)
		if err != nil {
			return nil, err
		}
		first := f.Frames[0]
		two := heads.Film{Frames: []heads.Frame{first}}
		if err := two.Add(heads.Frame{Step: first.Step + 1, Record: now}); err != nil {
			return nil, wrong(err)
		}
	}
	return f, nil
}

// read reads the saved frames of a resumed run, up to its current step. They keep their
// text if the test pairs have changed.
func (f *camera) read(dir string, step int) error {
	saved, err := ReadFilm(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the run was started by a version that did not record
	} else if err != nil {
		return input.BadFile(filepath.Join(dir, FilmFile), err)
	}
	f.Frames = slices.DeleteFunc(saved.Frames, func(x heads.Frame) bool { return x.Step > step })
	if len(f.Frames) > 0 {
		r := f.Frames[0].Record
		f.pair = seq2seq.Pair{Source: r.Source, Target: r.Target}
	}
	return nil
}

// record returns the current attention of a model. An interrupted run also records its frames: a resumed run has the
// same film.
func (f *camera) record(m *models.Model) (*heads.Record, error) {
	return probe.RecordTexts(context.Background(), m, f.pair.Source, f.pair.Target, heads.RecorderOptions{Layers: func(name string) bool { return f.keep[name] }})
}

// ReadFilm returns the recording of the run in a directory.
//
// Errors: one that wraps fs.ErrNotExist if there is none; those of heads.ReadFilm.
func ReadFilm(dir string) (*heads.Film, error) {
	return atomicfile.Read(filepath.Join(dir, FilmFile), heads.ReadFilm)
}

// Projector reads the recording of a run that another process may be training. It is thread-safe.
type Projector struct {
	Dir string

	mu    sync.Mutex
	saved time.Time // time of the file that was read last
	film  *heads.Film
	err   error
}

// Read returns the recording that was saved last, or nil if there is none.
func (p *Projector) Read() (*heads.Film, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(filepath.Join(p.Dir, FilmFile))
	if err != nil {
		return p.film, p.err // being replaced, or not written yet
	}
	if !info.ModTime().Equal(p.saved) {
		p.saved = info.ModTime()
		p.film, p.err = ReadFilm(p.Dir)
	}
	return p.film, p.err
}

// Film returns the recording so far, or nil if the model has no attention that can be recorded.
func (s *Session) Film() *heads.Film {
	if s.film == nil {
		return nil
	}
	return &s.film.Film
}

// frame adds a frame of the current step to the recording.
func (s *Session) frame() error {
	step := s.Trainer.Total()
	if n := len(s.film.Frames); n > 0 && s.film.Frames[n-1].Step == step {
		return nil
	}
	r, err := s.film.record(s.Model)
	if err != nil {
		return err
	}
	return s.film.Add(heads.Frame{Step: step, Loss: s.loss, Record: r})
}

// recording returns the file of the recording. Its last frame is of the current step.
func (s *Session) recording() ([]atomicfile.File, error) {
	if s.film == nil {
		return nil, nil
	}
	if err := s.frame(); err != nil {
		return nil, err
	}
	total := s.Trainer.Total()
	s.film.Frames = slices.DeleteFunc(s.film.Frames, func(x heads.Frame) bool {
		return x.Step != total && !filmed(x.Step, total)
	})
	return []atomicfile.File{{Path: FilmFile, Write: s.film.Write}}, nil
}
