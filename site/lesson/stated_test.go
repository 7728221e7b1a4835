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

	"github.com/attn-go/attn/examples/induction"
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

// What lesson 9 states of its model is what its page computes with seed 1.
func TestStatedInduction(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for seconds")
	}
	stated := lessons(t)
	// mean returns the mean of some losses: of 12 on, those of tokens that can be known.
	mean := func(losses reals, from, to int) (mean float64) {
		for _, x := range losses[from:to] {
			mean += float64(x) / float64(to-from)
		}
		return mean
	}
	site := func(head, position int) induction.Site {
		return induction.Site{Layer: head / 4, Head: head % 4, Position: position}
	}
	four := []induction.Site{site(4, -1), site(5, -1), site(6, -1), site(7, -1)}
	whole, _ := grow(t, 400)
	known := mean(whole.Losses, 12, 23)
	stated("Their loss is %.1f nats, a little more than ln 24 ≈ %.1f,", mean(whole.Losses, 0, 11), math.Log(24))
	stated("which cannot be known: %.1f nats. The tokens after that can be known, and their loss is %.2f.", whole.Losses[11], known)

	sets := [][]induction.Site{four}
	for head := range 8 {
		sets = append(sets, []induction.Site{site(head, -1)})
	}
	var effects []float64
	for _, losses := range call[[]reals](t, "induction.run", object{"sets": sets}, nil) {
		effects = append(effects, mean(losses, 12, 23)-known)
	}
	previous := 0.0
	for i := 1; i < 13; i++ {
		previous += float64(whole.Weights[0][(2*24+i)*24+i-1]) / 12
	}
	stated("In layer 0, head 2: without it the loss grows by %.2f nats, without any other head of the layer by at most %.2f. It "+
		"gives %.2f of its weight to the token before", effects[3], max(effects[1], effects[2], effects[4]), previous)
	stated("without one of them the loss grows by at most %.2f. But without all four it grows by %.2f, more than three times the "+
		"sum of these effects.", slices.Max(effects[5:]), effects[0])
	if sum := effects[5] + effects[6] + effects[7] + effects[8]; effects[0] < 3*sum || effects[0] > 4*sum {
		t.Errorf("without layer 1 the loss grows by %.2f, the single effects sum to %.2f", effects[0], sum)
	}
	for head := range 4 {
		follows := 0.0
		for i := 12; i < 23; i++ {
			follows += float64(whole.Weights[1][(head*24+i)*24+i-11]) / 11
		}
		if follows < 0.8 {
			t.Errorf("head 1.%d gives %.2f to what followed the same token: the lesson says that it is an induction head", head, follows)
		}
	}

	a := whole.Tokens
	b := slices.Clone(a)
	for b[6] = 0; slices.Contains(a, b[6]); b[6]++ {
	}
	args := object{"tokens": b, "from": a, "sets": append(sets, []induction.Site{}, []induction.Site{site(2, 7)})}
	var right []float64 // the probability of the right answer, in percent
	for _, losses := range call[[]reals](t, "induction.run", args, nil) {
		right = append(right, 100*math.Exp(-float64(losses[18])))
	}
	stated("the probability of the right answer rises from %.0f%% to %.0f%%.", right[9], right[10])
	stated("With one of the four it rises to between %.0f%% and %.0f%%, with all four to %.0f%%.", slices.Min(right[5:9]),
		slices.Max(right[5:9]), right[0])

	// The exercise: in B, d is x at position 2. The head that returns what it returns in A helps most at one position.
	tokens := func(text string) (ids []int) {
		for len(ids) < induction.Length {
			ids = append(ids, int(text[len(ids)%len(text)]-'a'))
		}
		return ids
	}
	a, b = tokens("gbdeac"), tokens("gbdeac")
	b[2] = 'x' - 'a'
	sets = [][]induction.Site{{}}
	for _, head := range []int{2, 4, 5, 6, 7} {
		for position := range 9 {
			sets = append(sets, []induction.Site{site(head, position)})
		}
	}
	lost := call[[]reals](t, "induction.run", object{"tokens": b, "from": a, "sets": sets}, nil)
	for i, want := range []int{3, 8, 8, 8, 8} {
		best := 0
		for position := range 9 {
			if lost[1+9*i+position][8] < lost[1+9*i+best][8] {
				best = position
			}
		}
		t.Logf("patch %d: %.2f nats at position %d, %.2f without", i, lost[1+9*i+best][8], best, lost[0][8])
		if best != want || lost[1+9*i+best][8] > lost[0][8]-0.3 {
			t.Errorf("patch %d helps most at position %d, want %d, as the exercise says", i, best, want)
		}
	}

	losses := func(to int) float64 {
		g := call(t, "induction.train", object{"seed": 1, "keep": [][]int{{2}, {2}}, "to": to}, func(growing) {})
		return mean(g.Losses, 12, 23)
	}
	stated("heads 2 of both layers alone have a loss of %.2f,", losses(0))
	stated("After 100 more steps of training it is %.2f, with 8,064 parameters instead of 21,888.", losses(100))
}
