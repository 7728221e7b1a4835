package models

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// gemma3nFamily is the text model of Gemma 3n: several streams of states, of which each layer computes one and predicts the
// others (AltUp); a map of low rank beside attention (Laurel); sparse activations in the first layers; and, as in Gemma 4,
// keys and values that several layers use and embeddings of each token for each layer.
//
// Source: Baykal et al., "Alternating Updates for Efficient Transformers", 2023, https://arxiv.org/abs/2301.13310; Menghani
// et al., "LAuReL: Learned Augmented Residual Layer", 2024, https://arxiv.org/abs/2411.07501; Gemma3nTextModel of
// transformers.
var gemma3nFamily = Family{Type: "gemma3n_text", Name: "Gemma 3n", New: newGemma3n, Harmless: []string{"altup_coef_clip", "altup_lr_multiplier"}} // which act in training

func newGemma3n(b *Builder) Network {
	base := b.Within("model")
	return gemma3n(b, base.Within("language_model"), b)
}

// gemma3nWithImages is Gemma 3n in a file that also contains models of images and sound, which are not read.
var gemma3nWithImages = Family{Type: "gemma3n", Name: "Gemma 3n", New: newGemma3nWithImages, Harmless: []string{
	"audio_config", "audio_soft_tokens_per_image", "audio_token_id", "boa_token_id", "boi_token_id", "eoa_token_id", "eoi_token_id",
	"image_token_id", "vision_config", "vision_soft_tokens_per_image",
}}

func newGemma3nWithImages(b *Builder) Network {
	b.Unread("model.vision_tower.*", "model.embed_vision.*", "model.audio_tower.*", "model.embed_audio.*")
	text := b.textModel(gemma3nFamily)
	text.Config.Only("tie_word_embeddings", b.Config.Bool("tie_word_embeddings", true))
	return gemma3n(text, text.At("model.language_model"), text)
}

// gemma3n makes the layers from the tensors of base, and the map to logits from those of top.
func gemma3n(b, base, top *Builder) Network {
	s := b.Config
	m := gemma(b, Sizes{Heads: 8, KVHeads: 2, HeadSize: 256, Hidden: -1, Vocabulary: 262400, Positions: 32768})
	m.wantGroups(s)
	m.norm, m.norms, m.activation = s.rmsNorm(1e-6), normsAround, s.Activation("hidden_activation", "gelu_pytorch_tanh")
	m.score, m.logitCap = score.DotScale(1), s.softCap("final_logit_softcapping", 30)
	s.Only("query_pre_attn_scalar", 256) // which transformers does not read
	m.slide(s.SizeOr("sliding_window", 512), slides(s, m.Layers, func(i int) bool { return (i+1)%5 != 0 }))
	m.twoRopes(b, m.Sizes, s.base("rope_theta", 1e6), s.base("rope_local_base_freq", 1e4))

	hidden, sparse := s.perLayer("intermediate_size", 16384, m.Layers), s.Floats("activation_sparsity_pattern")
	m.Hidden = hidden[0]
	if sparse == nil {
		if sparse = make([]float64, m.Layers); m.Layers > 10 {
			for i := range 10 {
				sparse[i] = 0.95
			}
		}
	}
	if len(sparse) != m.Layers {
		s.Fail("activation_sparsity_pattern", "has %d numbers, want %d, one for each layer", len(sparse), m.Layers)
		sparse = make([]float64, m.Layers)
	}
	m.feedForward = func(m *rotaryDecoder, b *Builder, i int) Layer {
		own := *m
		if own.Hidden = hidden[i]; sparse[i] > 0 {
			own.activation = sparsely(m.activation, sparse[i])
		}
		if !(sparse[i] < 1) {
			s.Fail("activation_sparsity_pattern", "has %v, want less than 1", sparse[i])
		}
		return own.gated(b, i)
	}

	blocks, from := make([]*altUp, m.Layers), m.lenders(s, 15)
	m.attends = func(b *Builder, i int, c *attn.MultiHeadConfig, maps *Maps) { m.borrows(b, from[i] != i, c, maps) }
	inputs := m.layerInputs(s)
	if inputs.size == 0 {
		s.Fail("hidden_size_per_layer_input", "is 0, want a positive number")
	}
	n, active, rank := s.SizeOr("altup_num_inputs", 4), s.Int("altup_active_idx", 0), s.SizeOr("laurel_rank", 64)
	if n > 64 || active < 0 || active >= n {
		s.Fail("altup_num_inputs", "is %d with an altup_active_idx of %d, want at most 64, and an index below it", n, active)
		n, active = 1, 0
	}
	scaled, norm := s.Bool("altup_correct_scale", true), func(b *Builder, name string) Layer { return m.norm(b, name, m.Width) }
	m.beside = func(p *block, b *Builder, i int) {
		at, laurel := b.At("altup"), b.At("laurel")
		blocks[i] = &altUp{
			block: p, streams: n, active: active, add: inputs.gate(b, i), router: inTurn{norm(at, "router_norm"), Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
				return tensor.Scale(t, x, 1/float32(m.Width))
			}), at.Matrix("modality_router", m.Width, n), Activation(tensor.Tanh)},
			predict: at.Matrix("prediction_coefs", n, n*n), correct: at.Matrix("correction_coefs", n, n),
			laurel: inTurn{laurel.Matrix("linear_left", m.Width, rank), laurel.Matrix("linear_right", rank, m.Width), norm(laurel, "post_laurel_norm")},
		}
		if name := "correct_output_scale"; scaled {
			blocks[i].scale = at.Tensor(name, m.Width)
		} else {
			at.Fixed(name, m.Width)
		}
		if from[i] != i {
			p.borrow(blocks[from[i]].block)
		}
	}
	d := m.build(base, top).(*stack)
	for i, x := range blocks {
		d.blocks[i] = &block{mixer: x}
	}
	inputs.build(base, d, true)
	d.wordsNorm = spread(base.altUpMaps("altup_projections", n-1, m.Width))
	d.norm = inTurn{gather(base.altUpMaps("altup_unembed_projections", n-1, m.Width)), d.norm}
	return d
}

