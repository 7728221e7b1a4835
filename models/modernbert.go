package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
)

// modernBERTFamily is ModernBERT: BERT with rotary positions, norms before both parts of a block, gated feed-forward
// networks, and a sliding window in two of three blocks, each with its own rotary base.
//
// Source: Warner et al., "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory Efficient, and
// Long Context Finetuning and Inference", 2024, https://arxiv.org/abs/2412.13663.
var modernBERTFamily = Family{
	Type: "modernbert", Name: "ModernBERT", graph: true, Harmless: modernBERTHarmless,
	New: func(b *Builder) Network { return modernBERT(b, false) },
}

// modernBERTDecoderFamily is ModernBERT with causal attention: of a sliding window, the half before a query.
//
// Source: Weller et al., "Seq vs Seq: An Open Suite of Paired Encoders and Decoders", 2025,
// https://arxiv.org/abs/2507.11412; transformers' class ModernBertDecoderForCausalLM.
var modernBERTDecoderFamily = Family{
	Type: "modernbert-decoder", Name: "ModernBERT decoder", Harmless: modernBERTHarmless,
	New: func(b *Builder) Network { return modernBERT(b, true) },
}

var modernBERTHarmless = []string{
	"deterministic_flash_attn", "embedding_dropout", "initializer_cutoff_factor", "mlp_dropout", "pad_token_id",
	"reference_compile", "repad_logits_with_grad", "sparse_pred_ignore_index", "sparse_prediction",
}

func modernBERT(b *Builder, causal bool) Network {
	s, base := b.Config, b.Within("model")
	const noTable = "sans_pos" // beside the rotary positions, which no file can switch off
	name, mask, maps := encoderName, encoderMask, Maps{QKV: "attn.Wqkv", Out: "attn.Wo"}
	if causal {
		oneWay(s)
		s.Only("position_embedding_type", noTable, "absolute")
		name, mask, maps = decoderName, decoderMask, Maps{Q: "attn.q_proj", K: "attn.k_proj", V: "attn.v_proj", Out: "attn.Wo"}
	} else {
		bothWays(s, noTable)
	}
	s.Only("causal_mask", causal)
	z := bertSizes(b)
	z.Causal = causal
	z.HeadSize = s.rotated("hidden_size", z.HeadSize)
	eps, act := s.Eps("norm_eps", 1e-5), s.Activation("hidden_activation", "gelu")
	s.Only("layer_norm_eps", eps) // which published files also have, and transformers ignores
	shifted, bias := s.Bool("norm_bias", false), s.attentionBias(false)
	norm := func(b *Builder, name string) Layer {
		if shifted {
			return b.LayerNorm(name, z.Width, eps)
		}
		return b.gain(name, z.Width, eps)
	}
	every, window := s.SizeOr("global_attn_every_n_layers", 3), s.SizeOr("local_attention", 128)
	if causal {
		if window /= 2; window == 0 || s.null("local_attention") {
			s.Fail("local_attention", "leaves a query without a key, want 2 at least")
		}
		window = s.SizeOr("sliding_window", window) // which transformers writes, and then goes by
	} else {
		window = oddWindow(window)
	}
	usual := func(i int) bool { return i%every != 0 }
	slides := slides(s, z.Layers, usual)
	for i := range z.Layers {
		if s.Has("global_attn_every_n_layers") && slides(i) != usual(i) { // which transformers 4 goes by
			s.Fail("layer_types", "of layer %d differs from global_attn_every_n_layers, want one of them", i)
		}
	}
	s.Only("rope_scaling")
	fullBase, localBase := s.base("global_rope_theta", 160000), s.base("local_rope_theta", 10000)
	if s.null("local_rope_theta") {
		localBase = fullBase
	}
	full, local, tokens := twoRopes(b, z, z, fullBase, localBase)
	z.Positions = tokens
	s.Only("mlp_bias", false)

	in := base.At("embeddings")
	e := &stack{sizes: z, words: in.Embedding("tok_embeddings", z.Vocabulary, z.Width), wordsNorm: norm(in, "norm")}
	for i := range z.Layers {
		at := base.At(fmt.Sprintf("layers.%d", i))
		c := attn.MultiHeadConfig{
			Name: name(i), Width: z.Width, Heads: z.Heads, HeadSize: z.HeadSize, Bias: bias, Position: full,
		}
		p := &block{options: attn.Options{Mask: mask(0)}}
		if slides(i) {
			c.Position, p.window, p.options.Mask = local, window, mask(window)
		}
		if i > 0 { // the norm of the embeddings serves the first block
			p.selfNorm = norm(at, "attn_norm")
		}
		p.self = at.MultiHead(c, maps)
		p.ffNorm = norm(at, "mlp_norm")
		gates := at.matrices("mlp.Wi.weight", false, z.Width, z.Hidden, z.Hidden)
		p.ff = &GatedFeedForward{Gate: gates[0], Up: gates[1], Down: at.Matrix("mlp.Wo", z.Hidden, z.Width), Activation: act}
		e.blocks = append(e.blocks, p)
	}
	e.norm = norm(base, "final_norm")
	e.head = modernBERTHead(b, z, e, norm, in.Name("tok_embeddings.weight"))
	return e
}

// modernBERTHead returns the head, nil if there is none. All heads begin with a map, an activation and a norm.
func modernBERTHead(b *Builder, z Sizes, e *stack, norm func(b *Builder, name string) Layer, embeddings string) *TaskHead {
	const texts, tokens, answers = "SequenceClassification", "TokenClassification", "QuestionAnswering"
	s := b.Config
	act, tied, kind := s.Activation("classifier_activation", "gelu"), s.Bool("tie_word_embeddings", true), s.Text("classifier_pooling", "cls")
	shifted, linear := s.Bool("decoder_bias", true), b.Matrix
	if s.Bool("classifier_bias", false) {
		linear = b.Linear
	}
	at, task := "head", MaskedWords
	if z.Causal && !b.HasAny("classifier.") {
		at, task = "lm_head", NextWord
	}
	if !b.HasAny(at + ".") {
		return nil
	}
	dense := inTurn{linear(at+".dense", z.Width, z.Width), act, norm(b, at+".norm")}
	if !b.HasAny("classifier.") {
		var words Layer = &nn.Linear{Weight: e.words.(*nn.Embedding).Weight}
		switch {
		case shifted:
			words = b.words("decoder", "decoder.bias", e.words, embeddings, tied, z)
		case tied:
			b.Tied(b.Name("decoder.weight"), embeddings)
		default:
			words = b.Matrix("decoder", z.Width, z.Vocabulary)
		}
		return &TaskHead{Task: task, Layer: append(dense, words)}
	}
	if z.Causal {
		labels := s.Labels()
		b.wantClass(texts)
		return &TaskHead{
			Task: TextClasses, Labels: labels, Layer: append(dense, linear("classifier", z.Width, len(labels))),
			Pool: pooling("lasttoken"), Padding: padding(s, []int{50283}),
		}
	}
	h, labels := &TaskHead{Task: TokenClasses}, []string{"start", "end"}
	switch b.wantClass(texts, tokens, answers) {
	case answers:
		h.Task = AnswerSpan
	case texts:
		if h.Task = TextClasses; kind != "cls" && kind != "mean" {
			s.Fail("classifier_pooling", "is %s, want cls or mean", quote.Text(kind))
			kind = "cls"
		}
		h.Pool = pooling(kind)
		fallthrough
	default:
		labels = s.Labels()
	}
	h.Labels, h.Layer = labels, append(dense, b.Linear("classifier", z.Width, len(labels)))
	return h
}
