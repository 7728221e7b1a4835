package attn_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

// Settings that are NaN, negative, missing or too large give a clear one-line error.
func TestRefusedSettings(t *testing.T) {
	nan := float32(math.NaN())
	q := shaped(2, 4, 3, 8)
	biased := func(r attn.ScoreChange) func() {
		return func() { attn.Attend(nil, q, q, q, attn.Options{Changes: []attn.ScoreChange{r}}) }
	}
	for _, c := range []struct {
		name, want string
		f          func()
	}{
		{"cap of NaN", `^attn: SoftCap: limit is NaN, want a positive finite number$`, func() { attn.SoftCap(nan) }},
		{"cap of 0", `^attn: SoftCap: limit is 0, want a positive finite number$`, func() { attn.SoftCap(0) }},
		{"slope", `^attn: Attend: slope 1 of ALiBi is NaN, want a finite number$`, biased(position.ALiBi(1, nan, 1, 1))},
		{"slopes", `^position: ALiBiSlopes: heads is -1, want a number of at least 0$`, func() { position.ALiBiSlopes(-1) }},
		{"distance", `^attn: Attend: MaxDistance of T5's bias is -1, want a positive number, or 0 for 128$`,
			biased(position.T5Bias(shaped(8, 4), position.T5Config{MaxDistance: -1}))},
		{"position", `^attn: ApplyPosition: position is nil, want a Position$`,
			func() { attn.ApplyPosition(nil, nil, q, attn.Query, attn.Positions{}) }},
		{"x", `^attn: ApplyPosition: x is nil, want a tensor$`,
			func() { attn.ApplyPosition(nil, &position.RoPE{}, nil, attn.Query, attn.Positions{}) }},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, tensor.Catch(c.f), c.want) })
	}
	if strconv.IntSize == 64 { // such a length does not fit in 32 bits
		capacity := 1
		capacity <<= 40
		_, err := attn.NewCache(attn.CacheConfig{Batch: 3, Heads: 2, KeySize: 8, Capacity: capacity})
		wantError(t, err, `^attn: NewCache: capacity 1099511627776 takes 4.22e\+14 bytes, want at most 4.4e\+12$`)
	}
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
	x := tensor.Randn(newRand(1), 1, 5, 6)
	got := attn.ApplyPosition(nil, &position.RoPE{}, x, attn.Query, attn.Positions{})
	want := attn.ApplyPosition(nil, made, x, attn.Query, attn.Positions{})
	for i, w := range want.Data() {
		if got.Data()[i] != w {
			t.Fatalf("element %d is %v, want %v", i, got.Data()[i], w)
		}
	}
}

// PyTorch's layer has none of these parameters: a state dict without them would describe another
// layer. A position has no parameters and is accepted.
func TestTorchStateRefusesWhatPyTorchLacks(t *testing.T) {
	const has = `^attn: TorchState: torch.nn.MultiheadAttention does not support `
	for want, change := range map[string]func(*attn.MultiHeadConfig){
		"norms of queries or keys$": func(c *attn.MultiHeadConfig) { c.KeyNorm = nn.NewRMSNorm(4) },
		"learnt sinks$":             func(c *attn.MultiHeadConfig) { c.Sinks = true },
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

// An encoder layer returns all requested results of its attention.
func TestEncoderLayerReturnsLogSumExp(t *testing.T) {
	for _, first := range []bool{false, true} {
		l, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 6, Heads: 3, NormFirst: first}, newRand(1))
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.Randn(newRand(2), 2, 5, 6)
		in := x
		if first {
			in = l.Norm1.Forward(nil, x)
		}
		got := l.Forward(nil, x, attn.Options{LogSumExp: true}).LogSumExp
		want := l.Self.Forward(nil, in, in, in, attn.Options{LogSumExp: true}).LogSumExp
		if got == nil {
			t.Fatalf("norm first %v: no log-sum-exp", first)
		}
		for i, w := range want.Data() {
			if got.Data()[i] != w {
				t.Fatalf("norm first %v: log-sum-exp %d is %v, want %v", first, i, got.Data()[i], w)
			}
		}
	}
}
