package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/attn-go/attn/tensor"
)

// Pair is work with its baseline. The baseline is the same work without a mask, dropout, returned
// weights, extras, or appending to a cache; or it is reading the same number of bytes.
type Pair struct {
	Work, Base Work
	// Per is the unit: times are compared per unit.
	Per Per
	// Most is the limit on the time of the work relative to the baseline; 0 means no limit.
	Most float64
}

// Per is a unit of work.
type Per string

// The units.
const (
	PerCall Per = "call"
	PerTile Per = "live tile" // Work.Tiles
)

// units returns the number of units in work.
func (p Per) units(w Work) float64 {
	if p == PerTile {
		return w.Tiles()
	}
	return 1
}

// Against returns the pair of work and its usual baseline. It returns an error if the work has no
// feature to remove.
func Against(w Work) (Pair, error) {
	p := Pair{Work: w, Base: w, Per: PerCall}
	switch {
	case len(w.With) > 0:
		p.Base.With = nil
	case w.Dropout > 0 || w.Weights:
		p.Base.Dropout, p.Base.Weights = 0, false
	case w.Causal || w.Mask != masks[0].name:
		p.Base.Mask, p.Base.Causal, p.Per = masks[0].name, false, PerTile
	case w.Op == "decode" || w.Op == "generate":
		p.Base.Op += "-fixed"
	case w.Op == "decode-fixed":
		p.Base = Work{Op: "read", B: w.B, G: w.G, Lk: w.Lk, E: w.E, V: w.V, Storage: w.Storage}
	default:
		return p, fmt.Errorf("%s has no baseline to compare with: want a mask, dropout, weights, an extra, or a cache", w.Name())
	}
	var err error
	p.Base, err = p.Base.Complete()
	return p, err
}

// Features returns the pairs that measure the cost of positions, masks, caches and extra
// results.
func Features() []Pair {
	var list []Pair
	add := func(most float64, w Work) {
		w, err := w.Complete()
		if err == nil {
			var p Pair
			if p, err = Against(w); err == nil {
				p.Most = most
				list = append(list, p)
				return
			}
		}
		panic("bench: Features: " + err.Error())
	}
	const append = 1.15
	shares := []struct { // expected fractions of the read speed, by storage format
		storage tensor.Format
		share   float64
	}{{tensor.Float32, 0.80}, {tensor.BFloat16, 0.75}, {tensor.Int8, 0.65}}
	for _, s := range shares {
		for _, lk := range []int{1, 64, 512, 8192} {
			add(append, Work{Op: "decode", H: 32, G: 8, Lk: lk, Storage: s.storage})
		}
		add(append, Work{Op: "generate", G: 2, Storage: s.storage})
	}
	for _, s := range shares {
		add(1/s.share, Work{Op: "decode-fixed", H: 32, G: 8, Storage: s.storage})
	}
	for _, mask := range []string{"window", "documents", "prefix"} {
		for _, l := range []int{1024, 4096} {
			add(1/0.90, Work{Op: "sdpa", Lq: l, Mask: mask})
		}
	}
	for _, l := range []int{512, 1024} {
		const most = 1.10
		add(most, Work{Op: "sdpa", H: 8, Lq: l, Causal: true})
		add(most, Work{Op: "sdpa", H: 8, Lq: l, Mask: "bool"})
		add(most, Work{Op: "sdpa", H: 8, Lq: l, Dropout: 0.1})
		add(most, Work{Op: "sdpa", H: 8, Lq: l, Weights: true})
	}
	add(1.05, Work{Op: "mha", Lq: 512, With: []string{"rope"}})
	for _, x := range []struct {
		name string
		most float64
	}{{"score-mod", 1.30}, {"score-mod-loop", 1.30}, {"log-sum-exp", 1.02}, {"top-keys", 1.25}, {"received", 1.25}, {"entropy", 0}} {
		for _, l := range []int{512, 1024, 2048} {
			add(x.most, Work{Op: "sdpa", Lq: l, With: []string{x.name}})
		}
	}
	return list
}

// Comparison is a measurement by Compare, with the fields of JSON.
type Comparison struct {
	Work     string  `json:"work"`
	Against  string  `json:"against"`
	Per      Per     `json:"per"`
	Threads  int     `json:"threads"`
	Rounds   int     `json:"rounds"`
	Time     float64 `json:"ms"`         // per call, median over rounds
	BaseTime float64 `json:"ms_against"` // of the baseline
	Ratio    float64 `json:"ratio"`      // of the times per unit, median over rounds
	Low      float64 `json:"ratio_low"`  // quartiles
	High     float64 `json:"ratio_high"`
	Speed    float64 `json:"speed"` // 1 / Ratio
	Most     float64 `json:"ratio_most,omitempty"`
	Missed   bool    `json:"missed"` // whether Ratio exceeds Most
	Machine  Machine `json:"machine"`
}

const (
	fewestRounds = 7
	turn         = 25 * time.Millisecond // for one side; longer if a single call takes longer
)

