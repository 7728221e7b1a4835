package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// BenchmarkMultiply is for -cpu 1,2: Multiply uses all processors. N and T say whether A and B are
// row-major or transposed.
func BenchmarkMultiply(b *testing.B) {
	benchEach(b, func(b *testing.B) {
		for _, s := range []struct{ m, n, k, count int }{
			{64, 64, 64, 1}, {128, 128, 128, 1}, {512, 512, 512, 1}, {1024, 1024, 1024, 1},
			{12, 10, 50, 96}, {64, 64, 16, 96}, {64, 16, 64, 96}, {512, 512, 64, 8}, {512, 64, 512, 8},
			{1, 512, 512, 1}, {8, 512, 512, 1}, {1, 64, 64, 96},
		} {
			for _, layout := range []string{"NN", "NT", "TN"} {
				b.Run(fmt.Sprintf("%dx%dx%dx%d/%s", s.count, s.m, s.n, s.k, layout), func(b *testing.B) {
					p := &Product{M: s.m, N: s.n, K: s.k, Count: s.count, StepA: s.m * s.k, StepB: s.k * s.n, StepC: s.m * s.n}
					p.A, p.B, p.C = RowMajor(random(s.count*p.StepA), s.k), RowMajor(random(s.count*p.StepB), s.n), RowMajor(random(s.count*p.StepC), s.n)
					if layout[0] == 'T' {
						p.A = RowMajor(p.A.Data, s.m).T()
					}
					if layout[1] == 'T' {
						p.B = RowMajor(p.B.Data, s.k).T()
					}
					b.ReportAllocs()
					for b.Loop() {
						Multiply(p)
					}
					flop := 2 * float64(s.m*s.n*s.k*s.count)
					b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	})
}

// random returns n numbers between -2 and 2.
func random(n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = 4*r.Float32() - 2
	}
	return x
}

// BenchmarkVector shows the time per element, for a row of an attention matrix
// and for a slice that fills the first-level cache.
func BenchmarkVector(b *testing.B) {
	step := AdamStep{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Correction1: 0.1, Correction2: 0.001}
	for _, f := range []struct {
		name string
		call func(x, y, z, w []float32)
	}{
		{"Exp", func(x, y, z, w []float32) { Exp(x, y) }},
		{"ExpSum", func(x, y, z, w []float32) { ExpSum(x, y, 2) }},
		{"Tanh", func(x, y, z, w []float32) { Tanh(x, y) }},
		{"Sigmoid", func(x, y, z, w []float32) { Sigmoid(x, y) }},
		{"GELU", func(x, y, z, w []float32) { GELU(x, y) }},
		{"GELUGrad", func(x, y, z, w []float32) { GELUGrad(x, y) }},
		{"Max", func(x, y, z, w []float32) { Max(x) }},
		{"Sum", func(x, y, z, w []float32) { Sum(x) }},
		{"Dot", func(x, y, z, w []float32) { Dot(x, y) }},
		{"Finite", func(x, y, z, w []float32) { Finite(x) }},
		{"Axpy", func(x, y, z, w []float32) { Axpy(1e-9, x, y) }},
		{"Scale", func(x, y, z, w []float32) { Scale(x, 2, y) }},
		{"Add", func(x, y, z, w []float32) { Add(x, y, z) }},
		{"Mul", func(x, y, z, w []float32) { Mul(x, y, z) }},
		{"MulAdd", func(x, y, z, w []float32) { MulAdd(w, y, z) }},
		{"AdamW", func(x, y, z, w []float32) { AdamW(x, y, z, w, step) }},
		{"Dropout", func(x, y, z, w []float32) { Dropout(x, y, 7, 11, 1<<29, 1.1) }},
		{"DropoutAdd", func(x, y, z, w []float32) { DropoutAdd(x, y, z, 7, 11, 1<<29, 1.1) }},
		{"ReLU", func(x, y, z, w []float32) { ReLU(x, y) }},
		{"ReLUGrad", func(x, y, z, w []float32) { ReLUGrad(x, y, z) }},
		{"SoftmaxGrad", func(x, y, z, w []float32) { SoftmaxGrad(w, y, z) }},
		{"Norm", func(x, y, z, w []float32) { Norm(x, y, z, w, 0.1, 1.1) }},
		{"LayerNorm", func(x, y, z, w []float32) {
			LayerNorm(x, y, z[:64], z[64:128], w[:len(w)/64], w[64:64+len(w)/64], 1e-5)
		}},
		{"LayerNormGrad", func(x, y, z, w []float32) {
			LayerNormGrad(w, x, y, z[:64], z[64:64+len(w)/64], z[64:64+len(w)/64])
		}},
		{"NormSums", func(x, y, z, w []float32) { NormSums(x, y, z, 0.1, 1.1) }},
		{"NormGrad", func(x, y, z, w []float32) { NormGrad(w, x, y, z, 0.1, 1.1, 0.1, 0.1) }},
		{"NormGains", func(x, y, z, w []float32) { NormGains(w[:64], x[:64], y, z, y[:len(y)/64], z[:len(y)/64], 64) }},
		{"SumRows", func(x, y, z, w []float32) { SumRows(w[:64], y, len(y)/64, 64) }},
		{"CopyRows", func(x, y, z, w []float32) { CopyRows(x, 16, y, 32, len(x)/32, 16) }},
		{"AddRows", func(x, y, z, w []float32) { AddRows(x, 16, y, 32, len(x)/32, 16) }},
	} {
		for _, n := range []int{128, 2048} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				benchEach(b, func(b *testing.B) {
					x, y, z, w := random(n), random(n), random(n), random(n)
					for i := range w {
						w[i] *= w[i]
					}
					for b.Loop() {
						f.call(x, y, z, w)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
				})
			})
		}
	}
}

// BenchmarkRow shows the cost of a call for a row of 16 elements. Most of it is the overhead before
// the kernel.
func BenchmarkRow(b *testing.B) {
	const n = 16
	x, y, z, w := random(n), random(n), random(n), random(n)
	for _, f := range []struct {
		name string
		call func()
	}{
		{"Exp", func() { Exp(x, y) }},
		{"ExpSum", func() { ExpSum(x, y, 2) }},
		{"Sum", func() { Sum(x) }},
		{"Dot", func() { Dot(x, y) }},
		{"Axpy", func() { Axpy(1e-9, x, y) }},
		{"Scale", func() { Scale(x, 1, y) }},
		{"Add", func() { Add(x, y, z) }},
		{"MulAdd", func() { MulAdd(w, y, z) }},
		{"Dropout", func() { Dropout(x, y, 7, 11, 1<<29, 1.1) }},
		{"Norm", func() { Norm(x, y, z, w, 0.1, 1.1) }},
		{"LayerNorm", func() { LayerNorm(x, y, z, w, x[:1], y[:1], 1e-5) }},
		{"RowMax", func() { RowMax(x[:1], y, n, n) }},
		{"Hide", func() { Hide(x, make([]bool, n)) }},
		{"CopyRows", func() { CopyRows(x, n, y, n, 1, n) }},
	} {
		b.Run(f.name, func(b *testing.B) {
			benchEach(b, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f.call()
				}
			})
		})
	}
}