// perLayer returns a list of sizes, one for each layer, or a size of all layers.
func (s *Settings) perLayer(key string, usual, layers int) []int {
	all := make([]int, layers)
	if raw, ok := s.value(key); !ok || raw[0] != '[' {
		for i := range all {
			all[i] = s.SizeOr(key, usual)
		}
		return all
	}
	list := s.Floats(key)
	if len(list) != layers {
		s.Fail(key, "has %d numbers, want %d, one for each layer", len(list), layers)
	}
	for i := range all {
		if all[i] = 1; i < len(list) && list[i] >= 1 && list[i] <= mostSize {
			all[i] = int(list[i])
		}
	}
	return all
}

// sparsely returns an activation of gates of which about a share is 0: those that would be below their mean plus a number
// of standard deviations, if they were normally distributed.
func sparsely(act Activation, share float64) Activation {
	deviations := float32(math.Sqrt2 * math.Erfinv(2*share-1))
	return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		last := x.Rank() - 1
		wide := func(y *tensor.Tensor) *tensor.Tensor {
			return tensor.BroadcastTo(t, tensor.Reshape(t, y, append(append([]int{}, x.Shape()[:last]...), 1)...), x.Shape()...)
		}
		centred := tensor.Sub(t, x, wide(tensor.MeanAxis(t, x, last)))
		deviation := tensor.Sqrt(t, tensor.MeanAxis(t, tensor.Square(t, centred), last))
		return act(t, tensor.ReLU(t, tensor.Sub(t, centred, wide(tensor.Scale(t, deviation, deviations)))))
	}
}

// altUpMaps reads n square maps.
func (b *Builder) altUpMaps(name string, n, width int) (maps []*nn.Linear) {
	for i := range n {
		maps = append(maps, b.Matrix(fmt.Sprintf("%s.%d", name, i), width, width))
	}
	return maps
}

// spread returns what makes streams [… N·D] of vectors x: x, and its maps with the size of x.
func spread(maps []*nn.Linear) Layer {
	return Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		all := []*tensor.Tensor{x}
		for _, m := range maps {
			all = append(all, sizedAs(t, m.Forward(t, x), x))
		}
		return tensor.Concat(t, x.Rank()-1, all...)
	})
}

// gather returns what makes one vector of streams: the mean of the first and of the maps of the others, with its size.
func gather(maps []*nn.Linear) Layer {
	return Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		n := len(maps) + 1
		first := stream(t, x, 0, n)
		y := first
		for i, m := range maps {
			y = tensor.Add(t, y, sizedAs(t, m.Forward(t, stream(t, x, i+1, n)), first))
		}
		return tensor.Scale(t, y, 1/float32(n))
	})
}

