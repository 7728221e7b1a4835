package simd

import "fmt"

// additivePiece is for how many tanh a kernel is called at a time.
const additivePiece = 1 << 14

// AdditiveScores sets dst[j] = Σ_f w[f]·tanh(q[f]+k[j·h+f]) for one query q of
// h features and nk keys.
//
// Shapes:
//
//	dst  [nk]
//	q    [h]
//	k    [nk h]
//	w    [h]
//
// Source: Bahdanau et al., "Neural Machine Translation by Jointly Learning to
// Align and Translate", 2015, https://arxiv.org/abs/1409.0473.
func AdditiveScores(dst, q, k, w []float32, nk, h int) {
	checkAdditive("AdditiveScores", len(dst), q, k, w, nk, h)
	if h == 0 {
		clear(dst)
		return
	}
	step := max(1, additivePiece/h)
	for j := 0; j < nk; j += step {
		n := min(step, nk-j)
		additiveScores(dst[j:], q, k[j*h:], w, n, h)
	}
}

// AdditiveGrad adds to dq, dk and dw what a gradient ds of the scores gives.
// With t = tanh(q[f]+k[j·h+f]), which it computes again,
//
//	dq[f]      += Σ_j ds[j]·w[f]·(1-t²)
//	dk[j·h+f]  +=     ds[j]·w[f]·(1-t²)
//	dw[f]      += Σ_j ds[j]·t
//
// A key whose ds[j] is 0 is not read, so that whatever is stored in keys
// under a mask goes nowhere.
//
// Shapes: ds [nk]; dq, dk and dw as q, k and w of AdditiveScores.
func AdditiveGrad(dq, dk, dw, ds, q, k, w []float32, nk, h int) {
	checkAdditive("AdditiveGrad", len(ds), q, k, w, nk, h)
	if len(dq) != len(q) {
		mismatch("AdditiveGrad", "dq", len(dq), "q", len(q))
	}
	if len(dk) != len(k) {
		mismatch("AdditiveGrad", "dk", len(dk), "k", len(k))
	}
	if len(dw) != len(w) {
		mismatch("AdditiveGrad", "dw", len(dw), "w", len(w))
	}
	if h == 0 {
		return
	}
	step := max(1, additivePiece/h)
	for j := 0; j < nk; j += step {
		n := min(step, nk-j)
		additiveGrad(dq, dk[j*h:], dw, ds[j:], q, k[j*h:], w, n, h)
	}
}

func checkAdditive(op string, scores int, q, k, w []float32, nk, h int) {
	if nk < 0 || h < 0 || scores != nk || len(q) != h || len(k) != nk*h || len(w) != h {
		panic(fmt.Sprintf("simd: %s: nk=%d, h=%d, %d scores, len(q)=%d, len(k)=%d, len(w)=%d",
			op, nk, h, scores, len(q), len(k), len(w)))
	}
}

func additiveScoresGeneric(dst, q, k, w []float32, nk, h int) {
	q = q[:len(w)]
	for j := range nk {
		row := k[j*h:][:len(w)]
		var s float32
		for f, wf := range w {
			s += float32(wf * tanh32(q[f]+row[f]))
		}
		dst[j] = s
	}
}

func additiveGradGeneric(dq, dk, dw, ds, q, k, w []float32, nk, h int) {
	for j, d := range ds[:nk] {
		if d == 0 {
			continue
		}
		row, drow := k[j*h:][:len(w)], dk[j*h:][:len(w)]
		for f, wf := range w {
			t := tanh32(q[f] + row[f])
			g := float32(d * float32(wf*(1-float32(t*t))))
			dq[f] += g
			drow[f] += g
			dw[f] += float32(d * t)
		}
	}
}
