package heads

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// maxTokens limits the length of an axis, because a few bytes of a file must not become many labels.
const maxTokens = 1 << 17

// Validate returns an error unless the weights of every layer match its heads and tokens. Write requires a
// valid record, and Read returns valid records. Check examines the values of the weights.
func (r *Record) Validate() error {
	if len(r.Layers) == 0 {
		return errors.New("no layers")
	}
	seen := map[string]bool{}
	for i := range r.Layers {
		l := &r.Layers[i]
		err := l.validate()
		if err == nil && seen[l.Name] {
			err = errors.New("duplicate name")
		}
		if err != nil {
			return fmt.Errorf("layer %s: %w", quote.Text(l.Name), err)
		}
		seen[l.Name] = true
	}
	return nil
}

func (l *Layer) validate() error {
	if err := l.validateAxes(); err != nil {
		return err
	}
	if l.Weights == nil && l.again != nil {
		return errors.New("its weights are computed on request and cannot be saved; record without OnRequest")
	}
	if lq, lk := len(l.Queries), len(l.Keys); len(l.Weights)%l.Heads != 0 || len(l.Weights)/l.Heads != lq*lk {
		return fmt.Errorf("%d weights, want %d heads · %d queries · %d keys", len(l.Weights), l.Heads, lq, lk)
	}
	return l.validateVectors()
}

// validateVectors returns an error unless norms and vectors fit the heads and tokens.
func (l *Layer) validateVectors() error {
	lq, lk, e := len(l.Queries), len(l.Keys), l.VectorSize()
	switch {
	case l.ValueNorms != nil && len(l.ValueNorms) != l.Heads*lk:
		return fmt.Errorf("%d norms of values, want %d heads · %d keys", len(l.ValueNorms), l.Heads, lk)
	case (l.QueryVectors == nil) != (l.KeyVectors == nil):
		return errors.New("want the vectors of queries and keys, or of neither")
	case l.QueryVectors != nil && (e == 0 || len(l.QueryVectors) != l.Heads*lq*e || len(l.KeyVectors) != l.Heads*lk*e):
		return fmt.Errorf("%d and %d numbers of queries and keys, want %d heads · %d queries and %d keys of one size", len(l.QueryVectors), len(l.KeyVectors), l.Heads, lq, lk)
	}
	return nil
}

// validateAxes is validate without the weights.
func (l *Layer) validateAxes() error {
	lq, lk := len(l.Queries), len(l.Keys)
	switch {
	case int(l.Kind) >= len(kindNames):
		return fmt.Errorf("unknown kind %d", l.Kind)
	case l.Index < 0 || l.Index > maxIndex:
		return fmt.Errorf("index %d, want 0 to %d", l.Index, maxIndex)
	case l.Heads < 1 || lq < 1 || lk < 1:
		return fmt.Errorf("%d heads, %d queries, %d keys: want at least one of each", l.Heads, lq, lk)
	case max(lq, lk) > maxTokens:
		return fmt.Errorf("%d queries and %d keys, want at most %d", lq, lk, maxTokens)
	}
	for _, list := range []struct {
		name    string
		numbers []int
	}{{"head", l.Chosen}, {"key/value head", l.KeyHeads}} {
		if list.numbers != nil && len(list.numbers) != l.Heads {
			return fmt.Errorf("%d %s numbers, want %d", len(list.numbers), list.name, l.Heads)
		}
		for _, n := range list.numbers {
			if n < 0 {
				return fmt.Errorf("%s number %d is negative", list.name, n)
			}
		}
	}
	for _, axis := range []struct {
		name   string
		tokens []string
		places []int
	}{{"query", l.Queries, l.QueryPlaces}, {"key", l.Keys, l.KeyPlaces}} {
		for i, token := range axis.tokens {
			if !utf8.ValidString(token) {
				return fmt.Errorf("%s %d, %s, is not UTF-8", axis.name, i, quote.Text(token))
			}
		}
		if axis.places == nil {
			continue
		}
		if len(axis.places) != len(axis.tokens) {
			return fmt.Errorf("places of %d %s tokens, want %d", len(axis.places), axis.name, len(axis.tokens))
		}
		for i, p := range axis.places {
			if i > 0 && p < axis.places[i-1] {
				return fmt.Errorf("places of %s tokens descend from %d to %d", axis.name, axis.places[i-1], p)
			}
		}
	}
	return nil
}

