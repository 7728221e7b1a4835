package nn_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

func TestRecurrentErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 12))
	z := tensor.Zeros
	gru := func(spoil func(g *nn.GRU)) func() {
		g := nn.NewGRU(3, 7, rng)
		spoil(g)
		return func() { g.Forward(nil, z(2, 5, 3), nil, nil, nn.Forward) }
	}
	lstm := func(x, h0, c0 *tensor.Tensor, lens []int) func() {
		return func() { nn.NewLSTM(3, 7, rng).Forward(nil, x, h0, c0, lens, nn.Forward) }
	}
	for _, c := range []struct {
		f    func()
		want string
	}{
		{lstm(z(2, 5, 4), nil, nil, nil), "nn: LSTM: x has shape [2 5 4], want [B L D=3]"},
		{lstm(z(5, 3), nil, nil, nil), "nn: LSTM: x has shape [5 3], want [B L D=3]"},
		{lstm(z(2, 5, 3), z(2, 8), nil, nil), "nn: LSTM: h0 has shape [2 8], want [B=2 H=7]"},
		{lstm(z(2, 5, 3), z(2, 7), z(1, 2, 7), nil), "nn: LSTM: c0 has shape [1 2 7], want [B=2 H=7]"},
		{lstm(z(2, 5, 3), nil, nil, []int{5}), "nn: LSTM: lens has 1 lengths, want B=2"},
		{lstm(z(2, 5, 3), nil, nil, []int{5, 6}), "nn: LSTM: lens has lengths [5 6], want 0 to L=5"},
		{gru(func(g *nn.GRU) { g.WeightHH = z(28, 7) }), "nn: GRU: weight_hh has shape [28 7], want [3·H H]"},
		{gru(func(g *nn.GRU) { g.WeightIH = z(7, 3) }), "nn: GRU: weight_ih has shape [7 3], want [21 D] for H=7"},
		{gru(func(g *nn.GRU) { g.BiasHH = z(7) }), "nn: GRU: bias_hh has shape [7], want [21] for H=7"},
		{func() {
			r := nn.NewRNN(3, 7, rng)
			r.Activation = 2
			r.Forward(nil, z(2, 5, 3), nil, nil, nn.Forward)
		}, "nn: RNN: Activation has value 2, want Tanh or ReLU"},
	} {
		if err := tensor.Catch(c.f); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	for want, f := range map[string]func(){
		"nn: LSTM: x ":      lstm(nil, nil, nil, nil),
		"nn: LSTM: weight_": func() { new(nn.LSTM).Forward(nil, z(2, 5, 3), nil, nil, nil, nn.Forward) },
		"nn: RNN: weight_ih": func() {
			(&nn.RNN{CellWeights: nn.CellWeights{WeightHH: z(7, 7)}}).Forward(nil, z(2, 5, 3), nil, nil, nn.Forward)
		},
	} {
		if err := tensor.Catch(f); !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("error %v, want one that begins with %s", err, want)
		}
	}
}
