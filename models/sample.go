package models

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling configures how the next token is chosen from the scores. The zero value is greedy: it
// takes the best token, the first of equal ones.
type Sampling struct {
	// Temperature divides the scores before they become probabilities. 0 means greedy; the fields
	// below then have no effect.
	Temperature float64
	// TopK keeps only the TopK tokens with the best scores. 0 means all.
	TopK int
	// TopP is nucleus sampling: among the tokens that TopK keeps, it keeps the smallest set of
	// most probable tokens whose total probability is at least TopP. 0 means all.
	//
	// Source: Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020,
	// https://arxiv.org/abs/1904.09751.
	TopP float64
	// Seed seeds the random numbers: the same seed gives the same tokens.
	Seed uint64
}

// Check returns an error if a field is out of range.
func (s Sampling) Check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 1):
		return fmt.Errorf("models: temperature %v, want 0 for greedy, or a positive number", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("models: top-k %d, want at least 1, or 0 for all tokens", s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("models: top-p %v, want a probability above 0, or 0 for all tokens", s.TopP)
	}
	return nil
}

// sampler draws tokens.
type sampler struct {
	Sampling
	rng   *rand.Rand
	order []int     // candidate tokens
	probs []float64 // their probabilities, not normalised
}

func newSampler(s Sampling) *sampler {
	return &sampler{Sampling: s, rng: rand.New(rand.NewPCG(s.Seed, 0x61747467656e))}
}

// next returns a token for the scores of all tokens.
func (s *sampler) next(scores []float32) int {
	if s.Temperature == 0 {
		return best(scores)
	}
	s.leave(scores)
	at, sum := s.rng.Float64(), 0.0
	total := 0.0
	for _, p := range s.probs {
		total += p
	}
	for i, p := range s.probs {
		if sum += p / total; at < sum {
			return s.order[i]
		}
	}
	return s.order[len(s.order)-1] // rounding
}

// best returns the index of the largest score, the first of equal ones. NaN is ignored.
func best(scores []float32) int {
	at := 0
	for i, v := range scores {
		if v > scores[at] || scores[at] != scores[at] {
			at = i
		}
	}
	return at
}

// leave sets order and probs to the tokens that may be drawn. A token whose score is NaN is never
// drawn, unless all are NaN.
func (s *sampler) leave(scores []float32) {
	s.rank(scores)
	if len(s.order) == 0 {
		s.order, s.probs = append(s.order, 0), append(s.probs[:0], 1)
		return
	}
	top := scores[slices.MaxFunc(s.order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })]
	s.probs = s.probs[:0]
	total := 0.0
	for _, i := range s.order {
		d := 0.0 // also between two infinite scores
		if scores[i] != top {
			d = float64(scores[i]) - float64(top)
		}
		p := math.Exp(d / s.Temperature)
		s.probs = append(s.probs, p)
		total += p
	}
	if s.TopP == 0 || s.TopP == 1 {
		return
	}
	s.nucleus(total)
}

// rank sets order to the tokens that TopK keeps.
func (s *sampler) rank(scores []float32) {
	s.order = s.order[:0]
	better := func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) }
	few := s.TopK > 0 && s.TopK <= 256 // for few, insertion is faster than sorting all
	for i, v := range scores {
		switch n := len(s.order); {
		case v != v:
		case !few:
			s.order = append(s.order, i)
		case n < s.TopK || v > scores[s.order[n-1]]:
			at, _ := slices.BinarySearchFunc(s.order, i, better)
			s.order = slices.Insert(s.order, at, i)[:min(n+1, s.TopK)]
		}
	}
	if s.TopK > 0 && !few {
		slices.SortFunc(s.order, better)
		s.order = s.order[:min(s.TopK, len(s.order))]
	}
}

// nucleus keeps the most probable tokens, whose probabilities sum to the share TopP of total, the
// sum of all.
func (s *sampler) nucleus(total float64) {
	// All tokens below least together have a probability below 1 − TopP.
	least := (1 - s.TopP) * total / float64(len(s.order))
	type token struct {
		id int
		p  float64
	}
	var list []token
	for i, p := range s.probs {
		if p >= least {
			list = append(list, token{s.order[i], p})
		}
	}
	slices.SortFunc(list, func(a, b token) int { return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.id, b.id)) })
	s.order, s.probs = s.order[:0], s.probs[:0]
	sum := 0.0
	for _, t := range list {
		s.order, s.probs = append(s.order, t.id), append(s.probs, t.p)
		if sum += t.p; sum >= s.TopP*total {
			return
		}
	}
}
