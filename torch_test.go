package attn_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// torchCase is a module that PyTorch also has. testdata/pytorch.py creates the file with its
// parameters and results.
type torchCase struct {
	module nn.Module
	// run computes the results by name from the inputs.
	run func(t *tensor.Tape, in map[string]*tensor.Tensor) map[string]*tensor.Tensor
}

// torchCases creates new modules whose parameters differ from those in the file.
func torchCases(t *testing.T) map[string]torchCase {
	rng := rand.New(rand.NewPCG(3, 5))
	forward := func(m interface {
		nn.Module
		Forward(*tensor.Tape, *tensor.Tensor) *tensor.Tensor
	}) torchCase {
		return torchCase{m, func(tape *tensor.Tape, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
			return map[string]*tensor.Tensor{"out": m.Forward(tape, in["x"])}
		}}
	}
	heads := func(c attn.MultiHeadConfig, masks ...attn.Mask) torchCase {
		c.Width, c.Heads = 15, 3
		m, err := attn.NewMultiHead(c, rng)
		if err != nil {
			t.Fatal(err)
		}
		return torchCase{m, func(tape *tensor.Tape, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
			y := m.Forward(tape, in["q"], in["k"], in["v"], attn.Options{Mask: attn.And(masks...), Weights: true})
			return map[string]*tensor.Tensor{"out": y.Out, "weights": y.Weights}
		}}
	}
	encoder := func(c attn.EncoderConfig) torchCase {
		c.Width, c.Heads, c.Hidden = 15, 3, 19
		m, err := attn.NewEncoderLayer(c, rng)
		if err != nil {
			t.Fatal(err)
		}
		return torchCase{m, func(tape *tensor.Tape, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
			return map[string]*tensor.Tensor{"out": m.Forward(tape, in["x"], attn.Options{}).Out}
		}}
	}
	embedding := nn.NewEmbedding(11, 5, 1, rng)
	gru := nn.NewGRU(5, 7, rng)
	both := newBidirectional(rng)
	return map[string]torchCase{
		"linear":        forward(nn.NewLinear(7, 5, true, rng)),
		"linear_nobias": forward(nn.NewLinear(7, 5, false, rng)),
		"layernorm":     forward(nn.NewLayerNorm(7)),
		"embedding": {embedding, func(tape *tensor.Tape, _ map[string]*tensor.Tensor) map[string]*tensor.Tensor {
			return map[string]*tensor.Tensor{"out": embedding.Forward(tape, []int{10, 0, 3, 3, 7, 1}, 2, 3)}
		}},
		"gru": {gru, func(tape *tensor.Tape, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
			out, last := gru.Forward(tape, in["x"], nil, nil, nn.Forward)
			return map[string]*tensor.Tensor{"out": out, "state": last}
		}},
		"gru_layers":         {both, both.run},
		"mha":                heads(attn.MultiHeadConfig{Bias: attn.AllProjections}),
		"mha_nobias":         heads(attn.MultiHeadConfig{Score: score.ScaledDot()}),
		"mha_widths":         heads(attn.MultiHeadConfig{Bias: attn.AllProjections, KeyWidth: 11, ValueWidth: 13}),
		"mha_sequence_first": heads(attn.MultiHeadConfig{Bias: attn.AllProjections, Layout: attn.SequenceFirst}),
		"mha_bias_kv":        heads(attn.MultiHeadConfig{Bias: attn.AllProjections, BiasKV: true}),
		"mha_zero_attn":      heads(attn.MultiHeadConfig{Bias: attn.AllProjections, ZeroKV: true}),
		"mha_bias_zero_mask": heads(attn.MultiHeadConfig{Bias: attn.AllProjections, BiasKV: true, ZeroKV: true}, mask.Causal(), mask.Lengths(0, 6)),
		"encoder":            encoder(attn.EncoderConfig{}),
		"encoder_norm_first": encoder(attn.EncoderConfig{NormFirst: true, Activation: tensor.GELU}),
		"encoder_layers":     forward(newEncoder(t, rng)),
	}
}

// bidirectional is two bidirectional layers of a GRU.
type bidirectional struct{ layers [2][2]*nn.GRU }

func newBidirectional(rng *rand.Rand) *bidirectional {
	return &bidirectional{[2][2]*nn.GRU{
		{nn.NewGRU(5, 7, rng), nn.NewGRU(5, 7, rng)},
		{nn.NewGRU(14, 7, rng), nn.NewGRU(14, 7, rng)},
	}}
}

var directions = [2]nn.Direction{nn.Forward, nn.Backward}

func (b *bidirectional) Params() nn.Params {
	return nn.Join(nn.Named{Name: "0", Module: b.layers[0][0]}, nn.Named{Name: "1", Module: b.layers[0][1]},
		nn.Named{Name: "2", Module: b.layers[1][0]}, nn.Named{Name: "3", Module: b.layers[1][1]})
}

