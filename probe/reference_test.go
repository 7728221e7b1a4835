package probe

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

// TestReference compares a probe with itself and with a pruned one. The result has the same bits whether the
// states of the reference are stored or recomputed.
func TestReference(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"bert_words", "bert_text", "decoders/llama3"} {
		m, err := models.Load("../models/testdata/"+name, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		var examples []Example
		for i := range 67 { // of different lengths, in two batches
			var e Example
			for j := range 2 + i*5%7 {
				e.IDs, e.Targets = append(e.IDs, (i*11+j*7)%31), append(e.Targets, (i+j)%29)
			}
			if !m.Head().Task.PerToken() {
				e.Targets = []int{i % len(m.Head().Labels)}
			}
			examples = append(examples, e)
		}
		p, err := New(m, examples)
		if err != nil {
			t.Fatal(err)
		}
		layer := m.HeadLayers()[0]
		gone := []prune.Head{{Layer: layer.Name}}
		for h := 1; h < layer.Group; h++ {
			gone = append(gone, prune.Head{Layer: layer.Name, Number: h})
		}
		less, err := p.Without(gone)
		if err != nil {
			t.Fatal(err)
		}
		var first []Predicted
		for _, room := range []int{mostStates, 0} {
			r, err := newReference(ctx, p, room)
			if err != nil {
				t.Fatal(err)
			}
			if (len(r.states) == 0) != (room == 0) || len(p.batches) < 2 {
				t.Fatalf("%s: states of %d of %d batches are kept", name, len(r.states), len(p.batches))
			}
			same, err := r.Compare(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			list, err := r.Compare(ctx, less)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = list
			} else if !slices.EqualFunc(first, list, func(a, b Predicted) bool { return a.Loss == b.Loss && a.KL == b.KL && a.Right == b.Right }) {
				t.Errorf("%s: states that are computed again give other predictions", name)
			}
			for i, e := range examples {
				alone, err := New(m, []Example{e})
				if err != nil {
					t.Fatal(err)
				}
				want, err := alone.Loss(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if got := same[i]; got.KL != 0 || got.Terms != len(e.Targets) || math.Abs(got.Loss/float64(got.Terms)-want) > 1e-5 || !math.IsNaN(got.Cosine) {
					t.Fatalf("%s: example %d is said to be %+v, its loss is %v", name, i, got, want)
				}
				if right := rightOf(m, e); same[i].Right != right {
					t.Errorf("%s: example %d has %d right, want %d", name, i, same[i].Right, right)
				}
				if !(list[i].KL > 0) && list[i].Loss != same[i].Loss {
					t.Errorf("%s: example %d without heads: %+v", name, i, list[i])
				}
			}
			still, err := r.moved(ctx, p, room)
			if err != nil {
				t.Fatal(err)
			}
			for layer, list := range still {
				if len(list) == 0 || slices.Max(list) != 0 || slices.Min(list) != 0 {
					t.Errorf("%s: the weights of %s have moved by %v from themselves", name, layer, list)
				}
			}
			away, err := r.moved(ctx, less, room)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range less.Layers() { // those of the first layer do not depend on other heads
				if list := away[c.Name]; len(list) != c.Heads || c.Heads > 0 && (slices.Max(list) > 0) != (c.Name != layer.Name) ||
					c.Heads > 0 && !(slices.Min(list) >= 0 && slices.Max(list) <= math.Ln2) {
					t.Errorf("%s: without heads, the weights of %s have moved by %v", name, c.Name, list)
				}
			}
			if d, _, err := r.Difference(ctx, p); d != 0 || err != nil {
				t.Errorf("%s: it differs from itself by %v (%v)", name, d, err)
			}
			if d, scale, err := r.Difference(ctx, less); !(d > 0 && d < 2*scale) || err != nil {
				t.Errorf("%s: without heads it differs by %v of %v (%v)", name, d, scale, err)
			}
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := NewReference(ended, p); err != context.Canceled {
			t.Errorf("error %v, want that of the context", err)
		}
	}
}

// rightOf returns the number of targets of an example for which no class is more likely.
func rightOf(m *models.Model, e Example) int {
	logits := m.Head().Of(nil, m.Hidden(nil, models.Batch{IDs: [][]int{e.IDs}}, models.Run{}), models.Batch{IDs: [][]int{e.IDs}})
	classes := logits.Dim(logits.Rank() - 1)
	n := 0
	for i, target := range e.Targets {
		if row := logits.Data()[i*classes:][:classes]; row[target] == slices.Max(row) {
			n++
		}
	}
	return n
}

// Batches of examples depend on their lengths and on the number of logits.
func TestProbeBatches(t *testing.T) {
	for _, c := range []struct {
		n, length, logits int
		want              []int
	}{
		{2*mostSequences + 1, 1, 1, []int{mostSequences, mostSequences, 1}},
		{5, usualBatches.tokens / 2, 1, []int{2, 2, 1}},
		{5, usualBatches.tokens/2 + 1, 1, []int{1, 1, 1, 1, 1}},
		{5, 1, usualBatches.logits / 3, []int{3, 2}},
		{2, 1, 2 * usualBatches.logits, []int{1, 1}},
	} {
		same := func(x int) func(int) int { return func(int) int { return x } }
		var got []int
		for list := stats.Numbers(c.n); len(list) > 0; {
			n := usualBatches.first(list, same(c.length), same(c.logits))
			got, list = append(got, n), list[n:]
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d examples of length %d with %d logits: batches %v, want %v", c.n, c.length, c.logits, got, c.want)
		}
	}
}

// A model with other labels cannot be compared, because classes are numbered by label.
func TestOfOtherClasses(t *testing.T) {
	var probes [2]*Probe
	for i := range probes {
		m, err := models.Load("../models/testdata/bert_text", models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		if probes[i], err = New(m, []Example{{IDs: []int{1, 2}, Targets: []int{0}}}); err != nil {
			t.Fatal(err)
		}
	}
	other := probes[1].model
	if _, err := probes[0].Of(other); err != nil {
		t.Fatal(err)
	}
	head := *other.Head()
	head.Labels = slices.Clone(head.Labels)
	slices.Reverse(head.Labels)
	if _, err := (headAim{head: probes[0].model.Head()}).onModel(&models.Model{Network: reversed{other.Network, &head}}); err == nil {
		t.Error("a model whose classes are in another order is taken")
	}
	head = *other.Head()
	head.Task = models.TokenClasses
	if _, err := (headAim{head: probes[0].model.Head()}).onModel(&models.Model{Network: reversed{other.Network, &head}}); err == nil {
		t.Error("a model with a head for another task is taken")
	}
}

// reversed is a network with another head.
type reversed struct {
	models.Network
	head *models.TaskHead
}

func (r reversed) Head() *models.TaskHead { return r.head }
