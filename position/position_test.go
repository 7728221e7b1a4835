package position_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// The zero RoPE equals that of the zero configuration.
func TestZeroRoPE(t *testing.T) {
	if base := new(position.RoPE).Config().Base; base != 10000 {
		t.Errorf("base %v, want 10000", base)
	}
	made, err := position.NewRoPE(position.RoPEConfig{})
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Randn(rand.New(rand.NewPCG(1, 0)), 1, 5, 6)
	got := attn.ApplyPosition(nil, &position.RoPE{}, x, attn.Query, attn.Positions{})
	want := attn.ApplyPosition(nil, made, x, attn.Query, attn.Positions{})
	for i, w := range want.Data() {
		if got.Data()[i] != w {
			t.Fatalf("element %d is %v, want %v", i, got.Data()[i], w)
		}
	}
}

// The ramp of YaRN ends at the first and the last dimension if the turns of its ends are outside
// of them. The expected values are from transformers' _compute_yarn_parameters.
func TestYaRNWithinDimensions(t *testing.T) {
	for _, c := range []struct {
		base  float64
		yarn  position.YaRN
		freqs []float64
		want  []float64
	}{
		{10000, position.YaRN{Factor: 4, Trained: 100}, make([]float64, 8), []float64{
			1, 0.23717082451262847, 0.05, 0.007905694150420948, 0.0025, 0.0007905694150420948, 0.00025, 7.905694150420948e-05,
		}},
		{100, position.YaRN{Factor: 4, Trained: 1000, Slow: 1e-3}, make([]float64, 4), []float64{
			1, 0.31622776601683794, 0.08750000000000001, 0.023717082451262847,
		}},
	} {
		for i := range c.freqs {
			c.freqs[i] = math.Pow(c.base, -float64(i)/float64(len(c.freqs)))
		}
		if _, err := position.ScaleYaRN(c.yarn)(c.base, c.freqs); err != nil {
			t.Fatal(err)
		}
		for i, f := range c.freqs {
			if math.Abs(f/c.want[i]-1) > 1e-12 {
				t.Errorf("base %v: frequency %d is %v, want %v", c.base, i, f, c.want[i])
			}
		}
	}
}

// An attention factor of 0 differs from none. The expected values are from transformers'
// _compute_yarn_parameters and _compute_longrope_parameters.
func TestAttentionFactor(t *testing.T) {
	for _, given := range []float64{0, 0.875} {
		yarn := position.ScaleYaRN(position.YaRN{Factor: 4, Trained: 100, Attention: &given})
		long := position.ScaleLongRoPE(position.LongRoPE{Short: []float64{1, 1}, Trained: 8, Length: 8, Attention: &given})
		for _, scale := range []position.RoPEScaling{yarn, long} {
			if got, err := scale(10000, make([]float64, 2)); got != given || err != nil {
				t.Errorf("factor %v, %v, want %v", got, err, given)
			}
		}
	}
	for _, c := range []struct {
		scale position.RoPEScaling
		want  float64
	}{
		{position.ScaleYaRN(position.YaRN{Factor: 4, Trained: 100}), 1.138629436111989},
		{position.ScaleLongRoPE(position.LongRoPE{Short: []float64{1, 1}, Trained: 8, Length: 8, Factor: 4}), 1.2909944487358056},
	} {
		if got, err := c.scale(10000, make([]float64, 2)); math.Abs(got-c.want) > 1e-15 || err != nil {
			t.Errorf("factor %v, %v, want %v", got, err, c.want)
		}
	}
}

// The limits are from T5Attention._relative_position_bucket of transformers: the first distance
// with a negative bucket.
func TestT5Distances(t *testing.T) {
	for _, c := range []struct{ buckets, most, both, causal int }{
		{32, 128, math.MaxInt, math.MaxInt},
		{32, 0, math.MaxInt, math.MaxInt}, // MaxDistance is 128
		{32, 9, math.MaxInt, 30},
		{33, 8, 8, 32},
		{256, 128, math.MaxInt, 128},
		{512, 128, 128, 514},
		{16, 3, 6, 25},
		{7, 1, 1, 9},
		{3, 128, 0, math.MaxInt},
		{1, 128, 0, 0},
		{32, -1, 0, 0},
	} {
		both := position.T5Config{MaxDistance: c.most}.Distances(c.buckets)
		causal := position.T5Config{MaxDistance: c.most, Causal: true}.Distances(c.buckets)
		if both != c.both || causal != c.causal {
			t.Errorf("%d buckets, MaxDistance %d: %d and %d distances, want %d and %d",
				c.buckets, c.most, both, causal, c.both, c.causal)
		}
	}
}