// Cause is the error in a row of weights.
type Cause string

// The errors in rows.
const (
	NotFinite Cause = "is not finite"
	Negative  Cause = "is negative"
	WrongSum  Cause = "is not 1"
)

// Problem is an error in rows of a head's weights.
type Problem struct {
	Head  int // as in Layer.Head
	Cause Cause
	Row   int     // the first row with the error
	Rows  int     // number of rows with the error
	Value float64 // the weight in that row, or its sum
}

// String describes a problem in a line.
func (p Problem) String() string {
	what := "has the weight"
	if p.Cause == WrongSum {
		what = "has the sum"
	}
	line := fmt.Sprintf("head %d: row %d %s %.4g, which %s", p.Head, p.Row, what, p.Value, p.Cause)
	if p.Rows > 1 {
		line += fmt.Sprintf(", and so have %d rows in all", p.Rows)
	}
	return line
}

// sumTolerance is how far the sum of a row may be from 1: rounding to bfloat16 changes a weight by at most
// 1/512.
const sumTolerance = 1. / 256

// judge returns the error in a row and the offending number. A row of zeros is correct: its query attends
// to no key. Signed rows may have negative weights and any sum.
func judge(row []float32, signed bool) (Cause, float64) {
	sum, ok := total(row)
	for i := 0; !ok && i < len(row); i++ {
		switch v := float64(row[i]); {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return NotFinite, v
		case v < 0 && !signed:
			return Negative, v
		}
	}
	if !signed && sum != 0 && math.Abs(sum-1) > sumTolerance {
		return WrongSum, sum
	}
	return "", sum
}

// total returns the sum of a row. ok reports whether all weights are finite and have no sign bit. Without sign
// bits, the bit patterns of floats are ordered like their values, and infinities and NaN are beyond the largest
// finite number, so one maximum of the bits answers both questions.
func total(row []float32) (sum float64, ok bool) {
	var bits uint32
	var s0, s1, s2, s3 float64 // four sums, so that additions do not wait for one another
	for len(row) >= 4 {
		a, b, c, d := row[0], row[1], row[2], row[3]
		bits = max(bits, math.Float32bits(a), math.Float32bits(b), math.Float32bits(c), math.Float32bits(d))
		s0, s1, s2, s3 = s0+float64(a), s1+float64(b), s2+float64(c), s3+float64(d)
		row = row[4:]
	}
	for _, w := range row {
		bits = max(bits, math.Float32bits(w))
		s0 += float64(w)
	}
	return s0 + s1 + s2 + s3, bits <= math.Float32bits(math.MaxFloat32)
}

// Check returns the errors in the weights, at most one problem of each cause for each head: a row has a
// weight that is not finite, or, unless the layer is signed, is negative, or it does not sum to 1 within 1/256. It returns
// nil if there are no errors.
func (l *Layer) Check() []Problem {
	var all []Problem
	n := len(l.Keys)
	for h := range l.Heads {
		weights := l.Head(h)     // may compute them
		found := map[Cause]int{} // index into all
		for i := range l.Queries {
			cause, value := judge(weights[i*n:(i+1)*n], l.Signed)
			if cause == "" {
				continue
			}
			at, seen := found[cause]
			if !seen {
				at = len(all)
				found[cause] = at
				all = append(all, Problem{Head: h, Cause: cause, Row: i, Value: value})
			}
			all[at].Rows++
		}
	}
	return all
}
