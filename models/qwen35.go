package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// qwen35Family is the text model of Qwen3.5: three of four layers are Gated DeltaNet; the others have softmax attention
// whose output has a gate, and rotate a quarter of each head. Norms have the gain 1 + weight.
//
// Source: Qwen3_5TextModel of transformers; Yang et al., "Gated Delta Networks", 2024, https://arxiv.org/abs/2412.06464;
// Qiu et al., "Gated Attention for Large Language Models", 2025, https://arxiv.org/abs/2505.06708.
var qwen35Family = Family{Type: "qwen3_5_text", Name: "Qwen3.5", New: newQwen35, Pruning: HeadCounts, Harmless: qwen35Harmless}

// qwen35Harmless are settings of layers that predict further tokens, which are not read.
var qwen35Harmless = []string{"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"}

func newQwen35(b *Builder) Network {
	m := qwen35(b)
	base := b.Within("model")
	return m.build(base.Within("language_model"), b)
}

// qwen35WithImages is Qwen3.5 in a file that also contains an image model, which is not read.
var qwen35WithImages = Family{Type: "qwen3_5", Name: "Qwen3.5", New: newQwen35WithImages, Pruning: HeadCounts, Harmless: []string{
	"image_token_id", "language_model_only", "video_token_id", "vision_config", "vision_end_token_id", "vision_start_token_id",
}}

func newQwen35WithImages(b *Builder) Network {
	text := b.textModel(qwen35Family)
	m := qwen35(text)
	text.Config.Bool("tie_word_embeddings", false) // that of the whole model counts
	m.tied = b.Config.Bool("tie_word_embeddings", false)
	return m.build(text.At("model.language_model"), text)
}

// qwen35 returns the settings of Qwen3.5, in files with and without images.
func qwen35(b *Builder) rotaryDecoder {
	s := b.Config
	b.Unread("mtp.*", "model.visual.*")
	m := llamaLike(b, Sizes{KVHeads: 4, HeadSize: 256})
	m.norm, m.headNorms, m.bias = s.plusOneNorm(), eachHead, s.attentionBias(false)
	m.outputGate = attn.OutputGate{Activation: tensor.Sigmoid}
	s.Only("attn_output_gate", true)
	s.Only("output_gate_type", "swish") // of linear attention
	s.Only("mamba_ssm_dtype", "float32")
	s.Only("mlp_only_layers", []int{})

	r := newRotation(s, m.Sizes, 10000)
	r.partial, r.usual = true, "partial_rotary_factor"
	if r.scaling != nil { // the tokens of a text have the same position in all sections
		r.scaling.Ignore("mrope_interleaved", "mrope_section")
	}
	m.rotate(r, b)

	every := 4
	if s.Has("layer_types") {
		s.Ignore("full_attention_interval")
	} else {
		every = s.SizeOr("full_attention_interval", every)
	}
	eps := s.Eps("rms_norm_eps", 1e-6)
	c := s.gatedDelta(linear.LayerConfig{Width: m.Width, Heads: 32, KeyHeads: 16, KeySize: 128, ValueSize: 128, Beta: 1})
	m.linearBlocks(s.hybridTypes(m.Layers, func(i int) bool { return (i+1)%every != 0 }), func(b *Builder, c linear.LayerConfig) *linear.Layer {
		c.Decay, c.OutNorm = b.stepDecay("in_proj_a", c), b.RMSNorm("norm", c.ValueSize, eps)
		return b.LinearAttention(c, LinearMaps{
			QKV: []string{"in_proj_qkv"}, Conv: []string{"conv1d"}, Beta: "in_proj_b", Gate: "in_proj_z", Out: "out_proj",
		})
	}, c)
	return m
}
