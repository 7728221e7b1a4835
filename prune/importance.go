package prune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/exact"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// ImportanceOptions selects what Importance measures. The zero value selects every method.
type ImportanceOptions struct {
	// Methods are the methods to measure with. Empty means all.
	Methods []Method
	// Normalize divides the scores of Gradient, Taylor and Fisher by their L2 norm over the heads of a
	// layer, which makes them comparable between layers; they then have no unit. Scores of a layer that are
	// all zero remain zero.
	//
	// Source: Michel et al., 2019, section 4.1.
	Normalize bool
	// Seed is the seed of Random.
	Seed uint64
	// Progress, if not nil, is called after each batch with the number of batches done and the total, over
	// all passes.
	Progress func(done, all int)
}

// Scores has the importance of all heads by one method.
type Scores struct {
	Method Method
	// Values are the scores by layer name and head number. NaN means not measured or not finite.
	Values map[string][]float64
	// Sums and Counts are the numerators and denominators of Values, by layer and head: a sum over the data,
	// and the number of terms, examples or queries. To combine parts of the data, add their Sums and Counts.
	// Sums are exact and rounded once, so they do not depend on the order of the data. Except for Taylor,
	// they do not depend on the division into batches either; for LeaveOneOut this requires Outcome.Losses.
	// Sums are not normalized. Both maps are nil for methods that need no data.
	Sums   map[string][]float64
	Counts map[string][]int
	// Passes is the number of passes over the data: a forward pass counts 1, a backward pass 2. Those of LeaveOneOut may begin
	// at a later layer, see Kept.
	Passes float64
	// Time is the run time of the method's passes. Methods that share a pass have the same time.
	Time time.Duration
}

// Flat returns the scores of all heads of the layers, in the order of the layers; NaN for a head without a
// score.
func (s Scores) Flat(layers []attn.LayerHeads) []float64 {
	var all []float64
	for _, l := range layers {
		for h := range l.Heads {
			all = append(all, s.score(l.Name, h))
		}
	}
	return all
}

// score returns the score of a head; NaN if there is none.
func (s Scores) score(layer string, head int) float64 {
	if values := s.Values[layer]; head < len(values) {
		return values[head]
	}
	return math.NaN()
}

// Importance measures how important each head is by each of the methods, and returns the scores in the
// order of the methods. The comment of each method has its formula.
//
// It does not change the subject or the gradients of its parameters. Cheaper methods run first. If ctx
// ends, the scores of completed methods are returned together with ctx.Err(); the scores of other methods
// are NaN. LeaveOneOut returns the scores of the completed heads.
//
// Errors: an unknown method; no layers, or several with the same name; data without terms; a layer that was
// run without its gates or without an observer. It panics if Run panics.
func Importance(ctx context.Context, s Subject, o ImportanceOptions) ([]Scores, error) {
	methods := o.Methods
	if len(methods) == 0 {
		methods = Methods()
	}
	r := &ranking{subject: s, layers: s.Layers(), batches: s.Batches(), options: o, scores: map[Method]*Scores{}}
	if err := checkLayers("Importance", r.layers); err != nil {
		return nil, err
	}
	for _, m := range methods {
		if int(m) >= len(methodNames) {
			return nil, fmt.Errorf("prune: Importance: unknown method %d", uint8(m))
		}
		r.scores[m] = &Scores{Method: m, Values: r.values()}
		if m != WeightNorm && m != Random {
			r.scores[m].Sums, r.scores[m].Counts = r.values(), map[string][]int{}
			for name, values := range r.scores[m].Sums {
				r.scores[m].Counts[name] = make([]int, len(values))
			}
		}
	}
	err := r.run(ctx)
	if err != nil && err != ctx.Err() {
		return nil, err
	}
	list := make([]Scores, len(methods))
	for i, m := range methods {
		list[i] = *r.scores[m]
		list[i].Passes /= max(1, float64(len(r.batches)))
	}
	return list, err
}

// checkLayers returns an error if there are no layers or two layers have the same name.
func checkLayers(op string, layers []attn.LayerHeads) error {
	if len(layers) == 0 {
		return fmt.Errorf("prune: %s: the model has no attention layers", op)
	}
	seen := map[string]bool{}
	for _, l := range layers {
		if seen[l.Name] {
			return fmt.Errorf("prune: %s: two layers are named %s", op, quote.Text(l.Name))
		}
		seen[l.Name] = true
	}
	return nil
}

// ranking is the state of a call of Importance.
type ranking struct {
	subject   Subject
	layers    []attn.LayerHeads
	batches   []int // number of examples in each
	options   ImportanceOptions
	scores    map[Method]*Scores // of the requested methods
	done, all int                // number of batches
}

