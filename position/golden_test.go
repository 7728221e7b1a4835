package position_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// TestGoldenPositions compares positions, relative biases, norms of queries and keys, and sinks
// with results of PyTorch in float64 and of transformers.
func TestGoldenPositions(t *testing.T) {
	paths, err := filepath.Glob("../testdata/positions/*.safetensors")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".safetensors")
		simd.Each(func(kernels string) {
			t.Run(name+"/"+kernels, func(t *testing.T) {
				s := &sheet{tensortest.Open(t, path), t}
				switch system := s.Setting("system"); system {
				case "rope":
					goldenRoPE(s)
				case "slopes":
					goldenSlopes(s)
				case "buckets":
					goldenBuckets(s)
				case "bias", "sinks":
					goldenBias(s, name)
				case "layer":
					goldenLayer(s)
				default:
					t.Fatalf("no test for system %q", system)
				}
				s.Done()
			})
		})
	}
}

// sheet is a golden file that a test reads.
type sheet struct {
	*tensortest.Golden
	t *testing.T
}

// ropeParameters is "rope_parameters" of a config.json, plus the length of the sequences, which
// the caller sets.
type ropeParameters struct {
	Type             string    `json:"rope_type"`
	Theta            float64   `json:"rope_theta"`
	Partial          float64   `json:"partial_rotary_factor"`
	Factor           float64   `json:"factor"`
	Trained          int       `json:"original_max_position_embeddings"`
	Attention        *float64  `json:"attention_factor"`
	Fast             float64   `json:"beta_fast"`
	Slow             float64   `json:"beta_slow"`
	MScale           float64   `json:"mscale"`
	MScaleAllDim     float64   `json:"mscale_all_dim"`
	Truncate         *bool     `json:"truncate"`
	Short            []float64 `json:"short_factor"`
	Long             []float64 `json:"long_factor"`
	Low              float64   `json:"low_freq_factor"`
	High             float64   `json:"high_freq_factor"`
	SequencesOfUpTo  int       `json:"seq_len"`
	maxPositionEmbed int
}

// scaling converts the settings of a config.json.
func (r ropeParameters) scaling() position.RoPEScaling {
	ratio := func() float64 { // the factor, or its replacement
		if r.Factor != 0 {
			return r.Factor
		}
		return float64(r.maxPositionEmbed) / float64(r.Trained)
	}
	switch r.Type {
	case "default":
		return nil
	case "linear":
		return position.ScaleLinear(r.Factor)
	case "dynamic":
		return position.ScaleNTK(r.Factor, r.maxPositionEmbed, r.SequencesOfUpTo)
	case "yarn":
		return position.ScaleYaRN(position.YaRN{
			Factor: ratio(), Trained: r.Trained, Fast: r.Fast, Slow: r.Slow,
			Attention: r.Attention, MScale: r.MScale, MScaleAllDim: r.MScaleAllDim,
			Exact: r.Truncate != nil && !*r.Truncate,
		})
	case "longrope":
		return position.ScaleLongRoPE(position.LongRoPE{
			Short: r.Short, Long: r.Long, Trained: r.Trained, Length: r.SequencesOfUpTo, Factor: ratio(), Attention: r.Attention,
		})
	case "llama3":
		return position.ScaleLlama3(r.Factor, r.Low, r.High, r.Trained)
	case "proportional":
		return position.ScaleProportional(r.Partial)
	}
	panic("no scaling " + r.Type)
}

// rope builds the RoPE that the file describes.
func (s *sheet) rope() *position.RoPE {
	r := ropeParameters{maxPositionEmbed: int(s.Number("max_position_embeddings"))}
	if err := json.Unmarshal([]byte(s.Setting("rope_parameters")), &r); err != nil {
		s.t.Fatal(err)
	}
	c := position.RoPEConfig{Size: int(s.Number("size")), Base: r.Theta, Scaling: r.scaling()}
	if s.Setting("adjacent") == "true" {
		c.Pairs = position.AdjacentPairs
	}
	rope, err := position.NewRoPE(c)
	if err != nil {
		s.t.Fatal(err)
	}
	return rope
}

// positions returns the positions in the file, or standard if there are none.
func (s *sheet) positions(name string, standard attn.Positions) attn.Positions {
	if !s.Has(name) {
		return standard
	}
	return attn.Positions{IDs: slices.Collect(slices.Chunk(s.Ints(name), s.Shape(name)[1]))}
}

