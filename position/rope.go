// Package position has position embeddings: rotary embeddings (RoPE) with their scalings, which
// rotate queries and keys; and relative positions, which change scores: ALiBi, T5 buckets, and
// the vectors of Shaw, of Transformer-XL and of DeBERTa.
//
//	rope, err := position.NewRoPE(position.RoPEConfig{Base: 500000})
//	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 512, Heads: 8, Position: rope}, rng)
//	out := attn.Attend(tape, q, k, v, attn.Options{Changes: []attn.ScoreChange{position.ALiBi()}})
//
// RoPE is an attn.Position, the others are attn.ScoreChanges. You can write your own in the same
// way.
package position

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Pairing selects the pairs of vector elements that RoPE rotates.
type Pairing uint8

const (
	// HalfPairs rotates element i with element i + Size/2: GPT-NeoX, and Llama, Qwen, Mistral and
	// Gemma in the Hugging Face format.
	HalfPairs Pairing = iota
	// AdjacentPairs rotates element 2i with element 2i+1: RoFormer, GPT-J, and Llama in Meta's
	// format. Other names are interleaved and "rope_interleave".
	AdjacentPairs
)

// RoPEConfig describes a rotary position embedding. The zero value rotates all elements of a
// head, in halves, with base 10,000. Names in quotes, here and below, are fields of config.json
// in the Hugging Face format.
type RoPEConfig struct {
	// Size is the number of elements rotated, the first ones of a vector; it is even. 0 means
	// all; a smaller size is partial RoPE: "head_dim" times "partial_rotary_factor", or
	// "rotary_dim".
	Size int
	// Base is the base of the frequencies, θ: "rope_theta". 0 means 10,000.
	Base float64
	// Pairs selects the pairs of elements that are rotated.
	Pairs Pairing
	// Scaling changes the frequencies for sequences longer than those in training:
	// "rope_scaling", or "rope_parameters", whose "rope_type" names the scaling. Nil means none.
	Scaling RoPEScaling
}

// RoPEScaling changes the frequencies of RoPE, freqs[i] = base^(−2i/size) radians per position.
// It returns a factor by which rotated vectors are also multiplied; for most scalings it is 1.
type RoPEScaling func(base float64, freqs []float64) (factor float64, err error)

// RoPE is the rotary position embedding. It rotates pairs of elements of queries and keys by
// angles proportional to the position, so that their dot product depends on the distance of the
// positions:
//
//	y_a = x_a·cos(p·f_i) − x_b·sin(p·f_i)
//	y_b = x_a·sin(p·f_i) + x_b·cos(p·f_i)    f_i = base^(−2i/size)
//
// (a, b) is pair number i. The angles are computed in float64. Layers and goroutines may share a
// RoPE. The zero value is the RoPE of the zero RoPEConfig.
//
// Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position
// Embedding", 2021, https://arxiv.org/abs/2104.09864, eq. 34.
type RoPE struct {
	config RoPEConfig

	mu     sync.Mutex
	bySize atomic.Pointer[map[int]*rotation]
}

