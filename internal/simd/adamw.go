package simd

import "math"

// AdamStep contains the numbers of one AdamW step that are the same for all parameters. They are
// float64 because 1-β2 would lose digits otherwise.
type AdamStep struct {
	Rate         float64 // lr, the learning rate of this step
	Beta1, Beta2 float64 // decay of the averages of gradients and of their squares
	Epsilon      float64 // added to the root of the second average
	Decay        float64 // wd, the weight decay; 0 for none
	// Correction1 and Correction2 are c1 = 1-Beta1^t and c2 = 1-Beta2^t for step t = 1, 2, …. They
	// correct the bias of averages that start at 0.
	Correction1, Correction2 float64
}

// AdamW updates parameters p and the averages m and v with gradients g:
//
//	p -= lr·wd·p
//	m  = β1·m + (1-β1)·g
//	v  = β2·v + (1-β2)·g²
//	p -= lr·(m/c1) / (√(v/c2) + ε)
//
// This is the order of PyTorch's AdamW. The first and the last line are computed as p·(1-lr·wd) and
// with lr/c1 and 1/√c2 prepared in float64.
//
// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2,
// https://arxiv.org/abs/1711.05101.
func AdamW(p, g, m, v []float32, s AdamStep) {
	sameLen("AdamW", "p", len(p), "g", len(g))
	sameLen("AdamW", "p", len(p), "m", len(m))
	sameLen("AdamW", "p", len(p), "v", len(v))
	c := s.prepare()
	adamW(p, g, m, v, &c)
}

// adamScalars are the factors of the loop, each rounded once.
type adamScalars struct {
	keep               float32 // 1 - lr·wd
	beta1, beta2       float32
	oneBeta1, oneBeta2 float32 // 1 - β
	rate               float32 // lr/c1
	rootScale          float32 // 1/√c2
	epsilon            float32
}

func (s *AdamStep) prepare() adamScalars {
	return adamScalars{
		keep:      float32(1 - float64(s.Rate*s.Decay)),
		beta1:     float32(s.Beta1),
		beta2:     float32(s.Beta2),
		oneBeta1:  float32(1 - s.Beta1),
		oneBeta2:  float32(1 - s.Beta2),
		rate:      float32(s.Rate / s.Correction1),
		rootScale: float32(1 / math.Sqrt(s.Correction2)),
		epsilon:   float32(s.Epsilon),
	}
}

func adamWGeneric(p, g, m, v []float32, s *adamScalars) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	for i, pi := range p {
		gi := g[i]
		mi := float32(s.beta1*m[i]) + float32(s.oneBeta1*gi)
		vi := float32(s.beta2*v[i]) + float32(s.oneBeta2*(gi*gi))
		m[i], v[i] = mi, vi
		root := float32(float32(math.Sqrt(float64(vi))) * s.rootScale)
		p[i] = float32(pi*s.keep) - s.rate*mi/(root+s.epsilon)
	}
}
