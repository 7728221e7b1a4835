package bench

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// The numbers are computed by hand.
func TestCounts(t *testing.T) {
	for _, c := range []struct {
		w                            Work
		pairs, flops, triples, bytes float64
	}{
		{w: Work{Op: "gemm", Lq: 2, Lk: 3, E: 5}, flops: 60},
		// 2·5·7 pairs; 2·3·70·(11+13).
		{w: Work{Op: "sdpa", B: 2, H: 3, Lq: 5, Lk: 7, E: 11, V: 13}, pairs: 70, flops: 10080},
		{w: Work{Op: "sdpa", B: 2, H: 3, G: 1, Lq: 5, Lk: 7, E: 11, V: 13}, pairs: 70, flops: 10080},
		{w: Work{Op: "sdpa-train", B: 2, H: 3, Lq: 5, Lk: 7, E: 11, V: 13}, pairs: 70, flops: 35280},
		{w: Work{Op: "linear", B: 2, H: 4, G: 2, Lq: 5, E: 3, V: 7}, pairs: 50, flops: 6 * 2 * 4 * 5 * 3 * 7},
		{w: Work{Op: "linear-train", B: 2, H: 4, G: 2, Lq: 5, E: 3, V: 7}, pairs: 50, flops: 4 * 6 * 2 * 4 * 5 * 3 * 7},
		{w: Work{Op: "linear", B: 2, H: 4, Lq: 5, E: 3, V: 7, Rule: "gated", Decay: "element"}, pairs: 50, flops: 4 * 2 * 4 * 5 * 3 * 7},
		{w: Work{Op: "sdpa", B: 1, H: 1, Lq: 4, E: 1, Causal: true}, pairs: 8, flops: 32},
		{w: Work{Op: "sdpa", B: 1, H: 1, Lq: 2, Lk: 5, E: 1, Causal: true}, pairs: 3.5 + 4.5, flops: 32},
		{w: Work{Op: "sdpa", B: 1, H: 1, Lq: 5, Lk: 2, E: 1, Causal: true}, pairs: 0.5 + 1.5, flops: 8},
		// 8 and 6 keys are not padding.
		{w: Work{Op: "sdpa", B: 2, H: 1, Lq: 3, Lk: 8, E: 1, Mask: "padding"}, pairs: 3*8 + 3*6, flops: 168},
		{w: Work{Op: "sdpa", B: 2, H: 1, Lq: 8, E: 1, Mask: "padding", Causal: true}, pairs: 32 + 18 + 2*6, flops: 248},
		{w: Work{Op: "sdpa", B: 2, H: 1, Lq: 3, Lk: 8, E: 1, Mask: "bool", Dropout: 0.5, Weights: true}, pairs: 48, flops: 192},
		// Mixing 6·2·7, scores 4·66, maps 2·11·5·(2+3).
		{w: Work{Op: "additive", B: 1, H: 1, Lq: 2, Lk: 3, E: 5, V: 7, Width: 11}, pairs: 6, flops: 84 + 264 + 550, triples: 66},
		{w: Work{Op: "additive-train", B: 1, H: 1, Lq: 2, Lk: 3, E: 5, V: 7, Width: 11}, pairs: 6, flops: 3 * 898, triples: 66},
		{w: Work{Op: "gaussian", B: 1, H: 1, Lq: 2, Lk: 3, E: 5, V: 7}, pairs: 6, flops: 84 + 120},
		{w: Work{Op: "gaussian-train", B: 1, H: 1, Lq: 2, Lk: 3, E: 5, V: 7}, pairs: 6, flops: 3 * 204},
		// Four maps 2·2·3·10·10, attention 2·2·18·(5+5).
		{w: Work{Op: "mha", B: 2, H: 2, Lq: 3, Width: 10}, pairs: 18, flops: 4*1200 + 720},
		{w: Work{Op: "mha-train", B: 2, H: 2, Lq: 3, Width: 10}, pairs: 18, flops: 3*4800 + 3.5*720},
		// With one key head for two heads, the maps of keys and values are half as large.
		{w: Work{Op: "mha", B: 2, H: 2, G: 1, Lq: 3, Width: 10}, pairs: 18, flops: 3*1200 + 720},
		{w: Work{Op: "decode", B: 1, H: 4, G: 2, Lq: 1, Lk: 6, E: 5}, pairs: 6, flops: 480, bytes: 480},
		{w: Work{Op: "decode", B: 1, H: 4, G: 2, Lq: 1, Lk: 6, E: 5, Storage: tensor.BFloat16}, pairs: 6, flops: 480, bytes: 240},
		{w: Work{Op: "decode", B: 1, H: 4, G: 2, Lq: 1, Lk: 6, E: 5, Storage: tensor.Int8}, pairs: 6, flops: 480, bytes: 216},
		{w: Work{Op: "decode-fixed", B: 1, H: 4, G: 2, Lk: 6, E: 5}, pairs: 6, flops: 480, bytes: 480},
		// 1 + 2 + 3 + 4 keys, 2·(5+5) for each of 3 heads; one head of keys of 40 bytes.
		{w: Work{Op: "generate", B: 1, H: 3, G: 1, Lk: 4, E: 5}, pairs: 10, flops: 600, bytes: 400},
		{w: Work{Op: "read", B: 1, G: 2, Lk: 6, E: 5, Storage: tensor.Int8}, pairs: 6, bytes: 216},
		// A query attends to itself and the two keys before it.
		{w: Work{Op: "sdpa", B: 1, H: 1, Lq: 16, E: 1, Mask: "window"}, pairs: 1 + 2 + 14*3, flops: 4 * 45},
		{w: Work{Op: "sdpa", B: 1, H: 1, Lq: 20, E: 1, Mask: "documents"}, pairs: 4 + 16 + 36 + 64, flops: 480},
		// All queries attend to the first five keys, later ones also to all keys up to themselves.
		{w: Work{Op: "sdpa", B: 1, H: 1, Lq: 20, E: 1, Mask: "prefix"}, pairs: 5*5 + 15*5 + 15*16/2, flops: 880},
	} {
		w, err := c.w.Complete()
		if err != nil {
			t.Fatal(err)
		}
		pairs := w.Pairs()
		if w.Op == "gemm" || w.Op == "read" {
			pairs = c.pairs
		}
		if got, want := [...]float64{pairs, w.FLOPs(), w.Triples(), w.CacheBytes()}, [...]float64{c.pairs, c.flops, c.triples, c.bytes}; got != want {
			t.Errorf("%s: pairs, FLOPs, triples, bytes %v, want %v", w.Name(), got, want)
		}
	}
}

