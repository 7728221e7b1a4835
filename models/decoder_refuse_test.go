package models_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
)

type object = map[string]any

// sizesOf returns the per_layer_config of five layers.
func sizesOf(sizes object) object {
	return object{"0": sizes, "1": sizes, "2": sizes, "3": sizes, "4": sizes}
}

func TestRefusedDecoderSettings(t *testing.T) {
	rope := func(values object) object { return object{"rope_parameters": values} }
	for _, c := range []struct {
		dir    string
		change object
		want   string
	}{
		{"gpt2", object{"n_head": 5}, "n_head is 5, want a divisor of n_embd, which is 12"},
		{"gpt2", object{"n_head": 1 << 24}, "n_head is 16777216, want a divisor of n_embd, which is 12"},
		{"gpt2", object{"add_cross_attention": true}, "add_cross_attention is true, want false or none"},
		{"gpt2", object{"activation_function": "swiglu"}, `activation_function is "swiglu", want one of gelu`},
		{"gpt2", object{"n_positions": 1 << 23}, `"transformer.wpe.weight" has shape [64 12], want [8388608 12]`},
		{"gpt2", object{"tie_word_embeddings": false}, `tensor "lm_head.weight" is missing`},
		{"llama2", object{"num_experts": 8}, "setting num_experts = 8 is not known for model_type llama"},
		{"llama2", object{"head_dim": 1 << 24}, "head_dim makes heads of size 16777216, want at most 65536"},
		{"llama2", object{"head_dim": 3}, "head_dim makes heads of size 3, want an even number"},
		{"llama2", object{"num_key_value_heads": 3}, `"model.layers.0.self_attn.k_proj.weight" has shape [24 24], want [18 24]`},
		{"llama2", object{"num_key_value_heads": 2}, `"model.layers.0.self_attn.k_proj.weight" has shape [24 24], want [12 24]`},
		{"llama2", object{"num_hidden_layers": 3}, `"model.layers.2.input_layernorm.weight"`},
		{"llama2", object{"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5, want 1 or none"},
		{"llama2", object{"rope_theta": 0.5}, "rope_theta is 0.5, want more than 1"},
		{"llama2", object{"rope_theta": 0}, "rope_theta is 0, want more than 1"},
		{"gemma3", rope(object{"full_attention": object{"rope_type": "default", "rope_theta": 0}}), "rope_parameters.full_attention.rope_theta is 0, want more than 1"},
		{"llama2", object{"rope_theta": "10000"}, `rope_theta is "10000", want a number`},
		{"llama2", object{"rope_scaling": object{"rope_type": "mrope"}}, `rope_scaling.rope_type is "mrope", want default, linear, dynamic, llama3, yarn, longrope or proportional`},
		{"llama2", object{"rope_scaling": object{"type": "linear"}}, "rope_scaling.factor is missing, want at least 1"},
		{"llama2", object{"rope_scaling": object{"type": "linear", "factor": 2, "finetuned": true}}, "setting rope_scaling.finetuned = true is not known"},
		{"llama2", object{"rope_scaling": object{"rope_type": "longrope", "short_factor": []int{1}, "long_factor": []int{2}, "factor": 2}}, "ScaleLongRoPE: Short (short_factor) has 1 factors, want 3"},
		{"llama2", object{"rope_parameters": object{}, "rope_scaling": object{"type": "default"}}, "rope_scaling and rope_parameters are both set, want one of them"},
		{"llama_yarn", rope(object{"rope_type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 2}), "ScaleYaRN: Fast (beta_fast) 1 and Slow (beta_slow) 2, want Slow above 0 and Fast above Slow"},
		{"llama_yarn", rope(object{"rope_type": "yarn", "factor": 2, "truncate": nil}), "rope_parameters.truncate is null, want true or false"},
		{"llama_yarn", rope(object{"rope_type": "default", "partial_rotary_factor": 0.5}), "rope_parameters.partial_rotary_factor is 0.5, want 1 or none"},
		{"llama_biases", object{"mlp_bias": false}, `tensors "model.layers.0.mlp.down_proj.bias", `},
		{"llama_biases", object{"attention_bias": false}, `tensors "model.layers.0.self_attn.k_proj.bias", `},
		{"mistral", object{"layer_types": []string{"full_attention", "full_attention"}}, `setting layer_types = ["full_attention","full_attention"] is not known`},
		{"mistral", object{"sliding_window": 0}, "sliding_window is 0, want 1 to 16777216"},
		{"qwen2", object{"tie_word_embeddings": true}, `tensor "lm_head.weight" differs from "model.embed_tokens.weight" at element 0`},
		{"qwen2_types", object{"use_sliding_window": false}, "layer_types has sliding_attention, but no window is used"},
		{"qwen2_types", object{"layer_types": []string{"full_attention"}}, "layer_types has 1 types, want 3, one for each layer"},
		{"qwen2_types", object{"layer_types": []string{"full_attention", "chunked_attention", "full_attention"}}, `layer_types has "chunked_attention", want full_attention or sliding_attention`},
		{"qwen3", object{"num_attention_heads": 2}, `"model.layers.0.self_attn.q_proj.weight" has shape [40 12], want [20 12]`},
		{"gemma2", object{"use_bidirectional_attention": true}, "use_bidirectional_attention is true, want false or none"},
		{"gemma2", object{"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is 0, want a positive number"},
		{"gemma2", object{"final_logit_softcapping": 0}, "final_logit_softcapping is 0, want a positive number in the range of float32, or null"},
		{"gemma2", object{"attn_logit_softcapping": -1}, "attn_logit_softcapping is -1, want a positive number in the range of float32, or null"},
		{"gemma2", object{"attn_logit_softcapping": 1e-40}, "attn_logit_softcapping is 1e-40, want a positive number in the range of float32"},
		{"gemma2", object{"final_logit_softcapping": 1e-60}, "final_logit_softcapping is 1e-60, want a positive number in the range of float32"},
		{"gemma4", object{"enable_moe_block": true}, "enable_moe_block is true, want false, or a number in num_experts"},
		{"gemma4_experts", object{"top_k_experts": 6}, "top_k_experts is 6, want at most num_experts, which is 5"},
		{"gemma4_experts", object{"num_experts": 1 << 24}, "experts.gate_up_proj\" has shape [5 18 12], want [16777216 18 12]"},
		{"gemma3n", object{"altup_active_idx": 3}, "altup_num_inputs is 3 with an altup_active_idx of 3, want at most 64, and an index below it"},
		{"gemma3n", object{"activation_sparsity_pattern": []any{0.5}}, "activation_sparsity_pattern has 1 numbers, want 3, one for each layer"},
		{"gemma3n", object{"activation_sparsity_pattern": []any{0.5, 1, 0}}, "activation_sparsity_pattern has 1, want less than 1"},
		{"gemma3n", object{"intermediate_size": []any{7, 9}}, "intermediate_size has 2 numbers, want 3, one for each layer"},
		{"gemma3n", object{"hidden_size_per_layer_input": 0}, "hidden_size_per_layer_input is 0, want a positive number"},
		{"gemma3n", object{"num_kv_shared_layers": 2}, "num_kv_shared_layers is 2, want fewer: layer 1 uses keys of an earlier one of its type"},
		{"deepseek_v2", object{"norm_topk_prob": true}, "norm_topk_prob is true, want false or none"},
		{"deepseek_v2", object{"n_group": nil}, "n_group is missing, want a positive number"},
		{"deepseek_v2_greedy", object{"num_experts_per_tok": nil}, "num_experts_per_tok is missing, want a positive number"},
		{"mistral3", object{"text_config": nil}, "text_config is missing, want an object"},
		{"gemma4", object{"use_bidirectional_attention": "all"}, `use_bidirectional_attention is "all", want "vision" or none`},
		{"gemma4", object{"num_kv_shared_layers": 5}, "num_kv_shared_layers is 5, want fewer: layer 0 uses keys of an earlier one of its type"},
		{"gemma4", object{"num_kv_shared_layers": 4}, "num_kv_shared_layers is 4, want fewer: layer 1 uses keys of an earlier one of its type"},
		{"gemma4", object{"num_kv_shared_layers": 2}, `"model.layers.2.mlp.down_proj.weight" has shape [12 14], want [12 7]`},
		{"gemma4", object{"vocab_size_per_layer_input": 30}, "vocab_size_per_layer_input is 30, want at least the 31 tokens of vocab_size"},
		{"gemma4", object{"per_layer_config": object{"1": object{"head_dim": 8}}}, `per_layer_config is {"1":{"head_dim":8}}, want`},
		{"gemma4", object{"per_layer_config": object{}}, "per_layer_config is {}, want"},
		{"gemma4", object{"per_layer_config": 3}, "per_layer_config is 3, want an object of sizes by layer"},
		{"gemma4", object{"layer_types": []string{"full_attention", "full_attention", "full_attention", "full_attention", "full_attention"},
			"per_layer_config": sizesOf(object{"head_dim": 8, "sliding_window": 3})}, `per_layer_config is {"0":{"head_dim":8,"sliding_window":3},`},
		{"gemma4", object{"layer_types": []string{"full_attention", "full_attention", "full_attention", "full_attention", "full_attention"},
			"per_layer_config": sizesOf(object{"head_dim": -8})}, `per_layer_config is {"0":{"head_dim":-8},`},
		{"gemma4", rope(object{"full_attention": object{"rope_type": "proportional", "rope_theta": 100}}), "rope_parameters is missing, want an object with full_attention and sliding_attention"},
		{"gemma4", rope(object{"full_attention": object{"rope_type": "proportional", "rope_theta": 100, "factor": 2}, "sliding_attention": object{}}), "rope_parameters.full_attention.factor is 2, want 1 or none"},
		{"gemma4_equal", object{"global_head_dim": 7}, "global_head_dim makes heads of size 7, want an even number"},
		{"gemma4_multimodal", object{"tie_word_embeddings": false}, "text_config.tie_word_embeddings is true, want false or none"},
		{"gemma4_multimodal", object{"text_config": nil}, "text_config is missing, want an object"},
		{"diffllama", object{"num_key_value_heads": 1}, "num_key_value_heads is 1, want an even number that divides num_attention_heads, which is 8"},
		{"ministral3", object{"rope_parameters": nil}, "rope_parameters is missing, want llama_4_scaling_beta and original_max_position_embeddings in it"},
		{"gemma3", object{"attn_logit_softcapping": 50}, "attn_logit_softcapping is 50, want none"},
		{"gemma3", rope(object{"rope_type": "default", "rope_theta": 1e4}), "rope_parameters.rope_theta is 10000, want 1000000 or none"},
		{"deepseek_v3", object{"scoring_func": "softmax"}, `scoring_func is "softmax", want "sigmoid" or none`},
		{"deepseek_v3", object{"topk_method": "greedy"}, `topk_method is "greedy", want "noaux_tc" or none`},
		{"deepseek_v3", object{"moe_layer_freq": 2}, "moe_layer_freq is 2, want 1 or none"},
		{"deepseek_v3", object{"num_key_value_heads": 2}, "num_key_value_heads is 2, want 4, as num_attention_heads, or none"},
		{"deepseek_v3", object{"head_dim": 11}, "head_dim is 11, want 6 or none"},
		{"deepseek_v3", object{"qk_rope_head_dim": 5}, "qk_rope_head_dim makes heads of size 5, want an even number"},
		{"deepseek_v3", object{"qk_nope_head_dim": 6, "qk_head_dim": nil}, `"model.layers.0.self_attn.kv_b_proj.weight" has shape [32 9], want [36 9]`},
		{"deepseek_v3", object{"q_lora_rank": nil}, `"model.layers.0.self_attn.q_a_proj.weight" has shape [7 12], want [1536 12]`},
		{"deepseek_v3", object{"n_group": 4}, "n_group is 4 with a topk_group of 2, want equal groups of 6 experts (n_routed_experts), of which a token has 2"},
		{"deepseek_v3", object{"topk_group": 4}, "n_group is 3 with a topk_group of 4, want equal groups of 6 experts (n_routed_experts), of which a token has 2"},
		{"deepseek_v3", object{"n_group": 6}, "n_group is 6 with a topk_group of 2, want"},
		{"deepseek_v3", object{"topk_group": 1, "num_experts_per_tok": 3}, "n_group is 3 with a topk_group of 1, want"},
		{"deepseek_v3", object{"num_hidden_layers": 1}, `"model.layers.1.input_layernorm.weight" and 31 more are not read`},
		{"deepseek_v3", object{"routed_scaling_factor": 0}, "routed_scaling_factor is 0, want a positive number"},
		{"deepseek_v3", rope(object{"rope_type": "yarn", "mscale_all_dim": 1, "rope_theta": 100}), "rope_parameters.factor is missing, want at least 1"},
		{"deepseek_v3", rope(object{"rope_type": "linear", "factor": 2, "mscale_all_dim": 1}), "setting rope_parameters.mscale_all_dim = 1 is not known"},
		{"minicpm3", object{"scale_depth": 0}, "scale_depth is 0, want a positive number"},
		{"minicpm3", object{"rope_interleave": true}, "setting rope_interleave = true is not known for model_type minicpm3"},
		{"gemma3_multimodal", object{"text_config": nil}, "text_config is missing, want an object"},
		{"gemma3_multimodal", object{"text_config": object{"model_type": "gemma2"}}, `text_config.model_type is "gemma2", want "gemma3_text" or none`},
	} {
		dir := edit(t, filepath.Join("decoders", c.dir), c.change)
		if strings.Contains(c.want, " differs from ") { // which only the numbers can tell
			if _, err := models.Load(dir, models.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s with %v: error %v, want %s", c.dir, c.change, err, c.want)
			}
			continue
		}
		if got := refused(t, dir); !strings.Contains(got, c.want) {
			t.Errorf("%s with %v:\n%s\nwant\n%s", c.dir, c.change, got, c.want)
		}
	}
}

// TestTokensOption loads models for longer and shorter sequences than in their training, and copies them.
func TestTokensOption(t *testing.T) {
	for _, c := range []struct {
		dir         string
		ask, tokens int
		want        string // the error
	}{
		{"llama2", 0, 96, ""},
		{"llama2", 200, 200, ""},
		{"llama2", 7, 7, ""},
		{"llama_longrope", 0, 80, ""},
		{"llama_longrope", 96, 96, ""},
		{"gpt2", 0, 64, ""},
		{"gpt2", 65, 0, "n_positions is 64, want at least the 65 requested tokens"},
		{"llama2", -1, 0, "models: Options.Tokens is -1, want 0 to 16777216"},
		{"llama2", 1 << 25, 0, "models: Options.Tokens is 33554432, want 0 to 16777216"},
	} {
		m, err := models.Load(filepath.Join("testdata/decoders", c.dir), models.Options{Tokens: c.ask, Trainable: true})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s for %d tokens: error %v, want %s", c.dir, c.ask, err, c.want)
			}
			continue
		}
		if err != nil || m.Sizes().Positions != c.tokens {
			t.Errorf("%s for %d tokens: %v, want %d", c.dir, c.ask, err, c.tokens)
		}
		if m, err = m.Keep(nil); err != nil || m.Sizes().Positions != c.tokens {
			t.Errorf("a copy of %s for %d tokens: %v, %d, want %d", c.dir, c.ask, err, m.Sizes().Positions, c.tokens)
		}
	}
}

func TestEndTokens(t *testing.T) {
	for _, c := range []struct {
		dir, generation string // generation_config.json, empty for none
		want            []int
		err             string
	}{
		{"gpt2", "", []int{30}, ""},
		{"llama3", "", []int{2, 7}, ""},
		{"qwen2", "", nil, ""},
		{"gemma3_multimodal", "", []int{1, 7}, ""},
		{"gpt2", `{"eos_token_id": 5, "do_sample": true}`, []int{5}, ""},
		{"gpt2", `{"eos_token_id": [5, 6]}`, []int{5, 6}, ""},
		{"gpt2", `{"eos_token_id": null}`, nil, ""},
		{"gpt2", `{"temperature": 0.7}`, []int{30}, ""},
		{"gpt2", `{"eos_token_id": "</s>"}`, nil, `generation_config.json: eos_token_id is "</s>", want a token id or a list of them`},
		{"gpt2", `{"eos_token_id": 31}`, nil, "generation_config.json: eos_token_id has token id 31, want 0 to 30"},
		{"gpt2", `[]`, nil, "generation_config.json: has an array where an object is wanted"},
	} {
		dir := edit(t, filepath.Join("decoders", c.dir), nil)
		if c.generation != "" {
			write(t, filepath.Join(dir, "generation_config.json"), c.generation)
		}
		var got []int
		m, err := models.Load(dir, models.Options{})
		if err == nil {
			got, err = m.EndTokens()
		}
		if c.err != "" {
			if !errors.As(err, new(*models.FormatError)) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %s", c.generation, err, c.err)
			}
			if m != nil { // a text without an end would be the result
				if _, err := m.Generate(t.Context(), []int{1}, models.Generation{Tokens: 2}); err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("Generate with %s: error %v, want %s", c.generation, err, c.err)
				}
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s with %q: %v, %v, want %v", c.dir, c.generation, got, err, c.want)
		}
	}
}