// Compare measures both sides alternately, each for about the given time. So both run under the same
// conditions, and each ratio is of two consecutive turns.
func Compare(ctx context.Context, p Pair, threads int, d time.Duration) (Comparison, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	c := Comparison{Work: p.Work.Name(), Against: p.Base.Name(), Per: p.Per, Threads: threads, Most: p.Most}
	sides := [2]func(){p.Work.Prepare(), p.Base.Prepare()}
	var times [2][]float64
	var ratios []float64
	enough := func(took time.Duration) bool { // slow work gets fewer rounds
		return len(ratios) >= fewestRounds && took >= 2*d || len(ratios) >= 3 && took >= 8*d
	}
	for start := time.Now(); !enough(time.Since(start)); {
		var took [2]float64
		for k := range sides {
			side := (k + len(ratios)) % 2 // the sides take turns in starting a round
			if err := ctx.Err(); err != nil {
				return c, err
			}
			took[side] = takeTurn(sides[side], min(turn, d/fewestRounds))
		}
		for side, t := range took {
			times[side] = append(times[side], t)
		}
		ratios = append(ratios, took[0]/p.Per.units(p.Work)/(took[1]/p.Per.units(p.Base)))
	}
	c.Rounds = len(ratios)
	c.Time, c.BaseTime, c.Ratio = Median(times[0]), Median(times[1]), Median(ratios)
	c.Low, c.High = ratios[len(ratios)/4], ratios[len(ratios)-1-len(ratios)/4] // Median has sorted them
	c.Speed, c.Missed = 1/c.Ratio, p.Most > 0 && c.Ratio > p.Most
	return c, nil
}

// takeTurn returns the milliseconds per call of f with warm caches. It takes the minimum of several
// calls: other programs on the machine can only add time.
func takeTurn(f func(), d time.Duration) float64 {
	start := time.Now()
	f()
	if took := time.Since(start); took > d { // too long for caches to stay warm until the next call
		return took.Seconds() * 1000
	}
	least := math.Inf(1)
	for start = time.Now(); math.IsInf(least, 1) || time.Since(start) < d; {
		calls, begin := 0, time.Now()
		for took := time.Duration(0); took < shortest; took = time.Since(begin) {
			f()
			calls++
		}
		least = min(least, time.Since(begin).Seconds()*1000/float64(calls))
	}
	return least
}

// Usual returns the standard shapes for measuring speed: products, attention of language models and
// translators with short and long texts and every option, layers, training, and decoder steps. All
// are complete.
func Usual() []Work {
	list := []Work{
		{Op: "gemm", Lq: 512},
		{Op: "gemm", Lq: 1024},
		{Op: "sdpa", B: 1, H: 12, Lq: 512, E: 64},
		{Op: "sdpa", B: 1, H: 12, Lq: 1024, E: 64},
		{Op: "sdpa", B: 1, H: 16, Lq: 1024, E: 128},
		{Op: "sdpa", B: 1, H: 16, Lq: 2048, E: 128},
		{Op: "sdpa", B: 1, H: 12, Lq: 1024, E: 64, Causal: true},
		{Op: "sdpa", B: 1, H: 12, Lq: 2048, E: 64, Causal: true},
		{Op: "sdpa", B: 8, H: 12, Lq: 64, E: 64},
		{Op: "sdpa", B: 8, H: 12, Lq: 128, E: 64},
		{Op: "sdpa", B: 64, H: 6, Lq: 12, Lk: 10, E: 50},
		{Op: "sdpa", B: 8, H: 12, Lq: 512, E: 64},
		{Op: "sdpa", B: 8, H: 12, Lq: 512, E: 64, Mask: "padding"},
		{Op: "sdpa", B: 8, H: 12, Lq: 512, E: 64, Mask: "bool"},
		{Op: "sdpa", B: 1, H: 12, Lq: 512, E: 64, Dropout: 0.1},
		{Op: "sdpa", B: 1, H: 12, Lq: 512, E: 64, Weights: true},
		{Op: "sdpa-train", B: 1, H: 12, Lq: 512, E: 64},
		{Op: "sdpa-train", B: 1, H: 16, Lq: 1024, E: 128},
		{Op: "mha", B: 32, H: 8, Lq: 64, Width: 128},
		{Op: "mha", B: 8, H: 12, Lq: 128, Width: 768},
		{Op: "mha", B: 1, H: 12, Lq: 512, Width: 768},
		{Op: "mha-train", B: 8, H: 12, Lq: 128, Width: 768},
		{Op: "mha-train", B: 1, H: 12, Lq: 512, Width: 768},
		{Op: "additive", B: 8, H: 1, Lq: 512, E: 128},
		{Op: "additive-train", B: 8, H: 1, Lq: 512, E: 128},
		{Op: "gaussian", B: 8, H: 1, Lq: 512, E: 128},
		{Op: "gaussian-train", B: 8, H: 1, Lq: 512, E: 128},
		{Op: "decode", B: 1, H: 32, G: 8, Lq: 1, Lk: 8192, E: 128},
		{Op: "decode", B: 1, H: 32, G: 8, Lq: 1, Lk: 8192, E: 128, Storage: tensor.BFloat16},
		{Op: "decode", B: 1, H: 32, G: 8, Lq: 1, Lk: 8192, E: 128, Storage: tensor.Int8},
	}
	for i, w := range list {
		var err error
		if list[i], err = w.Complete(); err != nil {
			panic("bench: Usual: " + err.Error())
		}
	}
	return list
}