func TestComplete(t *testing.T) {
	for _, c := range []struct {
		w    Work
		want string // a name, or an error
	}{
		{Work{Op: "gemm"}, "gemm 1024×1024×1024"},
		{Work{Op: "gemm", Lq: 3}, "gemm 3×3×3"},
		{Work{Op: "gemm", Lq: 3, E: 5}, "gemm 3×3×5"},
		{Work{Op: "sdpa"}, "sdpa B1 H12 L1024 E64"},
		{Work{Op: "sdpa", H: 6, G: 2, Lq: 3, V: 5, Causal: true}, "sdpa B1 H6 G2 L3 E64 V5 causal"},
		{Work{Op: "sdpa", Mask: "bool", Dropout: 0.1, Weights: true}, "sdpa B1 H12 L1024 E64 bool mask dropout 0.1 weights"},
		{Work{Op: "additive"}, "additive B8 H1 L512 E128 hidden 128"},
		{Work{Op: "mha"}, "mha width 768 B1 H12 L512"},
		{Work{Op: "mha-train", H: 8, E: 5}, "mha-train width 768 B1 H8 L512 E5"},
		{Work{Op: "decode"}, "decode B1 H32 Lq1 Lk8192 E128"},
		{Work{Op: "decode", Lk: 100, Storage: tensor.Int8}, "decode B1 H32 Lq1 Lk100 E128 int8"},
		{Work{Op: "decode", Storage: 9}, `storage Format(9), want float32, bfloat16, int8`},
		{Work{Op: "decode", Lq: 3, Lk: 2}, "lq 3, want at most lk 2"},
		{Work{Op: "generate", Storage: tensor.Int8}, "generate B1 H8 Lk8192 E64 int8"},
		{Work{Op: "read", G: 8}, "read B1 G8 Lk8192 E128"},
		{Work{Op: "mha", With: []string{"rope", "top-keys"}}, "mha width 768 B1 H12 L512 rope top-keys"},
		{Work{Op: "sdpa", With: []string{"rope"}}, "rope does not go with sdpa, but with mha"},
		{Work{Op: "mha", E: 7, With: []string{"rope"}}, "e 7, want an even number with rope"},
		{Work{Op: "sdpa", With: []string{"sinks"}}, `unknown extra "sinks", want some of rope, score-mod, `},
		{Work{Op: "conv"}, `unknown operation "conv", want one of gemm, sdpa, `},
		{Work{Op: "sdpa", H: 6, G: 4}, "h 6 is not divisible by g 4"},
		{Work{Op: "sdpa", B: -1}, "b -1, want at least 1"},
		{Work{Op: "mha", H: 5}, "width 768 is not divisible by 5 heads"},
		{Work{Op: "mha", H: -5, E: 3}, "h -5, want at least 1"},
		{Work{Op: "sdpa", Mask: "x"}, `mask "x", want none, padding, bool, window, documents, prefix`},
		{Work{Op: "sdpa", Dropout: 1}, "dropout 1 is outside [0, 1)"},
		{Work{Op: "sdpa", Lq: math.MaxInt}, "would need an array of"},
		{Work{Op: "gemm", Lq: math.MaxInt}, "would need an array of"},
		{Work{Op: "mha", Width: math.MaxInt - 1, H: 2}, "would need an array of"},
	} {
		w, err := c.w.Complete()
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: error %q, want %q", c.w, err, c.want)
			}
		} else if got := w.Name(); got != c.want {
			t.Errorf("%v: %q, want %q", c.w, got, c.want)
		}
	}
}

func TestUsualNamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range Usual() {
		if seen[w.Name()] {
			t.Errorf("%s is there twice", w.Name())
		}
		seen[w.Name()] = true
	}
}

// Every operation runs with all of its options.
func TestRun(t *testing.T) {
	for _, op := range Ops() {
		for i, mask := range Masks() {
			if testing.Short() && i%3 > 0 { // no mask, and the window
				continue
			}
			w := Work{Op: op}
			if mask != "none" && !w.Takes("mask") || findMask(mask).keys != nil && mask != "padding" && w.Op != w.base() {
				continue
			}
			set := func(name string, to *int, n int) {
				if w.Takes(name) {
					*to = n
				}
			}
			set("b", &w.B, 2)
			set("h", &w.H, 6)
			set("g", &w.G, 3)
			set("lq", &w.Lq, 5)
			set("lk", &w.Lk, 7)
			set("e", &w.E, 11)
			set("v", &w.V, 13)
			set("width", &w.Width, 12)
			if w.Takes("mask") {
				w.Mask, w.Causal, w.Weights = mask, mask != "none", mask == "bool"
			}
			if w.Takes("dropout") && mask == "padding" {
				w.Dropout = 0.25
			}
			if w.Takes("with") && mask == "window" {
				w.With = []string{"score-mod", "log-sum-exp", "top-keys", "received", "entropy"}
				if w.base() == "mha" {
					w.E = 10
					w.With = append(w.With, "rope")
				}
			}
			if w.Takes("storage") {
				w.Storage = map[string]tensor.Format{"padding": tensor.BFloat16, "bool": tensor.Int8}[mask]
			}
			w, err := w.Complete()
			if err != nil {
				t.Fatal(err)
			}
			// The peaks, which take most of the time, do not depend on a mask, and only a decoder's step
			// has two.
			r := Result{Work: w, Threads: 2}
			peaks := mask == "none" && (!testing.Short() || op == "gemm" || op == "decode")
			if peaks {
				r, err = New(w, 2)(context.Background(), time.Millisecond)
			} else {
				r.Sample, err = Measure(context.Background(), time.Millisecond, w.Prepare())
			}
			if err != nil {
				t.Fatalf("%s: %v", w.Name(), err)
			}
			if !(0 < r.Min && r.Min <= r.Median && r.Median <= r.Max) || (op == "read") == (r.GFLOPS() > 0) || (w.Triples() > 0) != (r.GTriples() > 0) {
				t.Errorf("%s: %+v, %v G triples/s", w.Name(), r, r.GTriples())
			}
			if peaks && ((op == "read") == (r.PeakShare() > 0) || (w.base() == "decode") != (r.PeakReadGBps > 0)) {
				t.Errorf("%s: %v of the peak, read %v GB/s", w.Name(), r.PeakShare(), r.PeakReadGBps)
			}
		}
	}
}

