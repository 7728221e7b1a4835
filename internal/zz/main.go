package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

func main() {
	p, _ := strconv.Atoi(os.Args[1])
	keys, _ := strconv.Atoi(os.Args[2])
	runtime.GOMAXPROCS(p)
	const h, g, e = 32, 8, 128
	rng := rand.New(rand.NewPCG(1, 1))
	type job struct {
		name  string
		f, r  func()
		tf, tr []float64
	}
	var jobs []*job
	for _, s := range []attn.Storage{attn.Float32{}, attn.BFloat16{}, attn.Int8{}} {
		cache, _ := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: g, KeySize: e, Storage: s})
		k := tensor.Randn(rng, 1, g, 512, e)
		for at := 0; at < keys; at += 512 {
			cache.Append(k, k, nil)
		}
		q := tensor.Randn(rng, 1, h, 1, e)
		t := tensor.NewTape(tensor.Infer)
		buf := make([]float32, keys*g*2*s.Bytes(e)/4)
		for i := range buf {
			buf[i] = 1
		}
		jobs = append(jobs, &job{name: fmt.Sprintf("%T", s),
			f: func() { t.Reset(); cache.Attend(t, q, attn.Options{Mask: attn.Causal()}) },
			r: func() { par.For(len(buf), 1<<16, func(lo, hi int) { simd.Sum(buf[lo:hi]) }) }})
	}
	for range 60 {
		for _, j := range jobs {
			for range 3 {
				s := time.Now()
				j.f()
				j.tf = append(j.tf, time.Since(s).Seconds()*1e3)
				s = time.Now()
				j.r()
				j.tr = append(j.tr, time.Since(s).Seconds()*1e3)
			}
		}
	}
	for i, j := range jobs {
		sort.Float64s(j.tf)
		sort.Float64s(j.tr)
		mb := float64(keys*g*2*([]attn.Storage{attn.Float32{}, attn.BFloat16{}, attn.Int8{}})[i].Bytes(e)) / 1e6
		q := func(x []float64, p float64) float64 { return x[int(float64(len(x))*p)] }
		fmt.Printf("%-14s %6.1f MB: step min %.2f p10 %.2f p25 %.2f p50 %.2f | read min %.2f p10 %.2f p25 %.2f p50 %.2f | share min %.0f%% p10 %.0f%% p25 %.0f%% p50 %.0f%% | best GB/s %.1f of %.1f\n", j.name, mb,
			j.tf[0], q(j.tf, .1), q(j.tf, .25), q(j.tf, .5), j.tr[0], q(j.tr, .1), q(j.tr, .25), q(j.tr, .5),
			100*j.tr[0]/j.tf[0], 100*q(j.tr, .1)/q(j.tf, .1), 100*q(j.tr, .25)/q(j.tf, .25), 100*q(j.tr, .5)/q(j.tf, .5), mb/j.tf[0], mb/j.tr[0])
	}
}