// An inconsistent configuration gives a one-line error.
func TestPositionsRefuse(t *testing.T) {
	rope := func(c position.RoPEConfig) error { _, err := position.NewRoPE(c); return err }
	odd := attn.MultiHeadConfig{Width: 15, Heads: 3, Position: &position.RoPE{}}
	for _, c := range []struct {
		want string
		err  error
	}{
		{"position: NewRoPE: size 7, want an even number of elements, or 0 for all", rope(position.RoPEConfig{Size: 7})},
		{"position: NewRoPE: size -2, want an even number of elements, or 0 for all", rope(position.RoPEConfig{Size: -2})},
		{"position: NewRoPE: base 1, want more than 1", rope(position.RoPEConfig{Base: 1})},
		{"position: NewRoPE: base NaN, want more than 1", rope(position.RoPEConfig{Base: math.NaN()})},
		{"position: NewRoPE: pairing 2, want HalfPairs or AdjacentPairs", rope(position.RoPEConfig{Pairs: 2})},
		{"position: RoPE: ScaleLinear: factor 0.5, want at least 1", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleLinear(0.5)})},
		{"position: RoPE: ScaleLinear: factor +Inf, want at least 1", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleLinear(math.Inf(1))})},
		{"position: RoPE: ScaleFixedNTK: factor 0.5, want at least 1", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleFixedNTK(0.5)})},
		{"position: RoPE: ScaleNTK: factor 2, trained 0 and length 5, want a factor of at least 1 and positive lengths", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleNTK(2, 0, 5)})},
		{"position: RoPE: ScaleYaRN: Trained (original_max_position_embeddings) 0, want at least 1",
			rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleYaRN(position.YaRN{Factor: 4})})},
		{"position: RoPE: ScaleYaRN: Fast (beta_fast) 1 and Slow (beta_slow) 2, want Slow above 0 and Fast above Slow",
			rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleYaRN(position.YaRN{Factor: 4, Trained: 8, Fast: 1, Slow: 2})})},
		{"position: RoPE: ScaleLongRoPE: Short (short_factor) has 1 factors, want 2, one for each frequency", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleLongRoPE(position.LongRoPE{Short: []float64{1}, Trained: 8, Length: 8, Factor: 2})})},
		{"position: RoPE: ScaleLongRoPE: factor 1 of Long (long_factor) is 0, want a positive number", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleLongRoPE(position.LongRoPE{Long: []float64{1, 0}, Trained: 8, Length: 9, Factor: 2})})},
		{"position: RoPE: ScaleLongRoPE: Factor 0 without Attention, want a positive number", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleLongRoPE(position.LongRoPE{Short: []float64{1, 1}, Trained: 8, Length: 8})})},
		{"position: RoPE: ScaleLongRoPE: Length 0 and Trained (original_max_position_embeddings) 8, want Length at least 1 and Trained at least 2", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleLongRoPE(position.LongRoPE{Short: []float64{1, 1}, Trained: 8, Factor: 2})})},
		{"position: RoPE: ScaleLlama3: low (low_freq_factor) 4 and high (high_freq_factor) 1, want low above 0 and high above low", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleLlama3(8, 4, 1, 8192)})},
		{"position: RoPE: ScaleProportional: part 1.5, want 0 to 1", rope(position.RoPEConfig{Size: 4, Scaling: position.ScaleProportional(1.5)})},
		{"position: RoPE: frequency 1 is NaN after scaling, want a finite number", rope(position.RoPEConfig{Size: 4, Scaling: func(_ float64, f []float64) (float64, error) { f[1] = math.NaN(); return 1, nil }})},
		{"position: RoPE: the factor is +Inf after scaling, want a finite number", rope(position.RoPEConfig{Size: 4, Scaling: func(float64, []float64) (float64, error) { return math.Inf(1), nil }})},
		{"attn: NewMultiHead: position RoPE has head size 5, want an even number", func() error { _, err := attn.NewMultiHead(odd, rand.New(rand.NewPCG(1, 0))); return err }()},
	} {
		if fmt.Sprint(c.err) != c.want {
			t.Errorf("error %v, want %s", c.err, c.want)
		}
	}
	x := tensor.Zeros(2, 3, 5, 6)
	rotary, _ := position.NewRoPE(position.RoPEConfig{Size: 8})
	table := tensor.Zeros(32, 3)
	attend := func(r ...attn.ScoreChange) func() {
		return func() { attn.Attend(nil, x, x, x, attn.Options{Changes: r}) }
	}
	for want, f := range map[string]func(){
		"attn: ApplyPosition: position RoPE has head size 6, want at least 8": func() { attn.ApplyPosition(nil, rotary, x, attn.Query, attn.Positions{}) },
		"attn: ApplyPosition: positions has 3 rows, want one, or one for each of B=2 sequences": func() {
			attn.ApplyPosition(nil, &position.RoPE{}, x, attn.Query, attn.Positions{Offsets: []int{1, 2, 3}})
		},
		"attn: ApplyPosition: positions has 2 positions, want 5, one for each vector": func() { attn.ApplyPosition(nil, &position.RoPE{}, x, attn.Query, attn.Positions{IDs: [][]int{{1, 2}}}) },
		"attn: ApplyPosition: of is 5, want Query or Key": func() {
			attn.ApplyPosition(nil, &position.RoPE{}, x, attn.Query|attn.Value, attn.Positions{})
		},
		"attn: ApplyPosition: positions is Offsets and IDs, want at most one of them": func() {
			attn.ApplyPosition(nil, &position.RoPE{}, x, attn.Query, attn.Positions{Offsets: []int{1}, IDs: [][]int{{1, 2, 3, 4, 5}}})
		},
		"attn: Attend: bias of ALiBi has 2 slopes, want one for each of H=3 heads": attend(position.ALiBi(1, 2)),
		"attn: Attend: table of T5's bias has shape [32 3], want [buckets H=4]": func() {
			y := tensor.Zeros(2, 4, 5, 6)
			attn.Attend(nil, y, y, y, attn.Options{Changes: []attn.ScoreChange{position.T5Bias(table, position.T5Config{})}})
		},
		"attn: Attend: table of T5's bias has 3 buckets, want at least 4":                                                   attend(position.T5Bias(tensor.Zeros(3, 3), position.T5Config{})),
		"attn: Attend: table of T5's bias has 1 buckets, want at least 2":                                                   attend(position.T5Bias(tensor.Zeros(1, 3), position.T5Config{Causal: true})),
		"attn: Attend: distance of a key from a query is 4, want less than 1 with 7 buckets and MaxDistance 1 of T5's bias": attend(position.T5Bias(tensor.Zeros(7, 3), position.T5Config{MaxDistance: 1})),
		"attn: Attend: MaxDistance of T5's bias is -1, want a positive number, or 0 for 128":                                attend(position.T5Bias(table, position.T5Config{MaxDistance: -1, Causal: true})),
		"attn: Attend: table of T5's bias is nil, want [buckets H=3]":                                                       attend(position.T5Bias(nil, position.T5Config{})),
		"attn: Attend: vectors of relative positions has shape [4 6], want [2K+1 E] or [H=3 2K+1 E]":                        attend(position.ShawBias(tensor.Zeros(4, 6))),
		"attn: Attend: bias of relative positions has head size 7, want E=6":                                                attend(position.ShawBias(tensor.Zeros(5, 7))),
		"attn: Attend: v of relative positions has shape [3 7], want [H=3 E=6]":                                             attend(position.TransformerXLBias(tensor.Zeros(5, 6), tensor.Zeros(3, 6), tensor.Zeros(3, 7))...),
		"attn: Attend: u of relative positions has shape [2 6], want [H=3 E]":                                               attend(position.TransformerXLBias(tensor.Zeros(5, 6), tensor.Zeros(2, 6), tensor.Zeros(3, 6))...),
		"attn: Attend: vectors of relative positions has shape [3 6 6], want [2K+1 E] or [H=3 2K+1 E]":                      attend(position.DeBERTaBias(nil, tensor.Zeros(3, 6, 6), 1)...),
		"attn: Attend: vectors of relative positions has shape [2 5 6], want [2K+1 E] or [H=3 2K+1 E]":                      attend(position.DeBERTaBias(tensor.Zeros(2, 5, 6), nil, 1)...),
		"attn: Attend: bias of relative positions has head size 5, want E=6":                                                attend(position.DeBERTaBias(nil, tensor.Zeros(7, 5), 1)...),
		"attn: Attend: sinks has shape [2], want [H=3]":                                                                     func() { attn.Attend(nil, x, x, x, attn.Options{Sinks: tensor.Zeros(2)}) },
		"attn: Attend: positions is given, want none: ApplyPosition moves queries and keys before Attend":                   func() { attn.Attend(nil, x, x, x, attn.Options{KeyPositions: attn.Positions{Offsets: []int{1}}}) },
	} {
		if err := tensor.Catch(f); fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
