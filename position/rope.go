// Package position has position embeddings: rotary ones (RoPE) with their scalings, which turn
// queries and keys, and relative ones, which change scores: ALiBi, the buckets of T5, Shaw's
// vectors and those of Transformer-XL.
//
//	rope, err := position.NewRoPE(position.RoPEConfig{Base: 500000})
//	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 512, Heads: 8, Position: rope}, rng)
//	out := attn.Attend(tape, q, k, v, attn.Options{Changes: []attn.ScoreChange{position.ALiBi()}})
//
// RoPE is an attn.Position and the others are attn.ScoreChanges, as a user's own would be.
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

// Pairing says which elements of a vector RoPE turns together.
type Pairing uint8

const (
	// HalfPairs turns element i with element i + Size/2: GPT-NeoX, and Llama, Qwen,
	// Mistral and Gemma as Hugging Face stores them.
	HalfPairs Pairing = iota
	// AdjacentPairs turns element 2i with element 2i+1: RoFormer, GPT-J, and Llama
	// as Meta stores it. Others call it interleaved; "rope_interleave".
	AdjacentPairs
)

// RoPEConfig describes a rotary position embedding. The zero value turns all
// elements of a head, in halves, with base 10,000. The names in quotes, here and below,
// are those of a model's config.json as Hugging Face writes it.
type RoPEConfig struct {
	// Size is how many elements of a vector are turned, the first ones; even. 0
	// means all; a smaller size is partial RoPE: "head_dim" times
	// "partial_rotary_factor", or "rotary_dim".
	Size int
	// Base is the base of the frequencies, θ: "rope_theta". 0 means 10,000.
	Base float64
	// Pairs says which elements are turned together.
	Pairs Pairing
	// Scaling changes the frequencies for sequences that are longer than those
	// trained on: "rope_scaling", or "rope_parameters", whose "rope_type" tells which.
	// Nil means none.
	Scaling RoPEScaling
}

// RoPEScaling changes the frequencies of RoPE, freqs[i] = base^(−2i/size) radians a
// position, and returns the factor by which turned vectors are multiplied besides,
// 1 for most.
type RoPEScaling func(base float64, freqs []float64) (factor float64, err error)

// RoPE is the rotary position embedding. It turns pairs of elements of queries and keys
// by angles that grow with the position, so that their dot product depends on the
// distance of the positions:
//
//	y_a = x_a·cos(p·f_i) − x_b·sin(p·f_i)
//	y_b = x_a·sin(p·f_i) + x_b·cos(p·f_i)    f_i = base^(−2i/size)
//
// where (a, b) is pair number i. The angles are computed in float64. A RoPE may be
// shared by layers and goroutines. The zero value is that of the zero RoPEConfig.
//
// Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position
// Embedding", 2021, https://arxiv.org/abs/2104.09864, eq. 34.
type RoPE struct {
	config RoPEConfig

	mu     sync.Mutex
	bySize atomic.Pointer[map[int]*rotation]
}

// NewRoPE returns a rotary position embedding, or an error if the configuration
// contradicts itself.
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

// Config returns the configuration with every default but Size filled in.
func (r *RoPE) Config() RoPEConfig {
	c := r.config
	c.Base = cmp.Or(c.Base, defaultBase) // of the zero RoPE
	return c
}

// size returns how many elements of a vector of e are turned.
func (r *RoPE) size(e int) int {
	if r.config.Size == 0 {
		return e
	}
	return r.config.Size
}

// Check returns an error unless vectors of e elements can be turned.
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

// Apply turns the vector x to position p.
func (r *RoPE) Apply(dst, x []float32, p int, _ attn.Projections) {
	n, cos, sin := r.angles(len(x), p)
	copy(dst[n:], x[n:])
	turn(dst[:n], x[:n], cos, sin, r.config.Pairs)
}

// Back turns the gradient dy back and adds it to dx.
func (r *RoPE) Back(dx, dy []float32, p int, _ attn.Projections) {
	n, cos, sin := r.angles(len(dy), p)
	for i := n; i < len(dy); i++ {
		dx[i] += dy[i]
	}
	turnBack(dx[:n], dy[:n], cos, sin, r.config.Pairs)
}

// angles returns how many of e elements are turned, and the cosines and sines of position p.
func (r *RoPE) angles(e, p int) (n int, cos, sin []float32) {
	n = r.size(e)
	rot, err := r.rotation(n)
	if err != nil {
		panic(err) // Check has said so
	}
	cos, sin = rot.at(p)
	return n, cos, sin
}

// turn sets dst to x, turned by the angles of which these are the cosines and sines.
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

// rotate returns a pair of numbers turned by an angle.
func rotate(a, b, cos, sin float32) (float32, float32) {
	return float32(a*cos) - float32(b*sin), float32(a*sin) + float32(b*cos)
}

// turnBack adds to dx the gradient dy, turned the other way.
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

// rotation is the angles of RoPE for vectors of one size.
type rotation struct {
	freqs  []float64
	factor float64
	// blocks hold [blockPositions][2][size/2] each: cosines, then sines, times factor.
	blocks [mostPositions / blockPositions]atomic.Pointer[[]float32]
}

// The angles of the first mostPositions positions are kept, in blocks that are computed
// when they are first needed. Others are computed each time.
const (
	blockPositions = 128
	mostPositions  = 1 << 18
)

// rotation returns the angles for vectors of which n elements are turned.
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

// newRotation works out the frequencies.
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
		row = r.block(p / blockPositions)[p%blockPositions*2*n:][:2*n]
	}
	return row[:n], row[n:]
}

// block returns block number b of the angles. Goroutines that need it first at the same
// time compute it each for itself, to the same bits.
func (r *rotation) block(b int) []float32 {
	if known := r.blocks[b].Load(); known != nil {
		return *known
	}
	n := 2 * len(r.freqs)
	block := make([]float32, blockPositions*n)
	for i := range blockPositions {
		r.fill(block[i*n:][:n], b*blockPositions+i)
	}
	r.blocks[b].Store(&block)
	return block
}

// fill sets row to the angles of position p.
func (r *rotation) fill(row []float32, p int) {
	n := len(r.freqs)
	for i, f := range r.freqs {
		sin, cos := math.Sincos(float64(p) * f)
		row[i], row[n+i] = float32(cos*r.factor), float32(sin*r.factor)
	}
}
