"""Writes models/testdata/decoders/*: tiny decoders with random weights, and the results of transformers for them.

Each directory is a model in the form of the Hugging Face Hub: config.json and model.safetensors, or several files with their
index. Beside them, golden.safetensors has

    in.ids            the tokens, [L]
    want.logits       [L V]
    want.hidden.N     the states, [L D]: 0 is the embeddings, the last one is after the final norm
    want.weights.N    the attention weights of layer N, [H L L]
    want.tokens       50 tokens that follow by greedy generation with a KV cache
    grad.NAME         of the mean cross-entropy of the next token: Σ g_i·cos(1+i) and √Σ g_i² of the gradient of the
                      parameter NAME

in float32, computed in float64, with the largest error of the same model in float32 as budget.NAME in the metadata.
The setting `length`, if present, is the length of the longest sequence for which positions are computed.

    pip install -r testdata/requirements.txt
    python testdata/models_decoders.py           write the files
    python testdata/models_decoders.py --check   compare the files with what would be written; exit 1 on a difference
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

os.environ["HF_HUB_OFFLINE"] = "1"

import golden  # sets what must be set before torch is loaded

import safetensors.torch
import torch
import torch.nn.functional as F
import transformers
from transformers import AutoModelForCausalLM, GemmaConfig, Gemma2Config, Gemma3TextConfig, Gemma4TextConfig, GPT2Config
from transformers import GPTNeoXConfig, GraniteConfig, LlamaConfig, MistralConfig, Ministral3Config, MixtralConfig, Olmo2Config, Olmo3Config, Phi3Config
from transformers import DiffLlamaConfig, FalconH1Config, GraniteMoeHybridConfig, Lfm2Config, Mamba2Config, Qwen2Config, Qwen3Config, Qwen3MoeConfig, SmolLM3Config, Starcoder2Config
from transformers import OlmoHybridConfig, Qwen3_5TextConfig
from transformers import DeepseekV2Config, DeepseekV3Config, Gemma3nTextConfig, MiniCPM3Config, ModernBertDecoderConfig

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()  # it warns of settings that are here to be tested
TARGET = Path(__file__).resolve().parent.parent / "models" / "testdata" / "decoders"
STEPS = 50  # greedy tokens
VARIOUS = 7  # different ones among them, at least
MARGIN = 1e-3  # by which each of them is ahead of the next best, far more than float32 errs
SMALL = dict(hidden_size=12, intermediate_size=17, num_hidden_layers=2, num_attention_heads=4, vocab_size=31)
GROUPED = dict(SMALL, num_key_value_heads=2, head_dim=10)  # five frequencies
BF16 = torch.bfloat16
WAVES = dict(rope_theta=100.0)  # of 6 to 250 positions


class Case:
    """A model's configuration, the form of its files, and the number of tokens that it reads."""

    def __init__(self, config, dtype=BF16, tokens=11, length=None, shards=1, names=None, rewrite=None, generates=True):
        self.config, self.dtype, self.tokens, self.length, self.shards = config, dtype, tokens, length, shards
        self.names = names or (lambda tensors: tensors)  # changes the tensors of the file
        self.rewrite = rewrite or (lambda config: config)  # changes config.json
        self.generates = generates
        self.shapes = None  # of the parameters, once they are known


def llama(rope=None, **more):
    theta = {"rope_type": "default", "rope_theta": 10000.0}
    return LlamaConfig(**{**GROUPED, "max_position_embeddings": 96, "rope_parameters": rope or theta, **more})


def waves(rope, **more):
    """A model of one layer, which is enough to compare rotations."""
    return llama(rope, num_hidden_layers=1, **more)


def before_v5(config):
    """config.json as transformers 4 wrote it: rope_theta, and rope_scaling unless it is the default."""
    rope = dict(config.pop("rope_parameters"))
    config["rope_theta"] = rope.pop("rope_theta")
    kind = rope.pop("rope_type")
    config["rope_scaling"] = None if kind == "default" else {"rope_type": kind, **rope}
    config.pop("layer_types", None)
    config["torch_dtype"] = config.pop("dtype", None)
    return config


def oldest(config):
    """The same with the key `type` instead of `rope_type`."""
    config = before_v5(config)
    scaling = config["rope_scaling"]
    config["rope_scaling"] = {"type": scaling.pop("rope_type"), **scaling}
    return config


def gemma3_before_v5(config):
    rope = config.pop("rope_parameters")
    full, local = dict(rope["full_attention"]), rope["sliding_attention"]
    config["rope_theta"], config["rope_local_base_freq"] = full.pop("rope_theta"), local["rope_theta"]
    config["rope_scaling"] = None if full["rope_type"] == "default" else full
    config["sliding_window_pattern"] = config.pop("_sliding_window_pattern")
    config.pop("layer_types")
    return config


def gemma4_as_published(config):
    """The sizes of layers with full attention as two keys of all layers."""
    other = list(config.pop("per_layer_config").values())[0]
    return config | {"global_head_dim": other["head_dim"], "num_global_key_value_heads": other["num_key_value_heads"]}


def gpt_neox_before_v5(config):
    rope = config.pop("rope_parameters")
    config["rotary_emb_base"], config["rotary_pct"] = rope["rope_theta"], rope["partial_rotary_factor"]
    return config


def modernbert_before_v5(config):
    rope = config.pop("rope_parameters")
    config["global_rope_theta"], config["local_rope_theta"] = (rope[k]["rope_theta"] for k in ("full_attention", "sliding_attention"))
    return config | {"layer_norm_eps": config["norm_eps"], "causal_mask": True, "position_embedding_type": "sans_pos"}


def lfm2_as_published(config):
    """The keys of LiquidAI's own files."""
    config = before_v5(config)
    config |= {"use_pos_enc": True, "num_heads": config["num_attention_heads"], "tie_embedding": config.pop("tie_word_embeddings"), "block_ff_dim": config.pop("intermediate_size")}
    return config