// heads returns the number of heads of all layers.
func (r *ranking) heads() int {
	n := 0
	for _, l := range r.layers {
		n += l.Heads
	}
	return n
}

// values returns scores for all heads, initially NaN.
func (r *ranking) values() map[string][]float64 {
	values := map[string][]float64{}
	for _, l := range r.layers {
		values[l.Name] = slices.Repeat([]float64{math.NaN()}, l.Heads)
	}
	return values
}

// run measures by all requested methods, cheapest first.
func (r *ranking) run(ctx context.Context) error {
	if err := r.weightNorm(); err != nil {
		return err
	}
	r.random()
	var passes []func(context.Context) error
	plan := func(pass func(context.Context) error, times int, methods ...Method) {
		if slices.ContainsFunc(methods, r.wants) {
			passes, r.all = append(passes, pass), r.all+times*len(r.batches)
		}
	}
	plan(r.confidence, 1, Confidence)
	plan(r.gradients, 1, Gradient, Taylor, Fisher)
	plan(r.leaveOneOut, r.heads()+1, LeaveOneOut)
	if len(passes) == 0 || r.heads() == 0 {
		return nil
	}
	if len(r.batches) == 0 {
		return errNoTerms
	}
	for _, pass := range passes {
		if err := pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

var errNoTerms = errors.New("prune: Importance: the data contain nothing to predict")

// wants reports whether a method was requested.
func (r *ranking) wants(m Method) bool { return r.scores[m] != nil }

// wantAll returns an error unless every layer with heads is in the set.
func (r *ranking) wantAll(set map[string]bool, otherwise string) error {
	for _, l := range r.layers {
		if l.Heads > 0 && !set[l.Name] {
			return fmt.Errorf("prune: Importance: layer %s %s", quote.Text(l.Name), otherwise)
		}
	}
	return nil
}

// batch runs batch i on an empty tape, and returns ctx.Err() if ctx ends.
func (r *ranking) batch(ctx context.Context, t *tensor.Tape, i int, p Pass) (out Outcome, err error) {
	if err := ctx.Err(); err != nil { // a subject need not use the tape
		return out, err
	}
	t.Reset()
	t.SetContext(ctx)
	err = par.Stopped(func() { out = r.subject.Run(t, i, p) })
	return out, err
}

// ran records that a batch is done. cost is its cost in forward runs.
func (r *ranking) ran(start time.Time, cost float64, methods ...Method) {
	r.spent(start, cost, methods...)
	r.done++
	if r.options.Progress != nil {
		r.options.Progress(r.done, r.all)
	}
}

// spent adds to the time and cost of methods. runs is the cost in forward runs of a batch.
func (r *ranking) spent(start time.Time, runs float64, methods ...Method) {
	took := time.Since(start)
	for _, m := range methods {
		if s := r.scores[m]; s != nil {
			s.Passes += runs
			s.Time += took
		}
	}
}

// set stores the score of a head by a method, if the method was requested.
func (r *ranking) set(m Method, layer string, head int, score float64) {
	if s := r.scores[m]; s != nil {
		if math.IsInf(score, 0) {
			score = math.NaN()
		}
		s.Values[layer][head] = score
	}
}

// divide stores a score that is the quotient of a sum over the data and a count.
func (r *ranking) divide(m Method, layer string, head int, sum *exact.Sum, count int) {
	s := r.scores[m]
	if s == nil {
		return
	}
	total := sum.Float64()
	s.Sums[layer][head], s.Counts[layer][head] = total, count
	r.set(m, layer, head, total/float64(count))
}

func (r *ranking) weightNorm() error {
	if !r.wants(WeightNorm) {
		return nil
	}
	start := time.Now()
	for _, l := range r.layers {
		w := l.Out.Weight
		if w == nil {
			return fmt.Errorf("prune: Importance: the weights of layer %s are packed for inference, want parameters; models.Options{Trainable: true} loads them", quote.Text(l.Name))
		}
		for h := range l.Heads {
			sum, size := 0., w.Dim(1)/l.Heads
			for i := range w.Dim(0) {
				for _, v := range w.Data()[i*w.Dim(1)+h*size:][:size] {
					sum += float64(v) * float64(v)
				}
			}
			r.set(WeightNorm, l.Name, h, math.Sqrt(sum))
		}
	}
	r.spent(start, 0, WeightNorm)
	return nil
}

func (r *ranking) random() {
	start := time.Now()
	rng := rand.New(rand.NewPCG(r.options.Seed, 0))
	for _, l := range r.layers {
		for h := range l.Heads {
			r.set(Random, l.Name, h, rng.Float64())
		}
	}
	r.spent(start, 0, Random)
}
