package induction_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/induction"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/viz"
)

var pictures = flag.String("pictures", "", "write the pictures of lesson 9 into this `directory`")

// ids are 64 sequences of 12 tokens that come twice.
var ids = induction.Draw(rand.New(rand.NewPCG(1, 3)), 64, 12)

// found is the pair of heads of a model.
type found struct {
	effects       [2][4]float32
	previous      int // head of layer 0 that attends to the token before
	follower      int // the most important head of layer 1
	before, after float32
	cut, small    []float32
}

// find does what lesson 9 shows.
func find(t *testing.T, m *induction.Model) (f found) {
	whole := known(m.Losses(ids, induction.Edits{}))
	for layer := range 2 {
		for head := range 4 {
			silent := induction.Put(nil, induction.Site{Layer: layer, Head: head, Position: -1})
			f.effects[layer][head] = known(m.Losses(ids, silent)) - whole // in nats
		}
	}
	for head := range 4 {
		if f.effects[0][head] > f.effects[0][f.previous] {
			f.previous = head
		}
		if f.effects[1][head] > f.effects[1][f.follower] {
			f.follower = head
		}
	}
	free := 0
	for slices.Contains(ids[:24], free) {
		free++
	}
	a := ids[:24] // the tokens at 5 and 17 are equal, and so are those that follow, at 6 and 18
	b := slices.Clone(a)
	b[5] = free // a token that a does not have: the one at 17 is new in b
	from := m.Run(nil, a, induction.Edits{})
	patched := induction.Put(&from, induction.Site{Layer: 0, Head: f.previous, Position: 6})
	before := m.Losses(b, induction.Edits{})[17] // of predicting the token at 18
	after := m.Losses(b, patched)[17]
	f.before, f.after = before, after
	small, err := m.Keep([2][]int{{f.previous}, {f.follower}})
	if err != nil {
		t.Fatal(err)
	}
	f.cut = small.Losses(ids, induction.Edits{})
	for range small.Train(100, 2) {
	}
	f.small = small.Losses(ids, induction.Edits{})
	return f
}

// Whatever the seed is, training grows one head that attends to the token before, and heads that attend to what followed
// the same token earlier. A pair of them suffices.
func TestInduction(t *testing.T) {
	seeds := 5
	if testing.Short() {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed+1), func(t *testing.T) {
			m := induction.New(seed + 1)
			for range m.Train(400, seed+1) {
			}
			whole := m.Losses(ids, induction.Edits{})
			if x := known(whole); x > 0.1 || whole[5] < 3 {
				t.Errorf("losses %.2f: of tokens that can be known %.3f", whole, x)
			}
			f := find(t, m)
			t.Logf("effects %.2f, patched %.2f → %.2f, alone %.2f, trained %.2f", f.effects, f.before, f.after, known(f.cut), known(f.small))
			w := m.Run(nil, ids, induction.Edits{}).Weights
			// score returns the mean weight of a head for keys that are some places before their queries.
			score := func(layer, head, from, to, back int) (sum float64) {
				for s := range 64 {
					for q := from; q < to; q++ {
						sum += float64(w[layer].At(s, head, q, q-back)) / float64(64*(to-from))
					}
				}
				return sum
			}
			if x := score(0, f.previous, 1, 13, 1); x < 0.8 {
				t.Errorf("head 0.%d gives the token before %.2f", f.previous, x)
			}
			if x := score(1, f.follower, 12, 23, 11); x < 0.8 {
				t.Errorf("head 1.%d gives what followed %.2f", f.follower, x)
			}
			for h, effect := range f.effects[0] {
				if h != f.previous && effect > f.effects[0][f.previous]/4 || h == f.previous && effect < 1 {
					t.Errorf("without head 0.%d the loss grows by %.2f", h, effect)
				}
			}
			if f.before < 2 || f.after > 1 || known(f.small) > 0.3 || known(f.cut) < known(whole)+f.effects[1][f.follower] {
				t.Errorf("patched %.2f → %.2f, alone %.2f, trained %.2f", f.before, f.after, known(f.cut), known(f.small))
			}
			if seed == 0 {
				draw(t, m, f, whole)
			}
		})
	}
}