def with_infinity(config):
    """time_step_limit as transformers 4 wrote it: a word of Python."""
    return config | {"time_step_limit": [0.0, float("inf")]}


def multimodal(config):
    text = dict(config)
    text.pop("architectures", None)
    return {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": text,
            "vision_config": {"model_type": "siglip_vision_model"}, "mm_tokens_per_image": 256, "image_token_index": 28,
            "boi_token_index": 29, "eoi_token_index": 30, "eos_token_id": [1, 7]}


def mistral3(config):
    """A file of the Hub: the text model has no tie_word_embeddings, nor has the whole, whose default is true; the head counts."""
    text = before_v5(dict(config)) if config["model_type"] == "mistral" else dict(config)
    tied = text.pop("tie_word_embeddings")
    text.pop("architectures")
    return {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "text_config": text, "vision_config": {"model_type": "pixtral"},
            "image_token_index": 10, "multimodal_projector_bias": False, "projector_hidden_act": "gelu", "spatial_merge_size": 2,
            "vision_feature_layer": -1, **({"tie_word_embeddings": True} if tied else {})}


def beside_pixtral(tensors):
    """Names as in the files of Ministral 3."""
    tensors = {name.replace("model.", "model.language_model.", 1): x for name, x in tensors.items()}
    return {**tensors, "model.vision_tower.ln_pre.weight": torch.zeros(3), "model.multi_modal_projector.norm.weight": torch.zeros(3)}


def gemma3n_multimodal(config):
    text = dict(config)
    text.pop("architectures")
    rope = text.pop("rope_parameters")
    text |= {"rope_theta": rope["full_attention"]["rope_theta"], "rope_local_base_freq": rope["sliding_attention"]["rope_theta"], "rope_scaling": None}
    return {"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", "text_config": text, "vision_config": {"model_type": "gemma3n_vision"},
            "audio_config": {"model_type": "gemma3n_audio"}, "audio_soft_tokens_per_image": 188, "vision_soft_tokens_per_image": 256,
            "image_token_id": 28, "audio_token_id": 27, "boi_token_id": 29, "eoi_token_id": 30, "boa_token_id": 25, "eoa_token_id": 26}


def gemma4_multimodal(config):
    text = dict(config)
    text.pop("architectures")
    return {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "text_config": text, "vision_config": {"model_type": "gemma4_vision"},
            "audio_config": None, "image_token_id": 28, "boi_token_id": 29, "eoi_token_id": 30, "tie_word_embeddings": True}


def beside_sound(tensors):
    """Names as in the files of Gemma 4, with a tensor of each of the models beside it."""
    tensors = {name.replace("model.", "model.language_model.", 1): x for name, x in tensors.items() if name != "lm_head.weight"}
    for name in ("vision_tower.norm.bias", "embed_vision.embedding_projection.weight", "audio_tower.norm.bias", "embed_audio.embedding_projection.weight"):
        tensors["model." + name] = torch.zeros(3)
    return tensors


def qwen_multimodal(config):
    text = {**config, "tie_word_embeddings": False, "full_attention_interval": 2, "attn_output_gate": True,
            "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}
    text.pop("architectures")
    text.pop("layer_types")
    return {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "text_config": text,
            "tie_word_embeddings": config["tie_word_embeddings"], "vision_config": {"model_type": "qwen3_5"},
            "image_token_id": 28, "video_token_id": 29, "vision_start_token_id": 27, "vision_end_token_id": 26}


def bare_gpt2(tensors):
    """Names as in the file of openai-community/gpt2, with the buffers that older versions stored."""
    tensors = {name.removeprefix("transformer."): x for name, x in tensors.items() if name != "lm_head.weight"}
    for layer in range(2):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 64, 64).tril()[:, :, :5, :5].contiguous()
        tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    return tensors


def before_more_tokens(tensors):
    """With a layer that predicts the token after the next, which is not read."""
    tensors["model.layers.2.eh_proj.weight"], tensors["model.layers.2.mlp.down_proj.weight"] = torch.zeros(2, 4), torch.zeros(3)
    return tensors


def beside_images(tensors):
    """Names as in the files of Gemma 3 with an image encoder, of which two tensors are included."""
    tensors = {"language_" + name.replace("model.", "model.model.", 1): x for name, x in tensors.items()}
    tensors["vision_tower.vision_model.post_layernorm.bias"] = torch.zeros(3)
    tensors["multi_modal_projector.mm_soft_emb_norm.weight"] = torch.zeros(5)
    return tensors


def beside_vision(tensors):
    """Names as in the files of Qwen3.5, with a tensor of the image model and one of the layer that predicts further tokens."""
    tensors = {name.replace("model.", "model.language_model.", 1): x for name, x in tensors.items() if name != "lm_head.weight"}
    tensors["model.visual.merger.norm.bias"] = torch.zeros(3)
    tensors["mtp.norm.weight"] = torch.zeros(5)
    return tensors


GPT2 = dict(n_embd=12, n_layer=2, n_head=3, n_positions=64, vocab_size=31, bos_token_id=30, eos_token_id=30)
GEMMA = dict(GROUPED, max_position_embeddings=96)
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 48, **WAVES}
LONG = {"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.5, 1.9], "long_factor": [1.0, 2.5, 3.0, 4.5, 7.0],
        "original_max_position_embeddings": 80, "factor": 1.5, **WAVES}
