package texts

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/npy"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tokenizer"
)

// Vector is the result for a line.
type Vector struct {
	Numbers []float32 `json:"-"`
	Form    any       `json:"vector"` // Numbers or, if most are zero, a models.SparseVector
	Cut     bool      `json:"-"`      // the text was truncated
}

// Vectors returns the filter that embeds lines with a model and writes JSON arrays or, if vectors are sparse, objects.
func Vectors(e *models.Embedder) filter.Filter[Vector] {
	encode := func(ctx context.Context, texts ...string) (*tokenizer.Encoding, bool, error) {
		return e.Encode(ctx, texts[0])
	}
	f := filter.Filter[Vector]{Batch: mostTexts}
	if e.Sparse() { // whose rows are long
		f.Batch = 32
	}
	f.Write = func(w io.Writer, l *filter.Line[Vector]) error {
		if l.Err != nil {
			return filter.JSON(w, l)
		}
		return json.NewEncoder(w).Encode(l.Value.Form)
	}
	return computed(joint(encode, e.Forward, e.Width(), "the vector"), f, func(l *filter.Line[Vector]) ([][]string, error) {
		return [][]string{{l.Text}}, nil
	}, func(l *filter.Line[Vector], rows [][]float32, cut bool) {
		if l.Value.Cut = cut; e.Sparse() {
			l.Value.Form = models.NewSparseVector(nil, rows[0])
			return
		}
		l.Value.Numbers = slices.Clone(rows[0])
		l.Value.Form = l.Value.Numbers
	})
}

// Columns returns the numbers of a vector as text.
func (v Vector) Columns() []string {
	cells := make([]string, len(v.Numbers))
	for i, x := range v.Numbers {
		cells[i] = strconv.FormatFloat(float64(x), 'g', -1, 32)
	}
	return cells
}

// WriteNumbers writes the numbers of a vector in the binary form of array files.
func WriteNumbers(w io.Writer, l *filter.Line[Vector]) error {
	return binary.Write(w, binary.LittleEndian, l.Value.Numbers)
}

// WriteArray writes vectors as a NumPy array or, if npyPath is empty, as the tensor vectors of a
// safetensors file. fill writes the vectors to a temporary file first and returns their number, because
// both formats begin with that number.
func WriteArray(npyPath, safetensorsPath string, width int, fill func(spool io.Writer) (int, error)) (err error) {
	spool, err := os.CreateTemp("", "attn-embed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	rows, err := fill(spool)
	if err != nil {
		return err
	}
	numbers := func(w io.Writer) error {
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(w, spool)
		return err
	}
	shape := []int{rows, width}
	if npyPath != "" {
		return atomicfile.Write(npyPath, func(w io.Writer) error {
			if _, err := w.Write(npy.Header(shape)); err != nil {
				return err
			}
			return numbers(w)
		})
	}
	s := safetensors.Stream{
		Metadata: map[string]string{"format": "pt"},
		Tensors:  []safetensors.Info{{Name: "vectors", DType: safetensors.F32, Shape: shape}},
		Data:     func(w io.Writer, _ int) error { return numbers(w) },
	}
	return s.WriteFile(safetensorsPath)
}
