// Package recording records the attention of texts for attn map, attn view and attn heads, within limits of
// memory.
package recording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/train"
)

const (
	// MaxWeights limits the bytes of the weights of a text that are computed at once. BERT-large has 400 MB of
	// them for its longest text.
	MaxWeights = 512 << 20
	// maxKept limits the bytes from which the weights of a record are computed on request: 226 MB for
	// 2,048 tokens in 24 layers of width 896.
	maxKept = 768 << 20

	// MaxText is the length in bytes of the longest text. Most texts of this length have more tokens than maxTokens.
	MaxText = 32 << 10

	maxTokens  = 4096    // the weights of one head then take 64 MB
	maxVectors = 8 << 20 // bytes of the queries and keys on the page
)

// LayerBytes returns the size of the weights of a layer for a text of n tokens.
func LayerBytes(m *models.Model, n int) int64 {
	heads := m.Sizes().Heads
	for _, l := range m.HeadLayers() {
		heads = max(heads, l.Heads)
	}
	return 4 * int64(heads) * int64(n) * int64(n)
}

// Fits returns an error if the weights of a layer for a text of n tokens take more than MaxWeights.
func Fits(m *models.Model, n int) error {
	if bytes := LayerBytes(m, n); bytes > MaxWeights {
		return fmt.Errorf("the weights of a layer for %d tokens take %d MB, want at most %d MB", n, bytes>>20, MaxWeights>>20)
	}
	return nil
}

// Read returns a text, or a pair, as a model reads it.
//
// Errors: a text that the model cannot read, or that does not fit by Fits.
func Read(m *models.Model, first, second string) (probe.Reading, error) {
	in, err := probe.Read(m, first, second)
	if err == nil {
		source, target := lengths(in)
		err = Fits(m, max(source, target))
	}
	return in, err
}

// lengths returns the numbers of source and target tokens. A target that the model has still to write counts as long as
// the source.
func lengths(in probe.Reading) (source, target int) {
	source = len(in.Tokens.IDs)
	if in.Target == nil {
		return source, source
	}
	return source, len(in.Target.IDs)
}

// keptBytes returns the approximate size of a record that computes weights on request, for the given
// numbers of source and target tokens: the queries and keys of all layers.
func keptBytes(m *models.Model, source, target int) (all int64) {
	z := m.Sizes()
	if z.Decoder == nil {
		for _, l := range m.HeadLayers() {
			all += 4 * int64(source) * int64(l.Vectors)
		}
		return all
	}
	layer := func(z models.Sizes) int64 {
		return 4 * int64(z.Layers) * int64(z.Heads+2*z.KVHeads) * int64(z.HeadSize)
	}
	return int64(source)*layer(z) + int64(source+2*target)*layer(*z.Decoder) // which also attends to the source
}

// Parts divides the layers of a model for records of texts, so that the weights of no record take more than the given
// number of bytes if that is possible. It returns the number of records of each text. Record i, of text i/parts, has some
// of the layers; together the records of a text have all.
func Parts(
	m *models.Model, texts []probe.Reading, bytes int64,
) (parts int, record func(ctx context.Context, i int) (*heads.Record, error)) {
	longest := 0
	for _, t := range texts {
		source, target := lengths(t)
		longest = max(longest, source, target)
	}
	layers := m.HeadLayers()
	all := int64(len(layers)) * LayerBytes(m, longest)
	parts = int(min(int64(len(layers)), (all+bytes-1)/bytes))
	return parts, func(ctx context.Context, i int) (*heads.Record, error) {
		chosen := map[string]bool{}
		for n := i % parts; n < len(layers); n += parts {
			chosen[layers[n].Name] = true
		}
		return probe.Record(ctx, texts[i/parts], heads.RecorderOptions{Layers: func(name string) bool { return chosen[name] }})
	}
}

// Film returns the recording of the run in a directory.
func Film(dir string) (*heads.Film, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, input.Errorf(dir, "is a file, want the directory of a run; use --weights for a file")
	}
	f, err := train.ReadFilm(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, input.Errorf(dir, "contains no %s, which attn train writes", train.FilmFile)
	}
	return f, err
}

// Weights returns the record in a file of weights. If the file is a film, Weights returns the record of the last frame,
// and the film.
func Weights(path string) (*heads.Record, *heads.Film, error) {
	f, err := heads.ReadFilm(path)
	if errors.Is(err, heads.ErrNotFilm) {
		r, err := heads.Read(path)
		return r, nil, err
	} else if err != nil {
		return nil, nil, err
	}
	return f.Frames[len(f.Frames)-1].Record, f, nil
}
