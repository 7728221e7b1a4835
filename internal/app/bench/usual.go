package bench

import "github.com/attn-go/attn/tensor"

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