PLAIN = {"rope_type": "default", "rope_theta": 1e6}
LATENT_TYPES = "deepseek_v2", "deepseek_v3", "minicpm3"
LATENT = dict(SMALL, num_key_value_heads=4, kv_lora_rank=9, q_lora_rank=7, qk_nope_head_dim=5, qk_rope_head_dim=6, v_head_dim=3, max_position_embeddings=96)
EXPERTS = dict(moe_intermediate_size=9, n_routed_experts=6, num_experts_per_tok=2)
MODERN = {"full_attention": dict(PLAIN), "sliding_attention": {"rope_type": "default", **WAVES}}
IDS = dict(bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
MAMBA = dict(mamba_n_heads=6, mamba_n_groups=2, mamba_d_state=5, mamba_d_conv=3, mamba_chunk_size=4)
FACTORS = dict(lm_head_multiplier=0.7, embedding_multiplier=1.3, mlp_multipliers=[0.8, 1.2], key_multiplier=1.4,
               attention_out_multiplier=0.9, attention_in_multiplier=1.1, ssm_multipliers=[0.9, 1.1, 1.2, 0.8, 0.7],
               ssm_in_multiplier=1.25, ssm_out_multiplier=0.85)
DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6, linear_value_head_dim=5)
HYBRID = dict(SMALL, **DELTA, num_hidden_layers=4, num_key_value_heads=2, max_position_embeddings=96)
HYBRIDS = ["linear_attention", "full_attention"]
ALTERNATING = ["sliding_attention", "full_attention"]
THREE = dict(GROUPED, num_hidden_layers=3, max_position_embeddings=96)
STREAMS = dict(hidden_size_per_layer_input=5, vocab_size_per_layer_input=31, laurel_rank=3)
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, **WAVES}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32, **WAVES}
CASES = {
    "gpt2": Case(GPT2Config(**GPT2), torch.float32),
    "gpt2_bare": Case(
        GPT2Config(**GPT2, n_inner=23, activation_function="relu", layer_norm_epsilon=1e-3,
                   scale_attn_by_inverse_layer_idx=True),
        names=bare_gpt2, shards=2),
    "gpt2_unscaled": Case(
        GPT2Config(**GPT2, scale_attn_weights=False, activation_function="gelu", tie_word_embeddings=False,
                   reorder_and_upcast_attn=True),
        torch.float16),
    "llama2": Case(llama(num_key_value_heads=4, head_dim=None, hidden_size=24), torch.float16, rewrite=before_v5),
    "llama3": Case(llama(LLAMA3, tie_word_embeddings=True, eos_token_id=[2, 7]), rewrite=before_v5, shards=3),
    "smollm2": Case(
        llama({"rope_type": "default", "rope_theta": 1e5}, tie_word_embeddings=True),
        names=lambda t: {**t, "lm_head.weight": t["model.embed_tokens.weight"].clone()}),
    "llama_linear": Case(waves({"rope_type": "linear", "factor": 2.5, **WAVES}), rewrite=oldest),
    "llama_dynamic": Case(waves(DYNAMIC), rewrite=oldest),
    "llama_dynamic_long": Case(waves(DYNAMIC, max_position_embeddings=13), tokens=19, length=19, generates=False),
    "llama_yarn": Case(waves(YARN)),
    "llama_yarn_settings": Case(
        waves({**YARN, "mscale": 0.7, "mscale_all_dim": 0.4, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False}),
        rewrite=before_v5),
    "llama_yarn_attention": Case(waves({**YARN, "attention_factor": 1.3, "beta_fast": 5})),
    "llama_longrope": Case(waves(LONG), length=80, rewrite=before_v5),
    "llama_longrope_long": Case(
        waves({**LONG, "original_max_position_embeddings": 13}), tokens=19, length=19, generates=False),
    "llama_biases": Case(
        llama(attention_bias=True, mlp_bias=True, hidden_act="gelu_pytorch_tanh", rms_norm_eps=1e-3), shards=2),
    "mistral": Case(MistralConfig(**GROUPED, max_position_embeddings=96, sliding_window=5)),
    "mistral3": Case(
        MistralConfig(**GROUPED, max_position_embeddings=96, sliding_window=None, rope_parameters=dict(PLAIN)), rewrite=mistral3,
        names=lambda t: {"language_" + name.replace("model.", "model.model.", 1) if name.startswith("model.") else "language_model." + name: x for name, x in t.items()}),
    "mistral3_ministral": Case(
        Ministral3Config(**{**GROUPED, "num_hidden_layers": 1}, max_position_embeddings=96, sliding_window=None, tie_word_embeddings=True,
                         rope_parameters={**YARN, "original_max_position_embeddings": 5, "factor": 1.5, "llama_4_scaling_beta": 0.3, "mscale": 1.0, "mscale_all_dim": 0.5}),
        rewrite=mistral3, names=beside_pixtral),
    "mistral_full": Case(
        MistralConfig(**{**GROUPED, "hidden_size": 24, "head_dim": None}, max_position_embeddings=96,
                      sliding_window=None, rope_parameters=dict(PLAIN)),
        rewrite=before_v5),
    "ministral3": Case(
        Ministral3Config(**GROUPED, max_position_embeddings=96, sliding_window=9, tie_word_embeddings=True,
                         rope_parameters={**YARN, "original_max_position_embeddings": 5, "factor": 1.5, "llama_4_scaling_beta": 0.3, "mscale": 1.0, "mscale_all_dim": 0.5})),
    "diffllama": Case(DiffLlamaConfig(**{**SMALL, "num_attention_heads": 8, "head_dim": 4}, num_key_value_heads=4, max_position_embeddings=96, rope_parameters=dict(PLAIN))),
    "diffllama_biases": Case(
        DiffLlamaConfig(**{**SMALL, "hidden_size": 24}, max_position_embeddings=96, attention_bias=True, rms_norm_eps=1e-3, tie_word_embeddings=True)),
    "qwen2": Case(
        Qwen2Config(**{**SMALL, "hidden_size": 24, "num_attention_heads": 6}, num_key_value_heads=3,
                    max_position_embeddings=96, rope_parameters=dict(PLAIN)),
        rewrite=before_v5),
    "qwen2_window": Case(
        Qwen2Config(**THREE, use_sliding_window=True, sliding_window=4, max_window_layers=1, tie_word_embeddings=True),
        rewrite=before_v5),
    "qwen2_types": Case(
        Qwen2Config(**THREE, use_sliding_window=True, sliding_window=4, layer_types=[*ALTERNATING, ALTERNATING[0]])),
    "qwen3": Case(
        Qwen3Config(**GROUPED, max_position_embeddings=96, tie_word_embeddings=True, rope_parameters=dict(PLAIN))),
    "qwen3_5": Case(Qwen3_5TextConfig(**HYBRID, head_dim=8)),
    "qwen3_5_settings": Case(
        Qwen3_5TextConfig(**{**HYBRID, "num_hidden_layers": 2, "linear_num_value_heads": 2}, head_dim=12, attention_bias=True,
                          hidden_act="gelu", layer_types=HYBRIDS[::-1], linear_conv_kernel_dim=2, rms_norm_eps=1e-3,
                          rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.5, "mrope_interleaved": True,
                                           "mrope_section": [1, 1, 1], **WAVES}),
        shards=2),
    "qwen3_5_multimodal": Case(
        Qwen3_5TextConfig(**{**HYBRID, "num_hidden_layers": 2}, head_dim=8, layer_types=HYBRIDS, tie_word_embeddings=True),
        rewrite=qwen_multimodal, names=beside_vision),
    "qwen3_bias": Case(
        Qwen3Config(**GROUPED, max_position_embeddings=96, attention_bias=True, use_sliding_window=True,
                    sliding_window=4, max_window_layers=1, rope_parameters=dict(YARN)),
        rewrite=before_v5),
    "gemma": Case(GemmaConfig(**{**GEMMA, "num_key_value_heads": 1}), rewrite=before_v5),
    "gemma2": Case(
        Gemma2Config(**THREE, query_pre_attn_scalar=7, sliding_window=4, attn_logit_softcapping=2.0,
                     final_logit_softcapping=5.0),
        rewrite=before_v5),
    "gemma2_plain": Case(
        Gemma2Config(**GEMMA, query_pre_attn_scalar=10, attn_logit_softcapping=None, final_logit_softcapping=None,
                     attention_bias=True, layer_types=ALTERNATING[::-1], sliding_window=6)),
    "gemma3": Case(
        Gemma3TextConfig(**THREE, query_pre_attn_scalar=7, sliding_window=4, sliding_window_pattern=2,
                         final_logit_softcapping=4.0,
                         rope_parameters={"full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 100.0},
                                          "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})),
    "gemma3_pattern": Case(
        Gemma3TextConfig(**THREE, query_pre_attn_scalar=10, sliding_window=5, sliding_window_pattern=3,
                         rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}),
        rewrite=gemma3_before_v5),
    "gemma3n": Case(
        Gemma3nTextConfig(**{**GEMMA, "num_hidden_layers": 3, "head_dim": 6, "intermediate_size": [7, 9, 7]}, layer_types=[*ALTERNATING, ALTERNATING[1]], num_kv_shared_layers=1, sliding_window=4, pad_token_id=None,
                          **{**STREAMS, "vocab_size_per_layer_input": 29}, altup_num_inputs=3, activation_sparsity_pattern=[0.6, 0.3, 0.0], final_logit_softcapping=5.0,
                          rope_parameters={"full_attention": {"rope_type": "default", **WAVES}, "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})),
    "gemma3n_multimodal": Case(
        Gemma3nTextConfig(**{**GEMMA, "head_dim": 6, "intermediate_size": 7}, layer_types=ALTERNATING, num_kv_shared_layers=0, sliding_window=5, pad_token_id=None, **STREAMS,
                          altup_num_inputs=2, altup_active_idx=1, altup_correct_scale=False, attention_bias=True,
                          rope_parameters={"full_attention": {"rope_type": "default", **WAVES}, "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}),
        rewrite=gemma3n_multimodal, names=beside_sound),
    "gemma4_experts": Case(
        Gemma4TextConfig(**{**GEMMA, "head_dim": 6, "intermediate_size": 7}, layer_types=ALTERNATING, sliding_window=4, hidden_size_per_layer_input=0, global_head_dim=8,
                         enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=9,
                         rope_parameters={"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, **WAVES},
                                          "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})),
    "gemma4": Case(
        Gemma4TextConfig(**{**GEMMA, "num_hidden_layers": 5, "head_dim": 6, "intermediate_size": 7}, layer_types=[*ALTERNATING * 2, ALTERNATING[1]], num_kv_shared_layers=3, sliding_window=3,
                         use_double_wide_mlp=True, hidden_size_per_layer_input=5, vocab_size_per_layer_input=31, final_logit_softcapping=5.0, global_head_dim=8,
                         rope_parameters={"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, **WAVES},
                                          "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})),
    "gemma4_multimodal": Case(
        Gemma4TextConfig(**{**GEMMA, "head_dim": 6, "intermediate_size": 7}, layer_types=ALTERNATING, sliding_window=5, pad_token_id=None, hidden_size_per_layer_input=0, global_head_dim=8,
                         rope_parameters={"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, **WAVES},
                                          "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}),
        rewrite=gemma4_multimodal, names=beside_sound),
    "gemma4_equal": Case(
        Gemma4TextConfig(**{**THREE, "head_dim": 6, "intermediate_size": 7}, attention_k_eq_v=True, num_global_key_value_heads=1, global_head_dim=8, attention_bias=True,
                         hidden_size_per_layer_input=0, sliding_window=4, layer_types=[*ALTERNATING, ALTERNATING[1]], rms_norm_eps=1e-3,
                         rope_parameters={"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, **WAVES},
                                          "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}),
        rewrite=gemma4_as_published),
    "gpt_neox": Case(
        GPTNeoXConfig(**{**SMALL, "hidden_size": 32}, max_position_embeddings=96),
        names=lambda t: {name.replace("lm_head", "embed_out"): x for name, x in t.items()}, rewrite=gpt_neox_before_v5),
    "gpt_neox_sequential": Case(
        GPTNeoXConfig(**{**SMALL, "hidden_size": 32}, max_position_embeddings=96, use_parallel_residual=False,
                      attention_bias=False, hidden_act="gelu_new",
                      rope_parameters={"rope_type": "default", "partial_rotary_factor": 1.0, **WAVES})),
    "granite": Case(
        GraniteConfig(**GEMMA, embedding_multiplier=1.5, logits_scaling=0.7, residual_multiplier=0.6,
                      attention_multiplier=0.25, tie_word_embeddings=True)),
    "granite_biases": Case(
        GraniteConfig(**GEMMA, attention_bias=True, mlp_bias=True, rope_parameters=dict(PLAIN)), rewrite=before_v5),
    "granite_hybrid": Case(
        GraniteMoeHybridConfig(**{**GROUPED, "hidden_size": 24}, **MAMBA, num_local_experts=0, shared_intermediate_size=13, max_position_embeddings=96,
                               layer_types=["mamba", "attention"], embedding_multiplier=1.5, logits_scaling=0.7,
                               residual_multiplier=0.6, attention_multiplier=0.25, tie_word_embeddings=True)),
    "granite_experts": Case(
        GraniteMoeHybridConfig(**{**GROUPED, "hidden_size": 24}, **MAMBA, num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=13, max_position_embeddings=96,
                               layer_types=["mamba", "attention"], embedding_multiplier=1.5, residual_multiplier=0.6, attention_multiplier=0.25)),
    "granite_attention": Case(
        GraniteMoeHybridConfig(**{**SMALL, "hidden_size": 24}, mamba_n_heads=6, num_local_experts=0, shared_intermediate_size=13, max_position_embeddings=96,
                               position_embedding_type="rope", layer_types=["attention", "attention"], attention_bias=True,
                               rope_parameters=dict(PLAIN))),
    "falcon_h1": Case(
        FalconH1Config(**GROUPED, **MAMBA, mamba_d_ssm=18, max_position_embeddings=96, **FACTORS)),
    "falcon_h1_norm": Case(
        FalconH1Config(**{**GROUPED, "hidden_size": 24}, **{**MAMBA, "mamba_n_heads": 4}, max_position_embeddings=96, mamba_d_ssm=None, mamba_rms_norm=True, mamba_norm_before_gate=False,
                       mamba_proj_bias=True, projectors_bias=True, attention_bias=True, mlp_bias=True, mamba_conv_bias=False, tie_word_embeddings=True)),
    "lfm2": Case(
        Lfm2Config(**{**SMALL, "hidden_size": 24, "num_hidden_layers": 3}, num_key_value_heads=2, max_position_embeddings=96,
                   layer_types=["conv", "full_attention", "conv"], block_multiple_of=4, block_ffn_dim_multiplier=1.5, norm_eps=1e-3)),
    "lfm2_places": Case(
        Lfm2Config(**{**SMALL, "hidden_size": 24}, num_key_value_heads=4, max_position_embeddings=96, full_attn_idxs=[1],
                   conv_bias=True, conv_L_cache=4, block_auto_adjust_ff_dim=False, tie_word_embeddings=False,
                   rope_parameters=dict(PLAIN)),
        rewrite=lfm2_as_published),
    "mamba2": Case(
        Mamba2Config(hidden_size=12, num_hidden_layers=2, num_heads=6, head_dim=4, n_groups=2, state_size=5, vocab_size=31,
                     conv_kernel=3, layer_norm_epsilon=1e-3, pad_token_id=0),
        rewrite=with_infinity),
    "mamba2_biases": Case(
        Mamba2Config(hidden_size=8, num_hidden_layers=2, num_heads=3, head_dim=8, n_groups=1, state_size=6, vocab_size=31, expand=3,
                     use_bias=True, use_conv_bias=False, tie_word_embeddings=True, chunk_size=4, pad_token_id=0)),
    "mixtral": Case(MixtralConfig(**{**SMALL, "hidden_size": 24}, num_key_value_heads=2, max_position_embeddings=96,
                                  num_local_experts=5, num_experts_per_tok=2)),
    "qwen3_moe": Case(
        Qwen3MoeConfig(**THREE, moe_intermediate_size=9, num_experts=4, num_experts_per_tok=3, mlp_only_layers=[1])),
    "qwen3_moe_normed": Case(
        Qwen3MoeConfig(**GEMMA, moe_intermediate_size=9, num_experts=6, num_experts_per_tok=2, norm_topk_prob=True,
                       decoder_sparse_step=2)),
    "modernbert": Case(
        ModernBertDecoderConfig(**{**SMALL, "hidden_size": 24}, max_position_embeddings=96, local_attention=9, pad_token_id=0,
                                rope_parameters=MODERN, **IDS)),
    "modernbert_biases": Case(
        ModernBertDecoderConfig(**{**SMALL, "hidden_size": 24}, max_position_embeddings=96, local_attention=6, pad_token_id=0,
                                norm_bias=True, attention_bias=True, classifier_bias=True, classifier_activation="relu",
                                hidden_activation="silu", decoder_bias=False, tie_word_embeddings=False, norm_eps=1e-3,
                                layer_types=["sliding_attention", "full_attention"], rope_parameters=MODERN, **IDS),
        rewrite=modernbert_before_v5),
    "olmo2": Case(Olmo2Config(**{**SMALL, "hidden_size": 24}, num_key_value_heads=2, max_position_embeddings=96)),
    "olmo3": Case(
        Olmo3Config(**{**SMALL, "hidden_size": 24, "num_hidden_layers": 4}, num_key_value_heads=2, sliding_window=4,
                    max_position_embeddings=96, attention_bias=True,
                    rope_parameters={"full_attention": dict(YARN), "sliding_attention": {"rope_type": "default", **WAVES}})),
    "olmo_hybrid": Case(OlmoHybridConfig(**{**HYBRID, "hidden_size": 24}, pad_token_id=0, eos_token_id=1,
                                         rope_parameters={"rope_type": "default", "rope_theta": None})),
    "olmo_hybrid_rope": Case(
        OlmoHybridConfig(**{**HYBRID, "hidden_size": 24, "num_hidden_layers": 2, "linear_num_value_heads": 2}, pad_token_id=0,
                         eos_token_id=1, layer_types=HYBRIDS[::-1], linear_allow_neg_eigval=False, attention_bias=True,
                         linear_conv_kernel_dim=3, rms_norm_eps=1e-3, rope_parameters={"rope_type": "default", **WAVES})),
    "phi3": Case(
        Phi3Config(**{**SMALL, "hidden_size": 24}, num_key_value_heads=2, max_position_embeddings=96, pad_token_id=0,
                   sliding_window=7, rope_parameters=dict(PLAIN))),
    "phi3_part": Case(
        Phi3Config(**{**SMALL, "hidden_size": 32}, num_key_value_heads=2, max_position_embeddings=96, pad_token_id=0,
                   original_max_position_embeddings=80, tie_word_embeddings=True,
                   rope_parameters={"rope_type": "longrope", "short_factor": [1.0, 1.1], "long_factor": [2.0, 3.0],
                                    "partial_rotary_factor": 0.5, **WAVES}),
        length=80),
    "smollm3": Case(SmolLM3Config(**{**SMALL, "hidden_size": 24, "num_hidden_layers": 4}, num_key_value_heads=2,
                                  max_position_embeddings=96, pad_token_id=0)),
    "smollm3_window": Case(
        SmolLM3Config(**{**SMALL, "hidden_size": 24}, num_key_value_heads=2, max_position_embeddings=96, pad_token_id=0,
                      no_rope_layers=[0, 1], use_sliding_window=True, sliding_window=4, attention_bias=True, mlp_bias=True,
                      tie_word_embeddings=False, rope_parameters=dict(PLAIN)),
        rewrite=before_v5),
    "starcoder2": Case(
        Starcoder2Config(**{**SMALL, "hidden_size": 24}, num_key_value_heads=2, max_position_embeddings=96,
                         sliding_window=5)),
    "starcoder2_plain": Case(
        Starcoder2Config(**{**SMALL, "hidden_size": 24}, num_key_value_heads=2, max_position_embeddings=96, use_bias=False,
                         hidden_act="gelu", tie_word_embeddings=False)),
    "deepseek_v2": Case(
        DeepseekV2Config(**{**LATENT, "qk_nope_head_dim": 4, "kv_lora_rank": 8}, **EXPERTS, n_group=3, topk_group=2, topk_method="group_limited_greedy", first_k_dense_replace=1, rms_norm_eps=1e-3, routed_scaling_factor=1.7,
                         mlp_bias=True, rope_parameters={**YARN, "mscale": 0.7, "mscale_all_dim": 0.8})),
    "deepseek_v2_greedy": Case(
        DeepseekV2Config(**{**LATENT, "qk_nope_head_dim": 4, "kv_lora_rank": 8, "q_lora_rank": None}, **EXPERTS, n_shared_experts=1, attention_bias=True, tie_word_embeddings=True, rope_parameters=dict(PLAIN)),
        rewrite=before_v5),
    "deepseek_v3": Case(
        DeepseekV3Config(**LATENT, **EXPERTS, n_group=3, topk_group=2, first_k_dense_replace=1, rms_norm_eps=1e-3,
                         rope_parameters={**YARN, "mscale": 0.7, "mscale_all_dim": 0.8}),
        names=before_more_tokens),
    "deepseek_v3_whole": Case(
        DeepseekV3Config(**{**LATENT, "q_lora_rank": None}, **EXPERTS, n_group=1, topk_group=1, first_k_dense_replace=0, n_shared_experts=2,
                         rope_interleave=False, attention_bias=True, norm_topk_prob=False, routed_scaling_factor=0.8, tie_word_embeddings=True,
                         rope_parameters=dict(PLAIN)),
        rewrite=before_v5),
    "minicpm3": Case(
        MiniCPM3Config(**{**LATENT, "v_head_dim": None}, scale_emb=1.5, scale_depth=1.3, dim_model_base=9, rms_norm_eps=1e-3,
                       rope_parameters={"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.3], "long_factor": [2.0, 3.0, 4.0],
                                        "original_max_position_embeddings": 80, **WAVES}),
        length=80),
    "minicpm3_whole": Case(
        MiniCPM3Config(**{**LATENT, "q_lora_rank": None}, scale_emb=1, scale_depth=None, dim_model_base=None, tie_word_embeddings=False,
                       attention_bias=True, mlp_bias=True, rope_parameters=dict(PLAIN)),
        rewrite=before_v5),
    "gemma3_multimodal": Case(
        Gemma3TextConfig(**GEMMA, query_pre_attn_scalar=10, sliding_window=5, layer_types=ALTERNATING),
        rewrite=multimodal, names=beside_images),
}


def olmo_parts(config, name, x):
    """The tensors of the Hub for a parameter of OLMo Hybrid. Files with positions have the names of transformers."""
    if config.rope_parameters["rope_theta"] is not None:
        return [(name, x)]
    name = name.replace("input_layernorm", "attention_layer_norm").replace("post_attention_layernorm", "feedforward_layer_norm")
    if "conv1d" not in name:
        return [(name, x)]
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    return [(name.replace("conv1d", c + "_conv1d"), y) for c, y in zip("qkv", x.split([keys, keys, len(x) - 2 * keys]))]


def parts(config, name, x):
    """The tensors of the Hub for a parameter: transformers 5 stacks those of experts."""
    kind = config.model_type
    if kind == "olmo_hybrid":
        return olmo_parts(config, name, x)
    if kind == "granitemoehybrid" and "block_sparse_moe" in name:
        for a, b in (("router.weight", "router.layer.weight"), ("experts.gate_up_proj", "input_linear.weight"), ("experts.down_proj", "output_linear.weight")):
            name = name.replace(a, b)
        return [(name, x)]
    if "mlp.experts." not in name:
        return [(name.replace("mlp.gate.", "block_sparse_moe.gate."), x)] if kind == "mixtral" else [(name, x)]
    at, _, of = name.rpartition(".")
    at, maps = (at.replace("mlp.", "block_sparse_moe."), "w1 w3 w2") if kind == "mixtral" else (at, "gate_proj up_proj down_proj")
    gate, up, down = maps.split()
    if of == "down_proj":
        return [(f"{at}.{n}.{down}.weight", y) for n, y in enumerate(x)]
    return [(f"{at}.{n}.{m}.weight", z) for n, y in enumerate(x) for m, z in zip((gate, up), y.chunk(2))]


@contextlib.contextmanager
def precision(dtype):
    """A context in which everything that a model casts to float32 (norms and angles) is cast to dtype instead."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with patch.object(torch, "float32", dtype), patch.object(torch, "float", dtype), \
                patch.object(torch.Tensor, "float", lambda x: x.to(dtype)):
            yield
    finally:
        torch.set_default_dtype(before)


def draw(name, shape, seed, gemma):
    """Random weights, large enough that attention is not uniform. Norms and biases are also random."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    is_norm = "norm" in name or ".ln_" in name
    if name.endswith("A_log"):  # so that states keep something
        return 0.4 * x - 1.5
    if "conv1d" in name:
        return x
    if gemma == "gemma4" and name.endswith(("q_norm.weight", "k_norm.weight")):  # scores are products of unit vectors and these
        return 0.6 + 0.3 * x
    if is_norm and name.endswith("weight") or name.endswith(("layer_scalar", "_scale", ".scale")):
        return 0.4 * x if gemma and gemma != "gemma4" and "linear_attn" not in name else 1 + 0.4 * x
    if len(shape) == 1:
        return 0.4 * x
    # Embeddings are small compared with the layers' outputs; otherwise, with tied embeddings, each token follows itself.
    if "embed_tokens" in name:
        return (0.15 if gemma in ("gemma", "gemma4") else 0.4) * x
    if "wte" in name or "wpe" in name or "tok_embeddings" in name:
        return 0.4 * x
    if "_b_proj" in name:  # the second of two maps
        return x / shape[1] ** 0.5
    fan_in = shape[0] if "c_" in name else shape[1]  # Conv1D is [in out]
    return 2 * x / fan_in**0.5


def build(case, weights, dtype):
    with precision(dtype):
        model = AutoModelForCausalLM.from_config(case.config, attn_implementation="eager", experts_implementation="eager", dtype=dtype)
        model.load_state_dict({name: x.to(dtype) for name, x in weights.items()}, strict=False)
        model.tie_weights()
        # Buffers are created with the model, some of them with a fixed type.
        assert all(b.dtype == dtype for _, b in model.named_buffers() if b.is_floating_point()), case.config.model_type
    return model.eval()


@contextlib.contextmanager
def recurrence(model, weights):
    """A context in which linear attention is the recurrence, also where transformers computes chunks. weights gets the weights
    of each call, [B H L L]: the outputs for values that are unit vectors."""
    module = sys.modules[type(model).__module__]
    rule = getattr(module, "torch_recurrent_gated_delta_rule", None)

    def each(query, key, value, **more):
        with torch.no_grad():
            b, n, heads, _ = value.shape
            weights.append(rule(query, key, torch.eye(n)[:, None].expand(b, n, heads, n), **more)[0].transpose(1, 2))
        return rule(query, key, value, **more)

    with patch.object(module, "torch_chunk_gated_delta_rule", each) if rule else contextlib.nullcontext():
        yield


def generate(model, ids, dtype):
    """Returns the generated tokens, and the smallest distance of a token's logit from the second best."""
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = None
    with precision(dtype), recurrence(model, []), torch.no_grad():
        g = model.generate(ids[None], attention_mask=torch.ones_like(ids[None]), do_sample=False, use_cache=True,
                           max_new_tokens=STEPS, output_logits=True, return_dict_in_generate=True)
    best = torch.stack(g.logits)[:, 0].topk(2).values
    return g.sequences[0, len(ids):], (best[:, 0] - best[:, 1]).min().item()


def run(model, ids, dtype):
    """Returns all results except the tokens, in one precision."""
    out, linear = {}, []
    with precision(dtype), recurrence(model, linear):
        final = []
        if model.config.model_type == "gemma3n_text":
            model.model.norm.register_forward_hook(lambda _, x, y: final.append(y))
        y = model(ids[None], output_hidden_states=True, output_attentions=True, use_cache=False)
        out["want.logits"] = y.logits[0]
        states = y.hidden_states
        if model.config.model_type == "mamba2":  # which has no embeddings, and the last layer with and without the norm
            states = (model.get_input_embeddings()(ids[None]), *states[:-2], states[-1])
        if model.config.model_type == "gemma3n_text":  # streams, side by side; the last is before the norm
            states = [x.permute(1, 2, 0, 3).flatten(2) for x in states[:-1]] + [final[0]]
        for n, x in enumerate(states):
            out[f"want.hidden.{n}"] = x[0]
        softmax = iter(getattr(y, "attentions", None) or ())
        for n, kind in enumerate(getattr(model.config, "layer_types", None) or ["full_attention"] * model.config.num_hidden_layers):
            if kind == "linear_attention" and linear:
                out[f"want.weights.{n}"] = linear.pop(0)[0]
            elif kind not in ("conv", "linear_attention"):
                out[f"want.weights.{n}"] = next(softmax)[0]
            if model.config.model_type == "diffllama":  # the difference that the layer applies
                one, two = out[f"want.weights.{n}"].chunk(2)
                a = model.model.layers[n].self_attn
                scale = (a.lambda_q1 @ a.lambda_k1).exp() - (a.lambda_q2 @ a.lambda_k2).exp() + a.lambda_init
                out[f"want.weights.{n}"] = one - scale * two
        assert not linear
        F.cross_entropy(y.logits[0, :-1], ids[1:]).backward()
        for name, p in model.named_parameters():
            if p.grad is None:  # AltUp without altup_correct_scale
                continue
            for part, g in parts(model.config, name, p.grad):
                g = g.flatten()
                direction = torch.cos(1 + torch.arange(len(g), dtype=torch.float64)).to(dtype)
                out["grad." + part] = torch.stack([g @ direction, g.norm()])
    return {name: x.detach() for name, x in out.items()}


def absorbed(module, query, key, value, mask, scaling, **_):
    """Latent attention in the form that attn computes: of the vectors in the cache, without keys and values of heads."""
    n, w = module.qk_nope_head_dim, module.kv_b_proj.weight.view(module.num_heads, -1, module.kv_lora_rank)
    query = torch.cat((query[..., :n] @ w[:, :n], query[..., n:]), -1)
    weights = (query @ key.transpose(2, 3) * scaling + mask).softmax(-1)
    return (weights @ value @ w[:, n:].transpose(1, 2)).transpose(1, 2), weights


@contextlib.contextmanager
def latent(kind):
    """A context in which models compute latent attention in that form."""
    module = sys.modules[f"transformers.models.{kind}.modeling_{kind}"]
    layer = next(x for name, x in vars(module).items() if name.endswith("Attention") and hasattr(x, "expand_kv"))
    with patch.object(module, "eager_attention_forward", absorbed), \
            patch.object(layer, "expand_kv", lambda _, c, r: (torch.cat((c, r), -1), c)):
        yield


def further(exact, *several):
    """Of several results, those that are furthest from the exact ones."""
    return {name: max((x[name] for x in several), key=lambda x: (y - x.double()).abs().max()) for name, y in exact.items()}


def tensors_of(case, seed):
    """Returns the weights in float64, and in the type of the file."""
    if case.shapes is None:
        model = AutoModelForCausalLM.from_config(case.config)
        case.shapes = {name: p.shape for name, p in model.named_parameters()}
        case.shapes |= {name: x.shape for name, x in model.named_buffers() if name.endswith(("e_score_correction_bias", "layer_scalar"))}
    gemma = next((k for k in ("gemma3n", "gemma4", "gemma", "qwen3_5") if case.config.model_type.startswith(k)), None)  # norms are 1 + weight
    if gemma == "gemma3n":  # whose norms are those of Gemma 4
        gemma = "gemma4"
    stored = {name: draw(name, shape, 1000 * seed + i, gemma).to(case.dtype)
              for i, (name, shape) in enumerate(case.shapes.items())}
    return {name: x.to(torch.float64) for name, x in stored.items()}, stored


def search(name, case):
    """Draws weights until the generated tokens differ from each other and do not depend on rounding."""
    for seed in range(1, 400):
        weights, stored = tensors_of(case, seed)
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(0, case.config.vocab_size, (case.tokens,), generator=generator)
        model = build(case, weights, torch.float64)
        tokens = None
        if case.generates:
            tokens, margin = generate(model, ids, torch.float64)
            if margin < MARGIN or tokens.unique().numel() < VARIOUS:
                continue
        exact = run(build(case, weights, torch.float64), ids, torch.float64)
        rough = run(build(case, weights, torch.float32), ids, torch.float32)
        if case.config.model_type in LATENT_TYPES:
            with latent(case.config.model_type):
                rough = further(exact, rough, run(build(case, weights, torch.float32), ids, torch.float32))
        most = 1.5e-5 if case.config.model_type == "gemma3n_text" else 4e-6
        if case.config.model_type.startswith(("gemma3n", "gemma4")) and any(  # norms of small vectors, which magnify rounding
                (x - rough[key].double()).abs().max() > most * x.abs().max() for key, x in exact.items() if key.startswith("grad.")):
            continue
        if case.generates:
            exact["want.tokens"] = tokens
            rough["want.tokens"] = generate(build(case, weights, torch.float32), ids, torch.float32)[0]
        return stored, ids, exact, rough
    sys.exit(f"{name}: no seed gives tokens that are clear enough")


def write_weights(folder, tensors, shards):
    if shards == 1:
        safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    where = {}
    for n in range(shards):
        file = f"model-{n + 1:05d}-of-{shards:05d}.safetensors"
        part = dict(list(tensors.items())[n::shards])
        safetensors.torch.save_file(part, folder / file, metadata={"format": "pt"})
        where |= dict.fromkeys(part, file)
    size = sum(x.numel() * x.element_size() for x in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(where.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def write(folder, name, case):
    folder.mkdir(parents=True)
    stored, ids, exact, rough = search(name, case)
    config = case.config.to_dict()
    config["architectures"] = [type(AutoModelForCausalLM.from_config(case.config)).__name__]
    config["dtype"] = str(case.dtype).removeprefix("torch.")
    config = case.rewrite(config)
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    stored = {part: y for n, x in stored.items() for part, y in parts(case.config, n, x)}
    write_weights(folder, {n: x.contiguous() for n, x in case.names(stored).items()}, case.shards)

    settings = {"case": name, "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    if case.length:
        settings["length"] = str(case.length)
    tensors = {"in.ids": ids}
    for key, x in exact.items():
        if x.is_floating_point():
            assert torch.isfinite(x).all(), f"{name}: {key} is not finite"
            settings[f"budget.{key}"] = f"{(x - rough[key].double()).abs().max().item():.3g}"
            x = x.to(torch.float32)
        else:
            assert torch.equal(x, rough[key]), f"{name}: {key} depends on the precision"
        tensors[key] = x
    arrays = {key: x.contiguous().numpy() for key, x in tensors.items()}
    (folder / "golden.safetensors").write_bytes(golden.encode(arrays, settings))


def main():
    names = [a for a in sys.argv[1:] if a != "--check"] or CASES
    check = "--check" in sys.argv
    changed = sorted({p.name for p in TARGET.iterdir()} - CASES.keys()) if TARGET.exists() else []
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / name
            write(made, name, CASES[name])
            now = {p.name: p.read_bytes() for p in made.iterdir()}
            there = TARGET / name
            before = {p.name: p.read_bytes() for p in there.iterdir()} if there.exists() else {}
            if golden.same(now, before):
                continue
            changed.append(name)
            if not check:
                shutil.rmtree(there, ignore_errors=True)
                shutil.copytree(made, there)
                print(name, sum(map(len, now.values())), "bytes", flush=True)
    if check and changed:
        sys.exit(f"differ: {' '.join(changed)}")
    print(f"{len(list(names))} models, {len(changed)} changed")


if __name__ == "__main__":
    main()