func goldenRoPE(s *sheet) {
	rope := s.rope()
	q, k, v := s.Leaf("in.q"), s.Leaf("in.k"), s.Leaf("in.v")
	tape := tensortest.Tape(tensor.Train)
	q = attn.ApplyPosition(tape, rope, q, attn.Query, s.positions("in.query_positions", attn.Positions{Offsets: []int{k.Dim(2) - q.Dim(2)}}))
	k = attn.ApplyPosition(tape, rope, k, attn.Key, s.positions("in.key_positions", attn.Positions{}))
	s.Check("want.turned_q", q)
	s.Check("want.turned_k", k)
	y := attn.Attend(tape, q, k, v, attn.Options{Weights: true})
	s.Check("want.out", y.Out)
	s.Check("want.weights", y.Weights)
	tape.BackwardAll([]*tensor.Tensor{y.Out, q, k}, []*tensor.Tensor{s.Tensor("in.dout"), s.Tensor("in.dturned_q"), s.Tensor("in.dturned_k")})
	s.CheckGrads()
}

// goldenSlopes tests ALiBi's slopes of some numbers of heads, and those of MPT, which are the
// same in another order.
func goldenSlopes(s *sheet) {
	for n := 1; n <= 70; n++ {
		slopes := position.ALiBiSlopes(n)
		s.Check(fmt.Sprint("want.slopes.", n), tensor.New(slopes, n))
	}
	// MPT takes every second of 16 slopes, and then the others.
	sixteen := position.ALiBiSlopes(16)
	var mpt []float32
	for i := 1; i < 16; i += 2 {
		mpt = append(mpt, sixteen[i])
	}
	for i := 0; len(mpt) < 12; i += 2 {
		mpt = append(mpt, sixteen[i])
	}
	s.Check("want.mpt.12", tensor.New(mpt, 12))
}

// goldenBuckets tests the bucket of each distance: with a table of bucket numbers, T5Bias adds
// the bucket's number to a score of 0.
func goldenBuckets(s *sheet) {
	distances := s.Ints("in.distances") // from key to query
	file, tried := s.Golden, 0
	for buckets := 2; buckets <= 512; buckets++ {
		for most := 1; most <= 1000; most++ {
			name := fmt.Sprintf("buckets.%d.%d", buckets, most)
			if !file.Has(name) {
				continue
			}
			tried++
			table := tensor.Zeros(buckets, 1)
			for b := range buckets {
				table.Data()[b] = float32(b)
			}
			c := position.T5Config{Causal: s.Setting("causal") == "true", MaxDistance: most}
			rule := position.T5Bias(table, c)
			if err := rule.Check(attn.Sizes{B: 1, H: 1, G: 1, Lq: 1, Lk: 1}); err != nil {
				s.t.Fatal(err)
			}
			param := rule.Param(nil, attn.Inputs{}).Data()
			want := s.Ints(name)
			// One by one, and the first 601 in one row.
			limit := c.Distances(buckets)
			for i, d := range distances {
				if covered := max(d, -d) < limit; covered != (want[i] >= 0) {
					s.t.Errorf("%s: distances below %d have a bucket, want %v for %d", name, limit, !covered, d)
				}
				if want[i] < 0 {
					continue
				}
				got := []float32{0}
				rule.Apply(attn.Row{Position: 7, Key: 7 + d}, param, got)
				if int(got[0]) != want[i] {
					s.t.Errorf("%s: a key at distance %d is in bucket %v, want %d", name, d, got[0], want[i])
				}
			}
			row := make([]float32, 601)
			rule.Apply(attn.Row{Position: 300}, param, row)
			for j, got := range row {
				if want[j] >= 0 && int(got) != want[j] {
					s.t.Errorf("%s: a key at distance %d in a row is in bucket %v, want %d", name, distances[j], got, want[j])
				}
			}
		}
	}
	if tried < 17 {
		s.t.Errorf("%d tables of buckets, want 17 or more", tried)
	}
}