// NewRoPE returns a rotary position embedding, or an error if the configuration is invalid.
func NewRoPE(c RoPEConfig) (*RoPE, error) {
	if c.Size < 0 || c.Size%2 != 0 {
		return nil, fmt.Errorf("position: NewRoPE: size %d, want an even number of elements, or 0 for all", c.Size)
	}
	c.Base = cmp.Or(c.Base, defaultBase)
	if !(c.Base > 1) || math.IsInf(c.Base, 0) {
		return nil, fmt.Errorf("position: NewRoPE: base %v, want more than 1", c.Base)
	}
	if c.Pairs > AdjacentPairs {
		return nil, fmt.Errorf("position: NewRoPE: pairing %d, want HalfPairs or AdjacentPairs", c.Pairs)
	}
	r := &RoPE{config: c}
	if c.Size > 0 {
		if _, err := r.rotation(c.Size); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// defaultBase is θ of Su et al.
const defaultBase = 10000

// Config returns the configuration with defaults filled in, except Size.
func (r *RoPE) Config() RoPEConfig {
	c := r.config
	c.Base = cmp.Or(c.Base, defaultBase) // for the zero RoPE
	return c
}

// size returns the number of rotated elements of a vector with e elements.
func (r *RoPE) size(e int) int {
	if r.config.Size == 0 {
		return e
	}
	return r.config.Size
}

// Check returns an error unless vectors of e elements can be rotated.
func (r *RoPE) Check(e int) error {
	if n := r.size(e); n > e || n%2 != 0 {
		want := "an even number"
		if n > e {
			want = fmt.Sprintf("at least %d", n)
		}
		return &tensor.ShapeError{Arg: "position RoPE", What: "head size", Got: []int{e}, Want: want}
	}
	_, err := r.rotation(r.size(e))
	return err
}

// Apply rotates the vector x to position p.
func (r *RoPE) Apply(dst, x []float32, p int, _ attn.Projections) {
	n, cos, sin := r.angles(len(x), p)
	copy(dst[n:], x[n:])
	turn(dst[:n], x[:n], cos, sin, r.config.Pairs)
}

// Back rotates the gradient dy back and adds it to dx.
func (r *RoPE) Back(dx, dy []float32, p int, _ attn.Projections) {
	n, cos, sin := r.angles(len(dy), p)
	for i := n; i < len(dy); i++ {
		dx[i] += dy[i]
	}
	turnBack(dx[:n], dy[:n], cos, sin, r.config.Pairs)
}

// angles returns the number of rotated elements of e, and the cosines and sines of position p.
func (r *RoPE) angles(e, p int) (n int, cos, sin []float32) {
	n = r.size(e)
	rot, err := r.rotation(n)
	if err != nil {
		panic(err) // Check returned no error
	}
	cos, sin = rot.at(p)
	return n, cos, sin
}

// turn sets dst to x rotated by the angles with the given cosines and sines.
func turn(dst, x, cos, sin []float32, pairs Pairing) {
	h := len(cos)
	sin = sin[:h]
	if pairs == AdjacentPairs {
		x, dst = x[:2*h], dst[:2*h]
		for i, c := range cos {
			dst[2*i], dst[2*i+1] = rotate(x[2*i], x[2*i+1], c, sin[i])
		}
		return
	}
	xa, xb, ya, yb := x[:h], x[h:][:h], dst[:h], dst[h:][:h]
	for i, c := range cos {
		ya[i], yb[i] = rotate(xa[i], xb[i], c, sin[i])
	}
}

// rotate returns a pair of numbers rotated by an angle.
func rotate(a, b, cos, sin float32) (float32, float32) {
	return float32(a*cos) - float32(b*sin), float32(a*sin) + float32(b*cos)
}

// turnBack adds to dx the gradient dy, rotated in the opposite direction.
func turnBack(dx, dy, cos, sin []float32, pairs Pairing) {
	for i, c := range cos {
		a, b := i, i+len(cos)
		if pairs == AdjacentPairs {
			a, b = 2*i, 2*i+1
		}
		x, y := rotate(dy[a], dy[b], c, -sin[i])
		dx[a] += x
		dx[b] += y
	}
}

// rotation is the angles of RoPE for one number of rotated elements.
type rotation struct {
	freqs  []float64
	factor float64
	// tables are [tablePositions][2][size/2] each: cosines, then sines, times factor.
	tables [mostPositions / tablePositions]atomic.Pointer[[]float32]
}

// The angles of the first mostPositions positions are cached in tables, which are computed on
// first use: the row "mha width 768 B1 H12 L512 rope" of bench/RESULTS.md. Angles of other positions
// are computed each time.
const (
	tablePositions = 128
	mostPositions  = 1 << 18
)

// rotation returns the angles for vectors with n rotated elements.
func (r *RoPE) rotation(n int) (*rotation, error) {
	if known := r.bySize.Load(); known != nil {
		if rot := (*known)[n]; rot != nil {
			return rot, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[int]*rotation)
	if known := r.bySize.Load(); known != nil {
		maps.Copy(all, *known)
	}
	if all[n] == nil {
		rot, err := newRotation(r.Config(), n)
		if err != nil {
			return nil, fmt.Errorf("position: RoPE: %w", err)
		}
		all[n] = rot
		r.bySize.Store(&all)
	}
	return all[n], nil
}

// newRotation computes the frequencies.
func newRotation(c RoPEConfig, n int) (*rotation, error) {
	rot := &rotation{freqs: make([]float64, n/2), factor: 1}
	for i := range rot.freqs {
		rot.freqs[i] = math.Pow(c.Base, -2*float64(i)/float64(n))
	}
	if c.Scaling != nil {
		var err error
		if rot.factor, err = c.Scaling(c.Base, rot.freqs); err != nil {
			return nil, err
		}
	}
	for i, f := range append(rot.freqs, rot.factor) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			what := "the factor"
			if i < len(rot.freqs) {
				what = fmt.Sprintf("frequency %d", i)
			}
			return nil, fmt.Errorf("%s is %v after scaling, want a finite number", what, f)
		}
	}
	return rot, nil
}

// at returns the cosines and sines of position p.
func (r *rotation) at(p int) (cos, sin []float32) {
	n := len(r.freqs)
	var row []float32
	if p < 0 || p >= mostPositions {
		row = make([]float32, 2*n)
		r.fill(row, p)
	} else {
		row = r.table(p / tablePositions)[p%tablePositions*2*n:][:2*n]
	}
	return row[:n], row[n:]
}

// table returns table number i of the angles. Goroutines that need a table first at the same time
// all compute it, with the same bits.
func (r *rotation) table(i int) []float32 {
	if known := r.tables[i].Load(); known != nil {
		return *known
	}
	n := 2 * len(r.freqs)
	table := make([]float32, tablePositions*n)
	for row := range tablePositions {
		r.fill(table[row*n:][:n], i*tablePositions+row)
	}
	r.tables[i].Store(&table)
	return table
}

// fill sets row to the angles of position p.
func (r *rotation) fill(row []float32, p int) {
	n := len(r.freqs)
	for i, f := range r.freqs {
		sin, cos := math.Sincos(float64(p) * f)
		row[i], row[n+i] = float32(cos*r.factor), float32(sin*r.factor)
	}
}