// draw draws what the two heads attend to, and the losses by position.
func draw(t *testing.T, m *induction.Model, f found, whole []float32) {
	dir := *pictures
	if dir == "" {
		dir = t.TempDir()
	}
	figure := viz.Figure{Columns: 2, RowTitle: "token", ColumnTitle: "attends to"}
	var names []string
	for _, id := range ids[:24] {
		names = append(names, string(rune('a'+id)))
	}
	for layer, w := range m.Run(nil, ids[:24], induction.Edits{}).Weights {
		head := []int{f.previous, f.follower}[layer]
		panel := viz.Weights(tensor.Index(nil, w, 0, head), names).Panels[0]
		panel.Title, panel.NewLine = fmt.Sprintf("layer %d, head %d", layer, head), false
		figure.Panels = append(figure.Panels, panel)
	}
	chart := viz.Chart{X: "position of the token", Y: "loss, nats"}
	for i, line := range [][]float32{whole, f.cut, f.small} {
		name := []string{"all heads", fmt.Sprintf("heads 0.%d and 1.%d alone", f.previous, f.follower), "the two, trained on"}[i]
		chart.Lines = append(chart.Lines, viz.Line{Name: name, X: tensor.Linspace(2, 24, 23).Float64s(), Y: tensor.New(line, 23).Float64s(), Color: i + 1})
	}
	for name, p := range map[string]viz.Picture{"induction.svg": figure, "induction-loss.svg": chart} {
		if err := viz.WriteFile(filepath.Join(dir, name), p); err != nil {
			t.Error(err)
		}
	}
}

// Outputs that are put back change no bit, zeros are gates of 0, and with all outputs of another run a model predicts what
// the formula says: the sum of the token and of these outputs, projected.
func TestPut(t *testing.T) {
	m, none := induction.New(1), induction.Edits{}
	a, b := ids[:24], ids[24:48]
	var sites []induction.Site
	for i := range 8 {
		sites = append(sites, induction.Site{Layer: i / 4, Head: i % 4, Position: -1})
	}
	run := m.Run(nil, b, none)
	if got := m.Run(nil, b, induction.Put(&run, sites...)).Logits; !slices.Equal(got.Data(), run.Logits.Data()) {
		t.Error("a run whose outputs are put back has other bits")
	}

	silent := m.Run(nil, b, induction.Put(nil, sites[1], sites[2]))
	x := m.Token.Forward(nil, b, 1, 24)
	placed := tensor.Add(nil, x, tensor.BroadcastTo(nil, m.Position.Weight, 1, 24, 48))
	o := attn.Options{Mask: mask.Causal(), Gates: tensor.New([]float32{1, 0, 0, 1}, 4)}
	first := m.Layers[0].Forward(nil, placed, placed, x, o).Out
	near(t, "silent heads", silent.Logits, m.Out.Forward(nil, tensor.Add(nil, tensor.Add(nil, x, first), second(m, silent))))

	from := m.Run(nil, a, none)
	got := m.Run(nil, b, induction.Put(&from, sites...)).Logits
	sum := x
	for i, l := range m.Layers {
		joined := tensor.Reshape(nil, tensor.Transpose(nil, from.Outputs[i], 0, 2, 1, 3), 1, 24, 48)
		sum = tensor.Add(nil, sum, l.Out.Forward(nil, joined))
	}
	near(t, "heads of another run", got, m.Out.Forward(nil, sum))

	// A site of one position changes the outputs from there on.
	place := m.Run(nil, b, induction.Put(&from, induction.Site{Layer: 0, Head: 1, Position: 7})).Logits
	for i := range 24 {
		same := slices.Equal(place.Data()[i*24:(i+1)*24], run.Logits.Data()[i*24:(i+1)*24])
		if same != (i < 7) {
			t.Errorf("patched at 7: position %d is the same: %v", i, same)
		}
	}
}

// second returns what layer 1 adds in a run.
func second(m *induction.Model, r induction.Run) *tensor.Tensor {
	joined := tensor.Reshape(nil, tensor.Transpose(nil, r.Outputs[1], 0, 2, 1, 3), 1, 24, 48)
	return m.Layers[1].Out.Forward(nil, joined)
}

func near(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	for i, x := range got.Data() {
		if math.Abs(float64(x-want.Data()[i])) > 1e-4 {
			t.Fatalf("%s: logit %d is %v, want %v", what, i, x, want.Data()[i])
		}
	}
}

// Sequences repeat tokens that differ, and the model with all heads kept is a copy.
func TestDraw(t *testing.T) {
	drawn, periods := induction.Draw(rand.New(rand.NewPCG(1, 1)), 300, 0), map[int]bool{}
	for s := range 300 {
		ids := drawn[s*24 : (s+1)*24]
		p := 1 + slices.Index(ids[1:], ids[0])
		periods[p] = true
		for i, id := range ids {
			if j := slices.Index(ids, id); j != i%p {
				t.Errorf("%v does not repeat %d tokens that differ", ids, p)
				break
			}
		}
	}
	if len(periods) != 11 || !periods[4] || !periods[14] {
		t.Errorf("periods %v", periods)
	}
	m := induction.New(1)
	same, err := m.Keep([2][]int{{0, 1, 2, 3}, {0, 1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	before := m.Losses(ids, induction.Edits{})
	for range same.Train(10, 1) {
	}
	if !slices.Equal(before, m.Losses(ids, induction.Edits{})) || slices.Equal(before, same.Losses(ids, induction.Edits{})) {
		t.Error("training a copy changes the model, or not the copy")
	}
	if _, err := m.Keep([2][]int{{0}, {4}}); err == nil {
		t.Error("head 4 of 4 is kept")
	}
}