func (b *bidirectional) TorchState() (nn.StateDict, error) {
	var all nn.StateDict
	for i, layer := range b.layers {
		for j, gru := range layer {
			d, err := nn.TorchRecurrent(gru, i, directions[j])
			if err != nil {
				return nil, err
			}
			all = append(all, d...)
		}
	}
	return all, nil
}

func (b *bidirectional) run(tape *tensor.Tape, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	x := in["x"]
	var states []*tensor.Tensor
	for _, layer := range b.layers {
		var outs []*tensor.Tensor
		for j, gru := range layer {
			out, last := gru.Forward(tape, x, nil, nil, directions[j])
			outs, states = append(outs, out), append(states, last)
		}
		x = tensor.Concat(tape, 2, outs...)
	}
	return map[string]*tensor.Tensor{"out": x, "state": tensor.Concat(tape, 0, states...)}
}

// encoder is two layers and a final normalisation: a module that consists of modules.
type encoder struct {
	layers []*attn.EncoderLayer
	norm   *nn.LayerNorm
}

func newEncoder(t *testing.T, rng *rand.Rand) *encoder {
	e := &encoder{norm: nn.NewLayerNorm(15)}
	for range 2 {
		layer, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 15, Heads: 3, Hidden: 19}, rng)
		if err != nil {
			t.Fatal(err)
		}
		e.layers = append(e.layers, layer)
	}
	return e
}

func (e *encoder) parts() []nn.Named {
	return append(nn.Numbered("layers", e.layers), nn.Named{Name: "norm", Module: e.norm})
}

func (e *encoder) Params() nn.Params                 { return nn.Join(e.parts()...) }
func (e *encoder) TorchState() (nn.StateDict, error) { return nn.JoinTorch(e.parts()...) }
func (e *encoder) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	for _, l := range e.layers {
		x = l.Forward(t, x, attn.Options{}).Out
	}
	return e.norm.Forward(t, x)
}

const torchDir = "testdata/torch"

// TestTorchState loads files saved by PyTorch, compares results and gradients with PyTorch's, and
// saves the same bytes.
func TestTorchState(t *testing.T) {
	cases := torchCases(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(torchDir, name+".safetensors")
			if err := statedict.Load(path, c.module, statedict.LoadOptions{Names: nn.TorchNames}); err != nil {
				t.Fatal(err)
			}
			g := tensortest.Open(t, filepath.Join(torchDir, name+".golden.safetensors"))
			in := map[string]*tensor.Tensor{}
			for _, key := range []string{"x", "q", "k", "v"} {
				if g.Has("in." + key) {
					in[key] = g.Tensor("in." + key).Param()
				}
			}
			tape := tensor.NewTape(tensor.Eval)
			out := c.run(tape, in)
			for key, x := range out {
				g.Check("want."+key, x)
			}
			if g.Has("in.dout") {
				tape.Backward(out["out"], g.Tensor("in.dout"))
			}
			for key, x := range in {
				g.CheckGrad("grad."+key, x)
			}
			for key, x := range c.module.Params() {
				if g.Has("grad." + key) {
					g.CheckGrad("grad."+key, x)
				}
			}

			again := filepath.Join(t.TempDir(), "again.safetensors")
			if err := statedict.Save(again, c.module, statedict.SaveOptions{Names: nn.TorchNames}); err != nil {
				t.Fatal(err)
			}
			got, want := readFile(t, again), readFile(t, path)
			if !bytes.Equal(got, want) {
				t.Errorf("saved\n%.600q\nwant\n%.600q", got, want)
			}
		})
	}
	files, err := filepath.Glob(torchDir + "/*.golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".golden.safetensors")
		if _, ok := cases[name]; !ok {
			t.Errorf("%s: no case reads it", path)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTorchLayerOfLarger loads one layer from a larger model.
func TestTorchLayerOfLarger(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 15, Heads: 3, Bias: attn.AllProjections}, rng)
	if err != nil {
		t.Fatal(err)
	}
	path := torchDir + "/encoder_layers.safetensors"
	if err := statedict.Load(path, layer, statedict.LoadOptions{Names: nn.TorchNames, Prefix: "layers.1.self_attn."}); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := f.Lookup("layers.1.self_attn.in_proj_weight").Float32s()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range []*nn.Linear{layer.Q, layer.K, layer.V} {
		if got, want := fmt.Sprint(l.Weight.Data()), fmt.Sprint(packed[i*15*15:(i+1)*15*15]); got != want {
			t.Errorf("map %d is %.100s, want %.100s", i, got, want)
		}
	}
}

func TestTorchRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	load := func(file string, c attn.MultiHeadConfig) error {
		m, err := attn.NewMultiHead(c, rng)
		if err != nil {
			t.Fatal(err)
		}
		return statedict.Load(torchDir+"/"+file+".safetensors", m, statedict.LoadOptions{Names: nn.TorchNames})
	}
	plain := attn.MultiHeadConfig{Width: 15, Heads: 3, Bias: attn.AllProjections}
	with := func(change func(*attn.MultiHeadConfig)) attn.MultiHeadConfig {
		c := plain
		change(&c)
		return c
	}
	const has = "attn: TorchState: torch.nn.MultiheadAttention does not support "
	for _, c := range []struct {
		file   string
		config attn.MultiHeadConfig
		want   string
	}{
		{"mha_bias_kv", plain, `tensor "bias_k": of add_bias_kv, want a layer with BiasKV`},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.BiasKV = true }), `tensors "bias_k", "bias_v" are missing`},
		{"mha_nobias", plain, `tensors "in_proj_bias", "out_proj.bias" are missing`},
		{"mha_widths", plain, `tensor "in_proj_weight" is missing; tensors "k_proj_weight", "q_proj_weight", "v_proj_weight" are not read`},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.Bias = 0 }), `tensors "in_proj_bias", "out_proj.bias" are not read`},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.Width = 21 }), `tensors "in_proj_weight" has shape [45 15], want [63 21], "out_proj.weight" has shape [15 15], want [21 21], "in_proj_bias" has shape [45], want [63] and 1 more`},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.KVHeads = 1 }), has + "1 key/value heads for 3 heads, want equal numbers"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.HeadSize = 7 }), has + "3 heads of key size 7 and value size 7 in width 15, want both sizes to be width/heads"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.ValueSize = 7 }), has + "3 heads of key size 5 and value size 7 in width 15, want both sizes to be width/heads"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.Heads = attn.NoHeads }), has + "0 heads of key size 15 and value size 15 in width 15, want both sizes to be width/heads"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.QueryWidth = 7 }), has + "queries of width 7 and output of width 15, want the layer's width 15 for both"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.OutWidth = 7 }), has + "queries of width 15 and output of width 7, want the layer's width 15 for both"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.Score = score.Dot() }), has + "a score of type score.dot, want the scaled dot product"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.Score = score.Func(nil) }), has + "a score of type score.Func, want the scaled dot product"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.Bias = attn.Out }), has + "biases on some projections, want biases on all or none"},
		{"mha", with(func(c *attn.MultiHeadConfig) { c.KeyWidth = attn.Infer }), "attn: TorchState: the widths of the layer's inputs are not known yet: call Build or Forward first"},
	} {
		err := load(c.file, c.config)
		want := c.want
		if !strings.HasPrefix(want, "attn: ") {
			want = "safetensors: testdata/torch/" + c.file + ".safetensors: " + want
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", c.file, err, want)
		}
	}
	var mismatch *statedict.MismatchError
	if err := load("mha_nobias", plain); !errors.As(err, &mismatch) || len(mismatch.Missing) != 2 {
		t.Errorf("error %v, want a *statedict.MismatchError", err)
	}
	// A module of modules reports an error in one of them.
	e := &encoder{norm: nn.NewLayerNorm(15)}
	_, err := nn.JoinTorch(nn.Named{Name: "e", Module: e}, nn.Named{Name: "ff", Module: nn.NewFeedForward(15, 3, 0, rng)})
	if want := "nn: TorchNames: *nn.FeedForward has no PyTorch names: it has no method TorchState"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The state dict contains the configuration of PyTorch's layer except the number of heads.
func TestTorchConfig(t *testing.T) {
	for name, want := range map[string]attn.MultiHeadConfig{
		"mha":         {Width: 15, Heads: 3, Bias: attn.AllProjections},
		"mha_nobias":  {Width: 15, Heads: 3},
		"mha_bias_kv": {Width: 15, Heads: 3, Bias: attn.AllProjections, BiasKV: true},
		"mha_widths":  {Width: 15, Heads: 3, Bias: attn.AllProjections, KeyWidth: 11, ValueWidth: 13},
	} {
		r, err := safetensors.Open(filepath.Join("testdata", "torch", name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := statedict.TorchConfig(r, "", 3)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
		m, err := attn.NewMultiHead(got, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if err := statedict.LoadFrom(r, m, statedict.LoadOptions{Names: nn.TorchNames}); err != nil {
			t.Error(err)
		}
		var format *safetensors.FormatError
		if _, err := statedict.TorchConfig(r, "layers.0.", 3); !errors.As(err, &format) || !strings.Contains(err.Error(), `tensor "layers.0.out_proj.weight" is missing`) {
			t.Errorf("%s: with a prefix that there is not: %v", name, err)
		}
		r.Close()
	}
}

// PyTorch's layer has none of these parameters: a state dict without them would describe another
// layer. A position has no parameters and is accepted.
func TestTorchStateRefusesWhatPyTorchLacks(t *testing.T) {
	const has = `^attn: TorchState: torch.nn.MultiheadAttention does not support `
	for want, change := range map[string]func(*attn.MultiHeadConfig){
		"norms of queries, keys or values$": func(c *attn.MultiHeadConfig) { c.KeyNorm = nn.NewRMSNorm(4) },
		"learnt sinks$":                     func(c *attn.MultiHeadConfig) { c.Sinks = true },
	} {
		c := attn.MultiHeadConfig{Width: 12, Heads: 3}
		change(&c)
		m, err := attn.NewMultiHead(c, newRand(1))
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.TorchState()
		wantError(t, err, has+want)
	}
}
