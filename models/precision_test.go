package models_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// The states of encoders in other formats are near those in float32, and a text has the same bits in any batch.
func TestFormats(t *testing.T) {
	worst := map[tensor.Format]float64{}
	for _, dir := range fewer(cases(t)) {
		g := openGolden(t, dir)
		whole, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := whole.Hidden(nil, g.x, models.Run{}).Data()
		for p, most := range map[tensor.Format]float64{tensor.BFloat16: 0.025, tensor.Int8: 0.06} {
			m, err := models.Load(dir, models.Options{Format: p})
			if err != nil {
				t.Fatal(err)
			}
			states := m.Hidden(nil, g.x, models.Run{})
			var difference, size float64
			for i, v := range states.Data() {
				difference += math.Pow(float64(v-want[i]), 2)
				size += math.Pow(float64(want[i]), 2)
			}
			d := math.Sqrt(difference / size)
			if !(d <= most) || d == 0 {
				t.Errorf("%s in %v: relative difference %v, want at most %v, and not 0", dir, p, d, most)
			}
			worst[p] = max(worst[p], d)
			for b, ids := range g.x.IDs {
				one := models.Batch{IDs: [][]int{ids}}
				if g.x.Types != nil {
					one.Types = g.x.Types[b : b+1]
				}
				alone := m.Hidden(nil, one, models.Run{}).Data()
				if !slices.Equal(alone[:len(ids)*states.Dim(2)], states.Data()[b*states.Dim(1)*states.Dim(2):][:len(ids)*states.Dim(2)]) {
					t.Errorf("%s in %v: text %d alone has other bits", dir, p, b)
				}
			}
		}
	}
	t.Logf("largest relative differences: %v", worst)
}

// A format that does not exist, or that parameters cannot have, is refused.
func TestFormatRefused(t *testing.T) {
	for want, o := range map[string]models.Options{
		"Options.Format is Format(77), want float32, bfloat16, int8, bfloat16-weights": {Format: 77},
		"Options.Format is bfloat16, want float32 for Options.Trainable":               {Trainable: true, Format: tensor.BFloat16},
	} {
		if _, err := models.Load(filepath.Join("testdata", "bert"), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}

// A batch that runs in parts has the format of its tape.
func TestFormatOfParts(t *testing.T) {
	e, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	var x models.Batch
	for i := range 40 {
		x.IDs = append(x.IDs, []int{2, 5 + i%7, 6 + i%5, 7, 3}[:3+i%3])
	}
	on := func(mode tensor.Mode, p tensor.Format) []float32 {
		tape := tensor.NewTape(mode)
		tape.SetFormat(p)
		return slices.Clone(e.Forward(tape, x).Data())
	}
	got := on(tensor.Infer, tensor.BFloat16)
	if !slices.Equal(got, on(tensor.Eval, tensor.BFloat16)) { // which runs as a whole
		t.Error("parts have other bits than the whole")
	}
	if slices.Equal(got, on(tensor.Infer, tensor.Float32)) {
		t.Error("parts are computed in float32")
	}
}