// goldenBias tests a call of Attend with relative biases or sinks.
func goldenBias(s *sheet, name string) {
	o := attn.Options{Weights: true, LogSumExp: s.Has("want.lse")}
	if s.Setting("causal") == "true" {
		o.Mask = mask.Causal()
	}
	if s.Has("in.mask") {
		o.Mask = attn.And(o.Mask, mask.Allow(s.Bools("in.mask"), s.Shape("in.mask")...))
	}
	q, k, v := s.Leaf("in.q"), s.Leaf("in.k"), s.Leaf("in.v")
	switch family, _, _ := strings.Cut(name, "_"); family {
	case "alibi":
		o.Changes = []attn.ScoreChange{position.ALiBi()}
	case "t5":
		o.Score = score.Dot()
		o.Changes = []attn.ScoreChange{position.T5Bias(s.Leaf("param.table"), position.T5Config{
			Causal: s.Setting("causal") == "true", MaxDistance: int(s.Number("max_distance")),
		})}
	case "shaw":
		o.Changes = []attn.ScoreChange{position.ShawBias(s.Leaf("param.r"))}
	case "xl":
		o.Changes = position.TransformerXLBias(s.Leaf("param.r"), s.Leaf("param.pos_bias_u"), s.Leaf("param.pos_bias_v"))
	case "deberta":
		var r [2]*tensor.Tensor
		for i, name := range []string{"param.keys", "param.queries"} {
			if s.Has(name) {
				r[i] = s.Leaf(name)
			}
		}
		scale := float32(s.Number("scale"))
		o.Score, o.Changes = score.DotScale(scale), position.DeBERTaBias(r[0], r[1], scale)
	case "sinks":
		o.Sinks = s.Leaf("in.sinks")
		if s.Has("in.bias") {
			o.Bias = s.Leaf("in.bias")
		}
		if s.Setting("softcap") != "" {
			o.Changes = []attn.ScoreChange{attn.SoftCap(float32(s.Number("softcap")))}
		}
	case "log":
	default:
		s.t.Fatalf("no test for %s", name)
	}
	tape := tensortest.Tape(tensor.Train)
	y := attn.Attend(tape, q, k, v, o)
	s.Check("want.out", y.Out)
	s.Check("want.weights", y.Weights)
	outs, douts := []*tensor.Tensor{y.Out}, []*tensor.Tensor{s.Tensor("in.dout")}
	if s.Has("in.dweights") {
		outs, douts = append(outs, y.Weights), append(douts, s.Tensor("in.dweights"))
	}
	if o.LogSumExp {
		s.Check("want.lse", y.LogSumExp)
		outs, douts = append(outs, y.LogSumExp), append(douts, s.Tensor("in.dlse"))
	}
	tape.BackwardAll(outs, douts)
	s.CheckGrads()
}

// goldenLayer tests a causal layer with norms, positions and sinks.
func goldenLayer(s *sheet) {
	heads, groups := int(s.Number("heads")), int(s.Number("kv_heads"))
	c := attn.MultiHeadConfig{
		Width: s.Shape("in.x")[2], Heads: heads, KVHeads: groups, HeadSize: s.Shape("param.q.weight")[0] / heads,
		Sinks: s.Has("param.sinks"),
	}
	if s.Has("param.q.bias") {
		c.Bias = attn.AllProjections
	}
	switch s.Setting("norm") {
	case "rms":
		q, k := nn.NewRMSNorm(c.HeadSize), nn.NewRMSNorm(c.HeadSize)
		q.Eps, k.Eps = float32(s.Number("eps")), float32(s.Number("eps"))
		c.QueryNorm, c.KeyNorm = q, k
	case "l2":
		c.QueryNorm, c.KeyNorm = nn.L2Norm{}, nn.L2Norm{}
	}
	if s.Setting("rope_parameters") != "" {
		c.Position = s.rope()
	}
	if s.Setting("scale") != "" {
		c.Score = score.DotScale(float32(s.Number("scale")))
	}
	m, err := attn.NewMultiHead(c, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, p := range m.Params() {
		copy(p.Data(), s.Tensor("param."+name).Data())
		s.Leaves["param."+name] = p
	}
	x := s.Leaf("in.x")
	o := attn.Options{Mask: mask.Causal(), Weights: true}
	tape := tensortest.Tape(tensor.Train)
	y := m.Forward(tape, x, x, x, o)
	s.Check("want.out", y.Out)
	s.Check("want.weights", y.Weights)
	tape.Backward(y.Out, s.Tensor("in.dout"))
	s.CheckGrads()

	// Cosine with a trained scale equals norm and scale.
	if s.Setting("norm") == "l2" {
		c.QueryNorm, c.KeyNorm = nil, nil
		c.Score = &score.Cosine{Scale: tensor.Full(float32(s.Number("scale")), 1).Param()}
		cosine, err := attn.NewMultiHead(c, rand.New(rand.NewPCG(1, 0)))
		if err != nil {
			s.t.Fatal(err)
		}
		for name, p := range cosine.Params() {
			if name != "score.scale" {
				copy(p.Data(), s.Tensor("param."+name).Data())
			}
		}
		s.Check("want.out", cosine.Forward(nil, x, x, x, o).Out)
	}
}