// BenchmarkAdditiveTile measures a strip of attention, and one whose queries are all beyond the
// limit of the tiles. Set and Flush run once for each strip, although in practice they serve many
// strips.
func BenchmarkAdditiveTile(b *testing.B) {
	const rows, keys, h = 12, 512, 128
	q, k, w, ds := random(rows*h), random(keys*h), random(h), random(rows*keys)
	beyond := slices.Clone(q)
	for i := range rows {
		beyond[i*h] = additiveQueryLimit + 1
	}
	dq, dk, dw, c := make([]float32, rows*h), make([]float32, keys*h), make([]float32, h), make([]float32, rows*keys)
	var aq, far AdditiveQueries
	var ak AdditiveKeys
	var ag AdditiveKeysGrad
	for _, bench := range []struct {
		name string
		call func()
	}{
		{"Tile", func() { AdditiveTile(c, keys, &aq, 0, rows, &ak, 0, keys) }},
		{"Beyond", func() { AdditiveTile(c, keys, &far, 0, rows, &ak, 0, keys) }},
		{"TileGrad", func() { AdditiveTileGrad(dq, h, ds, keys, &aq, 0, rows, &ag, 0, keys) }},
		{"BeyondGrad", func() { AdditiveTileGrad(dq, h, ds, keys, &far, 0, rows, &ag, 0, keys) }},
		{"SetKeys", func() { ak.Set(k, h, keys, h, w) }},
		{"SetKeysGrad", func() { ag.Set(k, h, keys, h, w) }},
		{"SetQueries", func() { aq.Set(q, h, rows, h) }},
		{"Flush", func() { ag.Flush(dk, h, dw) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			benchEach(b, func(b *testing.B) {
				aq.Set(q, h, rows, h)
				far.Set(beyond, h, rows, h)
				ak.Set(k, h, keys, h, w)
				ag.Set(k, h, keys, h, w)
				b.ReportAllocs()
				for b.Loop() {
					bench.call()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*keys*h/16), "ns/16triples")
			})
		})
	}
}
