package attn

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/attn-go/attn/tensor"
)

// Pairing says which elements of a vector RoPE turns together.
type Pairing uint8

const (
	// HalfPairs turns element i with element i + Size/2: GPT-NeoX, and Llama, Qwen,
	// Mistral and Gemma as Hugging Face stores them.
	HalfPairs Pairing = iota
	// AdjacentPairs turns element 2i with element 2i+1: RoFormer, GPT-J, and Llama
	// as Meta stores it. Others call it interleaved.
	AdjacentPairs
)

// RoPEConfig describes a rotary position embedding. The zero value turns all
// elements of a head, in halves, with base 10,000.
type RoPEConfig struct {
	// Size is how many elements of a vector are turned, the first ones; even. 0
	// means all; a smaller size is partial RoPE.
	Size int
	// Base is the base of the frequencies, θ. 0 means 10,000.
	Base float64
	// Pairs says which elements are turned together.
	Pairs Pairing
	// Scaling changes the frequencies for sequences that are longer than those
	// trained on. Nil means none.
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
// shared by layers and goroutines.
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
		return nil, fmt.Errorf("attn: NewRoPE: size %d, want an even number of elements, or 0 for all", c.Size)
	}
	if c.Base == 0 {
		c.Base = 10000
	}
	if !(c.Base > 1) || math.IsInf(c.Base, 0) {
		return nil, fmt.Errorf("attn: NewRoPE: base %v, want more than 1", c.Base)
	}
	if c.Pairs > AdjacentPairs {
		return nil, fmt.Errorf("attn: NewRoPE: pairing %d, want HalfPairs or AdjacentPairs", c.Pairs)
	}
	r := &RoPE{config: c}
	if c.Size > 0 {
		if _, err := r.rotation(c.Size); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Config returns the configuration with every default but Size filled in.
func (r *RoPE) Config() RoPEConfig { return r.config }

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
func (r *RoPE) Apply(dst, x []float32, p int) {
	n := r.size(len(x))
	rot, err := r.rotation(n)
	if err != nil {
		panic(err) // Check has said so
	}
	cos, sin := rot.at(p)
	copy(dst[n:], x[n:])
	turn(dst[:n], x[:n], cos, sin, r.config.Pairs)
}

// Back turns the gradient dy back and adds it to dx.
func (r *RoPE) Back(dx, dy []float32, p int) {
	n := r.size(len(dy))
	rot, err := r.rotation(n)
	if err != nil {
		panic(err)
	}
	cos, sin := rot.at(p)
	for i := n; i < len(dy); i++ {
		dx[i] += dy[i]
	}
	turnBack(dx[:n], dy[:n], cos, sin, r.config.Pairs)
}

// turn sets dst to x, turned by the angles of which these are the cosines and sines.
func turn(dst, x, cos, sin []float32, pairs Pairing) {
	sin = sin[:len(cos)]
	if pairs == AdjacentPairs {
		x, dst = x[:2*len(cos)], dst[:2*len(cos)]
		for i, c := range cos {
			a, b := x[2*i], x[2*i+1]
			dst[2*i], dst[2*i+1] = float32(a*c)-float32(b*sin[i]), float32(a*sin[i])+float32(b*c)
		}
		return
	}
	h := len(cos)
	xa, xb, ya, yb := x[:h], x[h:][:h], dst[:h], dst[h:][:h]
	for i, c := range cos {
		a, b, s := xa[i], xb[i], sin[i]
		ya[i], yb[i] = float32(a*c)-float32(b*s), float32(a*s)+float32(b*c)
	}
}

// turnBack adds to dx the gradient dy, turned the other way.
func turnBack(dx, dy, cos, sin []float32, pairs Pairing) {
	sin = sin[:len(cos)]
	if pairs == AdjacentPairs {
		dy, dx = dy[:2*len(cos)], dx[:2*len(cos)]
		for i, c := range cos {
			a, b := dy[2*i], dy[2*i+1]
			dx[2*i] += float32(a*c) + float32(b*sin[i])
			dx[2*i+1] += float32(b*c) - float32(a*sin[i])
		}
		return
	}
	h := len(cos)
	ya, yb, xa, xb := dy[:h], dy[h:][:h], dx[:h], dx[h:][:h]
	for i, c := range cos {
		a, b, s := ya[i], yb[i], sin[i]
		xa[i] += float32(a*c) + float32(b*s)
		xb[i] += float32(b*c) - float32(a*s)
	}
}

// rotation is the angles of RoPE for vectors of one size.
type rotation struct {
	freqs  []float64
	factor float64

	mu    sync.Mutex
	table atomic.Pointer[[]float32] // [positions][2][size/2]: cosines, then sines, times factor
}

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
		for size, rot := range *known {
			all[size] = rot
		}
	}
	if all[n] == nil {
		rot := &rotation{freqs: make([]float64, n/2), factor: 1}
		for i := range rot.freqs {
			rot.freqs[i] = math.Pow(r.config.Base, -2*float64(i)/float64(n))
		}
		if r.config.Scaling != nil {
			var err error
			if rot.factor, err = r.config.Scaling(r.config.Base, rot.freqs); err != nil {
				return nil, fmt.Errorf("attn: RoPE: %w", err)
			}
		}
		all[n] = rot
		r.bySize.Store(&all)
	}
	return all[n], nil
}

