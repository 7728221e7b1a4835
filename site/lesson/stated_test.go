//go:build js && translator

package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/prune"
)

// lessons returns a function that reports what docs/lessons.md does not state.
func lessons(t *testing.T) func(format string, args ...any) {
	t.Helper()
	text, err := os.ReadFile("../../docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	prose := strings.Join(strings.Fields(string(text)), " ")
	return func(format string, args ...any) {
		t.Helper()
		if want := fmt.Sprintf(format, args...); !strings.Contains(prose, want) {
			t.Errorf("docs/lessons.md does not state what its page computes: %q", want)
		}
	}
}

// The heads that docs/lessons.md names in its answers are those that the page of the translator measures and removes.
func TestStatedImportance(t *testing.T) {
	stated := lessons(t)
	type ranking struct {
		Heads []headScore
		Order []prune.Head
	}
	right := func(off []prune.Head) int {
		args, err := json.Marshal(map[string]any{"off": off, "dates": 200})
		if err != nil {
			t.Fatal(err)
		}
		q, _ := answered[quality](t, "dates.measure", string(args))
		return q.Exact
	}
	inDecoder := func(list []prune.Head) (n int) {
		for _, h := range list {
			if h.Layer == "decoder.0.self" {
				n++
			}
		}
		return n
	}
	once, _ := answered[ranking](t, "dates.importance", `{"dates": 200, "method": "leave-one-out"}`)
	again, _ := answered[ranking](t, "dates.importance", `{"dates": 200, "method": "leave-one-out", "again": true}`)
	slices.SortFunc(once.Heads, func(a, b headScore) int { return cmp.Compare(b.Score, a.Score) })
	first, second := once.Heads[0], once.Heads[1]
	if first.Layer != "encoder.0.self" || inDecoder(once.Order[:6]) != 3 || inDecoder(again.Order[:6]) != 2 {
		t.Errorf("the most important head is %v; removed are %v and %v", first, once.Order[:6], again.Order[:6])
	}
	stated("Most of all head %d of the encoder: without it, the loss grows by %.5f nats per token. Without any other "+
		"single head it grows by at most %.5f.", first.Number, float64(first.Score), float64(second.Score))
	stated("of 200 new dates, %d are right then.", right(once.Order[:6]))
	stated("two of the six are heads of the decoder, and %d dates are right.", right(again.Order[:6]))

	var off []prune.Head
	for h := range 4 {
		off = append(off, prune.Head{Layer: "decoder.0.cross", Number: h})
	}
	for _, text := range []string{"Tuesday, 5 March 2019", "le 1er août 1987"} {
		args, err := json.Marshal(map[string]any{"off": off, "text": text})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := answered[shown](t, "dates.look", string(args))
		stated("The same for every text: %s.", s.Output)
	}
}

var whole = flag.Bool("whole", false, "train to the end, which takes minutes")

// The numbers that docs/lessons.md states of trainings are those that its pages compute: WebAssembly has the same bits in
// every engine. A processor rounds differently, and training amplifies the differences. So without -whole trainings end
// early: if their loss still has the bits of the last run with -whole, the later numbers are the same, too.
func TestStatedTrainings(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for half a minute")
	}
	stated := lessons(t)
	var state pageState
	start := func(args string) { state, _ = answered[pageState](t, "train.start", args) }
	// after trains up to a step, and does what the button of the page does.
	after := func(step, texts int) quality {
		if step > 0 {
			state, _ = answered[pageState](t, "train.run", fmt.Sprintf(`{"to": %d}`, step))
		}
		q, _ := answered[quality](t, "train.measure", fmt.Sprintf(`{"texts": %d}`, texts))
		t.Logf("step %d: %d of %d, loss %.3f, %q", step, q.Exact, q.Texts, q.Loss, state.Shown.Output)
		return q
	}
	unchanged := func(q quality, loss real) int {
		if q.Loss != loss {
			t.Errorf("the loss is %v, want %v. If the change is intended, run with -whole, correct the text, and write the loss here",
				q.Loss, loss)
		}
		return q.Exact
	}

	start(`{"task": "reverse", "seed": 1}`)
	tokens := current.model.Sizes().Decoder.Vocabulary
	stated("It is %.1f, worse than the ln %d ≈ %.1f of a uniform guess among the %[2]d tokens", float64(after(0, 100).Loss),
		tokens, math.Log(float64(tokens)))
	stated("**After 50 steps** it is %.1f, near ln 11 ≈ %.1f", float64(after(50, 100).Loss), math.Log(11))
	slow := unchanged(after(400, 100), 0.306573863421931)
	if *whole {
		stated("After 1,250 steps %d of 100 new strings are right.", after(1250, 100).Exact)
		if state.Steps != 1250 {
			t.Errorf("%d steps, the lesson says 1,250", state.Steps)
		}
	}

	recurrent := func(score string, loss real) (early, end int) {
		start(`{"task": "reverse", "seed": 1, "arch": "gru", "score": "` + score + `"}`)
		if early = unchanged(after(400, 100), loss); *whole {
			end = after(1250, 100).Exact
		}
		return early, end
	}
	_, dot := recurrent("dot", 0.10308500441508094)
	_, additive := recurrent("additive", 0.07718340081768758)
	fast, scaled := recurrent("scaled", 0.2217695623682308)
	stated("after 400 steps %d of 100 new strings are right, with the transformer %d.", fast, slow)
	if *whole {
		stated("after 1,250 steps all with the dot product, %d with the scaled one, and %d with the additive one", scaled, additive)
		if dot != 100 {
			t.Errorf("with the dot product %d of 100 strings are right, the lesson says all", dot)
		}
	}

	start(`{"task": "dates", "seed": 1}`)
	stated("a translator with 92,864 parameters")
	stated("16 passes over 10,000 dates, 5,008 steps.")
	if n := nn.Count(current.model); n != 92_864 || datesLearnt != 10_000 || state.Steps != 5008 {
		t.Errorf("%d parameters, %d dates, %d steps", n, datesLearnt, state.Steps)
	}
	stated("only %d of 200 new ones are right", unchanged(after(300, 200), 0.47801440954208374))
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\d$`).MatchString(state.Shown.Output) {
		t.Errorf("after 300 steps it writes %q", state.Shown.Output)
	}
	if *whole {
		stated("After 1,000 steps %d are right.", after(1000, 200).Exact)
	}
}

// What lesson 8 states of its layers is what its page computes.
func TestStatedRecall(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for seconds")
	}
	stated := lessons(t)
	const pairs8, pairs16 = 3, 7
	percent := func(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }
	r := recalled(t, false)
	if percent(r[0][pairs8]) != "100%" || percent(r[0][pairs16]) != "100%" {
		t.Errorf("a softmax recalls %.3f, the lesson says all", r[0])
	}
	stated("Of 8 pairs, linear attention recalls %s, the gated layer %s and gated delta %s. Of 16 pairs, twice as many as can "+
		"be orthogonal, they recall %s, %s and %s.", percent(r[1][pairs8]), percent(r[2][pairs8]), percent(r[3][pairs8]),
		percent(r[1][pairs16]), percent(r[2][pairs16]), percent(r[3][pairs16]))
	r = recalled(t, true)
	stated("Gated delta: of 16 pairs it recalls %s,", percent(r[3][pairs16]))
	stated("The gated layer recalls %s:", percent(r[2][pairs16]))
	stated("Linear attention recalls %s, and the softmax %s:", percent(r[1][pairs16]), percent(r[0][pairs16]))
}
