package heads

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/safetensors"
)

// storedVectors describes queries and keys that stay in a file.
type storedVectors struct {
	queries, keys string // names of tensors
	size          int    // E
}

// readParts reads the norms of values and finds the tensors of queries and keys.
func (l *Layer) readParts(f *safetensors.Reader, j layerJSON) error {
	lq, lk := len(l.Queries), len(l.Keys)
	// shape returns the shape of a tensor; a missing axis of heads is added.
	shape := func(name string, rank int) []int {
		t, _ := f.Lookup(name)
		if len(t.Shape) == rank-1 && l.Heads == 1 {
			return append([]int{1}, t.Shape...)
		}
		return t.Shape
	}
	if name := j.ValueNorms; name != "" {
		if got := shape(name, 2); !slices.Equal(got, []int{l.Heads, lk}) {
			return fmt.Errorf("its value_norms %s have shape %v, want [%d %d]: heads, keys", quote.Text(name), got, l.Heads, lk)
		}
		l.ValueNorms = make([]float32, l.Heads*lk)
		if err := f.ReadFloat32s(name, l.ValueNorms, 0); err != nil {
			return &readError{err}
		}
		for _, x := range l.ValueNorms {
			if x < 0 {
				return fmt.Errorf("its value_norms %s have %v, want no negative norm", quote.Text(name), x)
			}
		}
	}
	if j.QueryVectors == "" && j.KeyVectors == "" {
		if j.ScoreScale != 0 {
			return errors.New("it has score_scale without query_vectors and key_vectors")
		}
		return nil
	}
	if j.QueryVectors == "" || j.KeyVectors == "" {
		return errors.New("want both query_vectors and key_vectors")
	}
	q, k := shape(j.QueryVectors, 3), shape(j.KeyVectors, 3)
	if len(q) != 3 || q[2] < 1 || !slices.Equal(q, []int{l.Heads, lq, q[2]}) || !slices.Equal(k, []int{l.Heads, lk, q[2]}) {
		return fmt.Errorf("its query_vectors and key_vectors have shapes %v and %v, want [%d %d E] and [%d %d E]", q, k, l.Heads, lq, l.Heads, lk)
	}
	l.inFile = storedVectors{j.QueryVectors, j.KeyVectors, q[2]}
	l.ScoreScale = cmp.Or(j.ScoreScale, float32(1/math.Sqrt(float64(q[2]))))
	return nil
}

// Vectors reads the queries [Lq E] and the keys [Lk E] of a head. Both are nil if they were not recorded.
//
// Errors: those of the operating system, with the path.
func (f *File) Vectors(layer, head int) (queries, keys []float32, err error) {
	l := &f.Record.Layers[layer]
	at := l.inFile
	if at.size == 0 {
		return nil, nil, nil
	}
	queries, keys = make([]float32, len(l.Queries)*at.size), make([]float32, len(l.Keys)*at.size)
	if err = f.file.ReadFloat32s(at.queries, queries, head*len(queries)); err == nil {
		err = f.file.ReadFloat32s(at.keys, keys, head*len(keys))
	}
	if err != nil {
		return nil, nil, inFile(f.file.Path(), &readError{err})
	}
	return queries, keys, nil
}