// mostPositions is for how many positions the angles are kept. Others are computed
// each time.
const mostPositions = 1 << 18

// at returns the cosines and sines of position p.
func (r *rotation) at(p int) (cos, sin []float32) {
	n := len(r.freqs)
	if p < 0 || p >= mostPositions {
		row := make([]float32, 2*n)
		r.fill(row, p)
		return row[:n], row[n:]
	}
	table := r.table.Load()
	if table == nil || (p+1)*2*n > len(*table) {
		table = r.extend(p)
	}
	row := (*table)[p*2*n:][:2*n]
	return row[:n], row[n:]
}

// fill sets a row of the table.
func (r *rotation) fill(row []float32, p int) {
	n := len(r.freqs)
	for i, f := range r.freqs {
		sin, cos := math.Sincos(float64(p) * f)
		row[i], row[n+i] = float32(cos*r.factor), float32(sin*r.factor)
	}
}

// extend makes a table that holds position p.
func (r *rotation) extend(p int) *[]float32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 2 * len(r.freqs)
	var old []float32
	if t := r.table.Load(); t != nil {
		if old = *t; (p+1)*n <= len(old) {
			return t
		}
	}
	positions := 64
	for positions <= p {
		positions *= 2
	}
	table := make([]float32, positions*n)
	for i := copy(table, old) / max(n, 1); i < positions; i++ {
		r.fill(table[i*n:][:n], i)
	}
	r.table.Store(&table)
	return &table
}

// ScaleLinear divides all frequencies by a factor: position interpolation.
//
// Source: Chen et al., "Extending Context Window of Large Language Models via
// Positional Interpolation", 2023, https://arxiv.org/abs/2306.15595.
func ScaleLinear(factor float64) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !(factor >= 1) {
			return 0, fmt.Errorf("linear scaling by %v, want a factor of at least 1", factor)
		}
		for i := range freqs {
			freqs[i] /= factor
		}
		return 1, nil
	}
}

// ScaleNTK raises the base for sequences of length positions where trained were
// trained on: "dynamic NTK". Hugging Face calls it "dynamic" and computes it anew
// for every length; keys that have been cached before keep their angles.
//
// Source: bloc97 and emozilla, 2023, as in Peng et al., "YaRN", 2023,
// https://arxiv.org/abs/2309.00071, section 3.3.
func ScaleNTK(factor float64, trained, length int) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !(factor >= 1) || trained < 1 || length < 1 {
			return 0, fmt.Errorf("scaling by NTK by %v from %d positions to %d, want a factor of at least 1 and positive lengths", factor, trained, length)
		}
		// base·r^(d/(d−2)) in place of base multiplies frequency i by
		// r^(−2i/(d−2)).
		d := 2 * len(freqs)
		if length > trained && d > 2 {
			r := factor*float64(length)/float64(trained) - (factor - 1)
			for i := range freqs {
				freqs[i] *= math.Pow(r, -2*float64(i)/float64(d-2))
			}
		}
		return 1, nil
	}
}