// stream returns stream i of n.
func stream(t *tensor.Tape, x *tensor.Tensor, i, n int) *tensor.Tensor {
	d := x.Dim(x.Rank()-1) / n
	return tensor.Slice(t, x, x.Rank()-1, i*d, (i+1)*d)
}

// sizedAs returns vectors y scaled so that their mean square is that of x; that of y counts as 1e-5 at least.
func sizedAs(t *tensor.Tape, y, x *tensor.Tensor) *tensor.Tensor {
	last := x.Rank() - 1
	square := func(x *tensor.Tensor) *tensor.Tensor { return tensor.MeanAxis(t, tensor.Square(t, x), last) }
	const least = 1e-5
	size := tensor.Sqrt(t, tensor.Shift(t, tensor.ReLU(t, tensor.Shift(t, square(y), -least)), least))
	factor := tensor.Div(t, tensor.Sqrt(t, square(x)), size)
	return tensor.Mul(t, y, tensor.BroadcastTo(t, tensor.Reshape(t, factor, append(append([]int{}, x.Shape()[:last]...), 1)...), y.Shape()...))
}

// altUp is a whole block, whose input and output x are N streams side by side: [B L N·D]. Its output is added to x.
//
//	p_k = x_k + Σ_j R_kj·x_j,    R = router(x_a)·W_predict                           for each stream k; a is the active one
//	y   = block(p_a), with p_a + attention + Laurel, divided by √2, before the feed-forward network
//	x_k = p_k + c_k·(y − p_a) + add_k,    c = router(y)·W_correct + 1
//
// What it adds to each stream but the first depends on the corrected active stream and the inputs of this layer.
type altUp struct {
	*block
	streams, active  int
	router, laurel   Layer
	predict, correct *nn.Linear
	scale            *tensor.Tensor // [D] of the corrected stream, nil for 1
	add              func(t *tensor.Tape, x *tensor.Tensor, r *Run) *tensor.Tensor
}

func (*altUp) kind() string { return "attention" }

// Heads describes the heads of attention.
func (a *altUp) Heads() attn.LayerHeads { return a.self.Heads() }

func (a *altUp) newCache(batch int, c attn.CacheConfig) (LayerCache, error) {
	return (&stack{blocks: []*block{a.block}}).NewLayerCache(0, batch, c)
}

func (a *altUp) mix(t *tensor.Tape, x *tensor.Tensor, r *Run, kept LayerCache, lens []int) *tensor.Tensor {
	b, l, n := x.Dim(0), x.Dim(1), a.streams
	d := x.Dim(2) / n
	each := func(rows, streams *tensor.Tensor, k int) *tensor.Tensor { // of each token [n k]·[k D], side by side
		y := tensor.MatMul(t, tensor.Reshape(t, rows, b*l, n, k), tensor.Reshape(t, streams, b*l, k, d))
		return tensor.Reshape(t, y, b, l, n*d)
	}
	change := each(a.predict.Forward(t, a.router.Forward(t, stream(t, x, a.active, n))), x, n)
	p := tensor.Add(t, stream(t, x, a.active, n), stream(t, change, a.active, n))

	h := a.selfNorm.Forward(t, p)
	y := tensor.Add(t, p, a.selfAfter.Forward(t, a.attendSelf(t, h, r, kept, lens)))
	y = tensor.Scale(t, tensor.Add(t, y, tensor.Add(t, h, a.laurel.Forward(t, h))), math.Sqrt2/2)
	y = tensor.Add(t, y, edited(t, r.now.FeedForward, a.ffAfter.Forward(t, a.ff.Forward(t, a.ffNorm.Forward(t, y)))))

	coefs := tensor.Shift(t, a.correct.Forward(t, a.router.Forward(t, y)), 1)
	correction := each(coefs, tensor.Sub(t, y, p), 1)
	change = tensor.Add(t, change, correction)
	first := tensor.Add(t, p, stream(t, correction, a.active, n))
	if a.scale != nil {
		first = tensor.Mul(t, first, tensor.BroadcastTo(t, a.scale, b, l, d))
	}
	all, more := []*tensor.Tensor{tensor.Zeros(b, l, d)}, a.add(t, first, r)
	for range n - 1 {
		all = append(all, more)
	}
	return tensor.Add(t, change, tensor.Concat(t, 2, all...))
}
