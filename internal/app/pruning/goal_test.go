package pruning

import (
	"errors"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

func TestTarget(t *testing.T) {
	m := toy(t, models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 4, Layers: 1, Hidden: 16,
	})
	const hint = "; --empty-layers lets a layer lose its last"
	uneven := keep(t, m, map[string][]int{"encoder.0.self": {1}})
	cross := Experiment{Kinds: []heads.Kind{heads.Cross}}
	for _, c := range []struct {
		m    *models.Model
		t    Target
		e    Experiment
		want Goal
		err  string
	}{
		{m, Target{}, Experiment{}, Goal{Drop: 0.01}, ""},
		{m, Target{Keep: "3"}, Experiment{}, Goal{Left: 3}, ""},
		{m, Target{Share: new(0.5)}, Experiment{}, Goal{Left: 6}, ""},
		{m, Target{MaxDrop: new(0.)}, Experiment{}, Goal{}, ""},
		{m, Target{Speed: new(1.5)}, Experiment{}, Goal{Speed: 1.5}, ""},
		{m, Target{Keep: "13"}, Experiment{}, Goal{}, "--keep 13, but the model has 12 heads"},
		{m, Target{Keep: "2"}, Experiment{}, Goal{}, "the goal leaves 2 of 12 heads, but at least 3 must stay" + hint},
		{m, Target{Keep: "2"}, Experiment{Empty: true}, Goal{Left: 2}, ""},
		{
			m, Target{Share: new(1.)}, Experiment{Empty: true}, Goal{},
			"the goal leaves 0 of 12 heads, but at least 1 must stay",
		},
		{m, Target{Keep: "8"}, cross, Goal{}, "the goal leaves 8 of 12 heads, but at least 9 must stay" + hint},
		{m, Target{Keep: "7"}, cross, Goal{}, "the goal leaves 7 of 12 heads, but at least 9 must stay"},
		{uneven, Target{}, Experiment{Kinds: []heads.Kind{heads.Encoder}}, Goal{}, "no head of kind encoder can be removed"},
		{
			uneven, Target{}, Experiment{Even: true}, Goal{},
			"--even requires layers of equally many heads, and those of 'the dir' have different numbers",
		},
		{uneven, Target{}, Experiment{Even: true, Kinds: []heads.Kind{heads.Decoder, heads.Cross}}, Goal{Drop: 0.01}, ""},
	} {
		got, err := c.t.goal(prune.Layers(c.m.Attention()), &c.e, "the dir")
		message := ""
		if err != nil {
			message = err.Error()
		}
		if got != c.want || message != c.err || err != nil && !errors.As(err, new(*flags.Error)) {
			t.Errorf("%+v: %+v, %v, want %+v, %s", c.t, got, err, c.want, c.err)
		}
	}
}