// YaRN is the parameters of ScaleYaRN. The zero value of all but Factor and Trained is
// the paper's.
type YaRN struct {
	Factor  float64 // by how much sequences are longer than trained on
	Trained int     // how many positions were trained on
	// Fast and Slow are after how many turns in Trained positions a frequency is
	// left alone, and is divided by Factor. 0 means 32 and 1.
	Fast, Slow float64
	// Attention is the factor of turned vectors. 0 means 0.1·ln(Factor) + 1.
	Attention float64
	// Exact leaves the ends of the ramp between Fast and Slow where they are,
	// instead of rounding them outwards to whole frequencies.
	Exact bool
}

// ScaleYaRN divides slow frequencies by a factor, leaves fast ones alone, and blends
// linearly in between.
//
// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language
// Models", 2023, https://arxiv.org/abs/2309.00071, section 3.
func ScaleYaRN(y YaRN) RoPEScaling {
	return func(base float64, freqs []float64) (float64, error) {
		if !(y.Factor >= 1) || y.Trained < 1 || y.Fast < 0 || y.Slow < 0 || y.Attention < 0 {
			return 0, fmt.Errorf("scaling %+v, want a factor of at least 1, positive Trained and no negative number", y)
		}
		fast, slow := y.Fast, y.Slow
		if fast == 0 {
			fast = 32
		}
		if slow == 0 {
			slow = 1
		}
		d := float64(2 * len(freqs))
		// The number of the frequency that makes a number of turns.
		turns := func(n float64) float64 {
			return d * math.Log(float64(y.Trained)/(n*2*math.Pi)) / (2 * math.Log(base))
		}
		low, high := turns(fast), turns(slow)
		if !y.Exact {
			low, high = math.Floor(low), math.Ceil(high)
		}
		low, high = max(low, 0), min(high, d-1)
		if low == high {
			high += 0.001 // a step
		}
		for i, f := range freqs {
			ramp := min(max((float64(i)-low)/(high-low), 0), 1)
			freqs[i] = float64(f/y.Factor*ramp) + float64(f*(1-ramp))
		}
		if y.Attention != 0 {
			return y.Attention, nil
		}
		return float64(0.1*math.Log(y.Factor)) + 1, nil
	}
}

// ScaleLongRoPE divides each frequency by a factor of its own, which were searched
// for: one list for sequences of up to trained positions, one for longer ones of which
// length is to be served. Turned vectors are multiplied by
// √(1 + ln(factor)/ln(trained)), where factor is by how much sequences may be longer.
//
// Source: Ding et al., "LongRoPE", 2024, https://arxiv.org/abs/2402.13753; the factor
// as in Phi-3.
func ScaleLongRoPE(short, long []float64, factor float64, trained, length int) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		by := short
		if length > trained {
			by = long
		}
		if len(by) != len(freqs) {
			return 0, fmt.Errorf("LongRoPE has %d factors, want %d, one for each frequency", len(by), len(freqs))
		}
		if trained < 2 || !(factor > 0) {
			return 0, fmt.Errorf("LongRoPE with factor %v and %d trained positions, want both positive", factor, trained)
		}
		for i, f := range by {
			if !(f > 0) {
				return 0, fmt.Errorf("LongRoPE factor %d is %v, want a positive number", i, f)
			}
			freqs[i] /= f
		}
		if factor <= 1 {
			return 1, nil
		}
		return math.Sqrt(1 + math.Log(factor)/math.Log(float64(trained))), nil
	}
}

// ScaleLlama3 divides frequencies by a factor if their wave is longer than trained/low
// positions, leaves them if it is shorter than trained/high, and blends in
// between.
//
// Source: Llama 3.1, as in Hugging Face's rope_type "llama3".
func ScaleLlama3(factor, low, high float64, trained int) RoPEScaling {
	return func(_ float64, freqs []float64) (float64, error) {
		if !(factor >= 1) || !(low > 0) || !(high > low) || trained < 1 {
			return 0, fmt.Errorf("scaling of Llama 3 by %v between %v and %v of %d positions, want a factor of at least 1, 0 < low < high and positive trained", factor, low, high, trained)
		}
		for i, f := range freqs {
			waves := float64(trained) * f / (2 * math.Pi) // in the trained positions
			switch {
			case waves < low:
				freqs[i] = f / factor
			case waves <= high:
				smooth := (waves - low) / (high - low)
				freqs[i] = float64((1-smooth)*f/factor) + float64(smooth*f)
			}
		}
		return 1, nil
	}
}
