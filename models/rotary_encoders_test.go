package models_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Settings of encoders with rotary positions or ALiBi that attn does not compute are refused by name, and so are those
// whose default depends on the code that reads them.
func TestRotaryEncoderSettings(t *testing.T) {
	jina := map[string]any{"AutoModel": "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel"}
	for _, c := range []struct {
		dir    string
		change map[string]any
		want   string
	}{
		{"nomic", map[string]any{"head_dim": 6}, "head_dim is 6, want 4 or none"},
		{"nomic", map[string]any{"num_experts": 4}, "setting num_experts = 4 is not known"},
		{"nomic", map[string]any{"hidden_size": nil}, "hidden_size is missing"},
		{"nomic", map[string]any{"auto_map": map[string]any{"AutoModel": "x.NomicVisionModel"}}, "setting auto_map = "},
		{"nomic_published", map[string]any{"prenorm": true}, "prenorm is true, want false or none"},
		{"nomic_published", map[string]any{"causal": true}, "causal is true, want false or none"},
		{"nomic_published", map[string]any{"use_rms_norm": true}, "use_rms_norm is true, want false or none"},
		{"nomic_published", map[string]any{"parallel_block": true}, "parallel_block is true, want false or none"},
		{"nomic_published", map[string]any{"norm_mlp": true}, "norm_mlp is true, want false or none"},
		{"nomic_published", map[string]any{"num_heads_kv": 1}, "num_heads_kv is 1, want 3 or none"},
		{"nomic_published", map[string]any{"rotary_emb_fraction": nil}, "rotary_emb_fraction is missing, want 1"},
		{"nomic_published", map[string]any{"rotary_emb_fraction": 0.5}, "rotary_emb_fraction is 0.5, want 1 or none"},
		{"nomic_published", map[string]any{"rotary_emb_interleaved": true}, "rotary_emb_interleaved is true, want false or none"},
		{"nomic_published", map[string]any{"rotary_emb_scale_base": 512}, "rotary_emb_scale_base is 512, want none"},
		{"nomic_published", map[string]any{"rotary_head_dim": true}, "rotary_head_dim is true, want false or none"},
		{"nomic_published", map[string]any{"rotary_scaling_factor": 0.5, "max_trained_positions": 8}, "ScaleNTK: factor 0.5"},
		{"nomic_published", map[string]any{"activation_function": nil}, "activation_function is \"\", want swiglu, geglu or gelu"},
		{"nomic_published", map[string]any{"activation_function": "gelu_new"}, "activation_function is \"gelu_new\", want swiglu, geglu or gelu"},
		{"nomic_published", map[string]any{"activation_function": "gelu"}, "mlp.fc1.weight"},
		{"nomic_published", map[string]any{"qkv_proj_bias": nil}, "attn.Wqkv.bias"},
		{"nomic_published", map[string]any{"hidden_size": 24}, "hidden_size is 24, want 12 or none"},
		{"nomic_published", map[string]any{"hidden_act": "gelu"}, `hidden_act is "gelu", want "silu" or none`},
		{"nomic_published", map[string]any{"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 1000}}, "rope_parameters.rope_theta is 1000, want 50 or none"},
		{"nomic_published", map[string]any{"rope_parameters": map[string]any{"rope_type": "linear", "factor": 2}}, `rope_parameters.rope_type is "linear", want "default" or none`},
		{"nomic_published", map[string]any{"n_inner": nil}, "n_inner is missing"},
		{"nomic_published", map[string]any{"pad_vocab_size_multiple": 64}, "embeddings.word_embeddings.weight"},
		{"nomic_moe", map[string]any{"moe_normalize_expert_weights": true}, "moe_normalize_expert_weights is true, want false or none"},
		{"nomic_moe", map[string]any{"expert_choice_router": true}, "expert_choice_router is true, want false or none"},
		{"nomic_moe", map[string]any{"num_shared_experts": 1}, "num_shared_experts is 1, want 0 or none"},
		{"nomic_moe", map[string]any{"ffn_div": 2}, "ffn_div is 2, want 1 or none"},
		{"nomic_moe", map[string]any{"moe_top_k": 5}, "moe_top_k is 5, want at most num_experts, which is 4"},
		{"nomic_moe", map[string]any{"num_experts": 2}, "mlp.router.layer.weight"},
		{"nomic_moe", map[string]any{"num_experts": 1 << 20}, "num_experts is 1048576, but the file has"},
		{"nomic_moe", map[string]any{"moe_every_n_layers": nil}, "encoder.layers.1.mlp"},
		{"nomic_moe", map[string]any{"activation_function": "swiglu"}, `activation_function is "swiglu", want "gelu" or none`},
		{"new", map[string]any{"rope_theta": nil}, "rope_theta is missing"},
		{"new", map[string]any{"rope_scaling": map[string]any{"factor": 3}}, "rope_scaling.type is missing"},
		{"new", map[string]any{"rope_scaling": map[string]any{"type": "linear", "factor": 3}}, `rope_scaling.type is "linear", want "ntk" or none`},
		{"new", map[string]any{"rope_scaling": map[string]any{"type": "ntk", "factor": 3, "mixed_b": 0.6}}, "rope_scaling.mixed_b is 0.6, want none"},
		{"new", map[string]any{"rope_scaling": map[string]any{"type": "ntk", "factor": 0.5}}, "rope_scaling.factor is 0.5, want at least 1"},
		{"new", map[string]any{"rope_scaling": map[string]any{"type": "ntk"}}, "rope_scaling.factor is missing"},
		{"new", map[string]any{"layer_norm_type": "rms_norm"}, `layer_norm_type is "rms_norm", want "layer_norm" or none`},
		{"new", map[string]any{"logn_attention_scale": true}, "logn_attention_scale is true, want false or none"},
		{"new", map[string]any{"pack_qkv": false}, "pack_qkv is false, want true or none"},
		{"new", map[string]any{"position_embedding_type": "alibi"}, `position_embedding_type is "alibi", want "rope"`},
		{"new", map[string]any{"architectures": []string{"NewModel"}}, "but the file has the head of a class …For"},
		{"new", map[string]any{"type_vocab_size": 0}, "embeddings.token_type_embeddings.weight"},
		{"new", map[string]any{"auto_map": map[string]any{"AutoModel": "x.NewDecoder"}}, "setting auto_map = "},
		{"gte", map[string]any{"rope_parameters": nil}, "rope_theta is missing"},
		{"jina", map[string]any{"auto_map": nil, "architectures": []string{"BertModel"}}, `position_embedding_type is "alibi", want "absolute" or none`},
		{"jina", map[string]any{"position_embedding_type": "absolute"}, `position_embedding_type is "absolute", want "alibi"`},
		{"jina", map[string]any{"position_embedding_type": nil}, `position_embedding_type is missing, want "alibi"`},
		{"jina", map[string]any{"feed_forward_type": "original"}, `feed_forward_type is "original", want "geglu" or "reglu" or none`},
		{"jina", map[string]any{"feed_forward_type": nil}, `feed_forward_type is missing, want "geglu" or "reglu"`},
		{"jina", map[string]any{"auto_map": map[string]any{"AutoModel": "x.JinaBertModel", "AutoModelForMaskedLM": "x.Other"}}, "setting auto_map = "},
		{"bert", map[string]any{"auto_map": jina}, `position_embedding_type is missing, want "alibi"`},
		{"bert", map[string]any{"feed_forward_type": "geglu"}, "setting feed_forward_type = "},
	} {
		if got := refused(t, edit(t, c.dir, c.change)); !strings.Contains(got, c.want) {
			t.Errorf("%s with %v: error %s, want %s", c.dir, c.change, got, c.want)
		}
	}
}

// Settings of original files mean what those of transformers 5 mean, also for sequences longer than in training.
func TestRotaryEncoderPositions(t *testing.T) {
	x := models.Batch{IDs: [][]int{{2, 7, 9, 4, 11, 5, 8, 6, 10, 12, 3}}}
	states := func(dir string, change map[string]any, tokens int) []float32 {
		m, err := models.Load(edit(t, dir, change), models.Options{Tokens: tokens})
		if err != nil {
			t.Fatalf("%s: %v: %v", dir, change, err)
		}
		return m.Hidden(nil, x, models.Run{}).Data()
	}
	native := func(positions int, rope map[string]any) map[string]any { // names of transformers 5
		change := map[string]any{
			"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 17,
			"max_position_embeddings": positions, "layer_norm_eps": 1e-12, "hidden_act": "silu", "rope_parameters": rope,
		}
		for _, key := range []string{
			"activation_function", "layer_norm_epsilon", "mlp_fc1_bias", "mlp_fc2_bias", "n_embd", "n_head", "n_inner", "n_layer",
			"n_positions", "qkv_proj_bias", "rotary_emb_base", "rotary_emb_fraction",
		} {
			change[key] = nil
		}
		return change
	}
	usual := map[string]any{"rope_type": "default", "rope_theta": 50}
	dynamic := map[string]any{"rope_type": "dynamic", "factor": 2, "rope_theta": 50}
	scaled := map[string]any{"rotary_scaling_factor": 2, "max_trained_positions": 8}
	both := map[string]any{"hidden_size": 12, "hidden_act": "silu", "max_position_embeddings": 8, "rope_parameters": usual}
	plain := states("nomic_published", nil, 0)
	for name, same := range map[string]bool{
		"the same as published":    slices.Equal(plain, states("nomic_published", native(64, usual), 0)),
		"settings of both kinds":   slices.Equal(plain, states("nomic_published", both, 0)),
		"dynamic NTK":              slices.Equal(states("nomic_published", native(8, dynamic), 11), states("nomic_published", scaled, 11)),
		"another base":             !slices.Equal(plain, states("nomic_published", scaled, 11)),
		"NTK by 1, which is none":  slices.Equal(states("new", map[string]any{"rope_scaling": nil}, 0), states("new", map[string]any{"rope_scaling": map[string]any{"type": "ntk", "factor": 1}}, 0)),
		"NTK at all lengths":       slices.Equal(states("new", nil, 0), states("new", nil, 11)),
		"rope_parameters of a gte": slices.Equal(states("gte", map[string]any{"rope_parameters": map[string]any{"rope_type": "default"}}, 0), states("gte", map[string]any{"rope_parameters": nil, "rope_theta": 160000}, 0)),
	} {
		if !same {
			t.Errorf("%s: false", name)
		}
	}
	m, err := models.Load(edit(t, "nomic_published", scaled), models.Options{})
	if err != nil || m.Sizes().Positions != 8 {
		t.Fatalf("%d positions, error %v, want 8: those of training", m.Sizes().Positions, err)
	}
}

// The experts of a mixture are saved as they were stored, and loaded in every format.
func TestMixtureEncoderSaved(t *testing.T) {
	dir := filepath.Join("testdata", "nomic_moe")
	m, err := models.Load(dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := m.Save(copied); err != nil {
		t.Fatal(err)
	}
	again, err := models.Load(copied, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{{2, 7, 9, 4}, {5, 3}}}
	if want, got := m.Hidden(nil, x, models.Run{}).Data(), again.Hidden(nil, x, models.Run{}).Data(); !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got[:4], want[:4])
	}
	for _, format := range []tensor.Format{tensor.BFloat16Weights, tensor.BFloat16, tensor.Int8} {
		packed, err := models.Load(dir, models.Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		distance := 0.
		for i, v := range packed.Hidden(nil, x, models.Run{}).Data()[:4*12] { // the rest is padding
			distance = max(distance, math.Abs(float64(v-m.Hidden(nil, x, models.Run{}).Data()[i])))
		}
		if distance > 0.1 {
			t.Errorf("%v: distance %v", format, distance)
		}
	}
	if _, err := m.ONNX(0); err == nil || !strings.Contains(err.Error(), "has mixtures of experts, which cannot be exported to ONNX") {
		t.Errorf("ONNX: error %v", err)
	}
}