// A tile is live if some query attends to some of its keys.
func TestTiles(t *testing.T) {
	rows, keys := flash.TileRows, flash.TileKeys
	for _, c := range []struct {
		w    Work
		want float64
	}{
		{Work{Lq: 2*rows - 1, Lk: 4 * keys}, 8},
		{Work{B: 3, Lq: 2 * rows, Lk: 3*keys + 1}, 24},
		{Work{Lq: 4 * keys, Causal: true}, 0},
		{Work{Lq: rows, Lk: 8 * keys, Mask: "window"}, 2}, // a panel of keys before the queries, which are in the last one
		{Work{Lq: rows, Lk: 8 * keys, Mask: "prefix"}, 8},
		{Work{Lq: 10 * keys, Mask: "documents"}, 0},
	} {
		c.w.Op, c.w.B, c.w.H, c.w.E = "sdpa", max(1, c.w.B), 1, 1
		w, err := c.w.Complete()
		if err != nil {
			t.Fatal(err)
		}
		if c.want == 0 { // counted pair by pair
			c.want = liveTiles(w)
		}
		if got := w.Tiles(); got != c.want {
			t.Errorf("%s: %v tiles, want %v", w.Name(), got, c.want)
		}
	}
}

// liveTiles counts the live tiles of one sequence in its weights.
func liveTiles(w Work) float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	q, k := tensor.Zeros(1, 1, w.Lq, 1), tensor.Zeros(1, 1, w.Lk, 1)
	o := w.options(rng)
	o.Weights = true
	weights := attn.Attend(nil, q, k, k, o).Weights.Data()
	live := map[[2]int]bool{}
	for i, x := range weights {
		if x > 0 {
			live[[2]int{i / w.Lk / flash.TileRows, i % w.Lk / flash.TileKeys}] = true
		}
	}
	return float64(len(live))
}

// Each feature is compared with simpler work of the same number of units.
func TestFeatures(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Features() {
		if name := p.Work.Name(); seen[name] || name == p.Base.Name() {
			t.Errorf("%s against %s: there twice, or the same", name, p.Base.Name())
		}
		seen[p.Work.Name()] = true
		if !(p.Per.units(p.Work) > 0) || !(p.Per.units(p.Base) > 0) || p.Most != 0 && p.Most < 1 {
			t.Errorf("%s: %+v", p.Work.Name(), p)
		}
	}
	for _, x := range Extras() {
		if !slices.ContainsFunc(Features(), func(p Pair) bool { return slices.Contains(p.Work.With, x) }) {
			t.Errorf("no feature has %s", x)
		}
	}
	w, err := Work{Op: "sdpa"}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Against(w); err == nil || !strings.Contains(err.Error(), "has no baseline to compare with") {
		t.Errorf("of plain attention: %v", err)
	}
}

func TestCompare(t *testing.T) {
	for _, w := range []Work{
		{Op: "sdpa", H: 2, Lq: 48, E: 5, Mask: "window"},
		{Op: "generate", H: 2, G: 1, Lk: 7, E: 5},
		{Op: "decode-fixed", H: 2, G: 1, Lk: 7, E: 5, Storage: tensor.Int8},
	} {
		w, err := w.Complete()
		if err != nil {
			t.Fatal(err)
		}
		p, err := Against(w)
		if err != nil {
			t.Fatal(err)
		}
		p.Most = 1e-9
		c, err := Compare(context.Background(), p, 1, time.Millisecond)
		if err != nil || c.Rounds < 1 || !(0 < c.Low && c.Low <= c.Ratio && c.Ratio <= c.High) || !(c.Time > 0) || !(c.BaseTime > 0) || !c.Missed {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// An interruption does not wait for the current call.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	endless := func(Work) (Result, error) { select {} }
	if err := Rows(ctx, &Table{Out: io.Discard, Format: JSON}, []Work{{}}, nil, endless); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestMeasure(t *testing.T) {
	calls := 0
	var kept []byte
	s, err := Measure(context.Background(), time.Millisecond, func() {
		calls++
		kept = make([]byte, 1<<12)
	})
	if err != nil || calls < fewest || s.Bytes < 1<<12 || s.Bytes > 1<<13 || len(kept) == 0 {
		t.Errorf("%+v, %v after %d calls", s, err, calls)
	}
}

func TestMedian(t *testing.T) {
	if got := Median([]float64{5, 1, 3}); got != 3 {
		t.Errorf("of three: %v", got)
	}
	if got := Median([]float64{7, 1, 3, 5}); got != 4 {
		t.Errorf("of four: %v", got)
	}
}
