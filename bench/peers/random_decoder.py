"""Writes a decoder with random weights, of the shape of one on the Hub, for bench/compare --decoder.

    python random_decoder.py gpt2|qwen2.5-0.5b|qwen3.5-0.8b|lfm2-350m|granite-4.0-h-350m|falcon-h1-0.5b|mamba2-130m DIRECTORY
"""

import sys

import torch
import transformers

SHAPES = {
    "gpt2": ("GPT2Config", dict(initializer_range=0.05)),
    "qwen2.5-0.5b": ("Qwen2Config", dict(
        hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True,
        initializer_range=0.05)),
    "qwen3.5-0.8b": ("Qwen3_5TextConfig", dict(
        hidden_size=1024, intermediate_size=3584, num_hidden_layers=24, num_attention_heads=8, num_key_value_heads=2, head_dim=256,
        linear_num_key_heads=16, linear_num_value_heads=16, vocab_size=248320, tie_word_embeddings=True)),
    "lfm2-350m": ("Lfm2Config", dict(
        hidden_size=1024, intermediate_size=6656, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=8,
        full_attn_idxs=[2, 5, 8, 10, 12, 14])),
    "granite-4.0-h-350m": ("GraniteMoeHybridConfig", dict(
        hidden_size=768, num_hidden_layers=32, num_attention_heads=12, num_key_value_heads=4, num_local_experts=0, vocab_size=100352,
        shared_intermediate_size=2048, mamba_n_heads=48, mamba_d_head=32, mamba_d_state=128, max_position_embeddings=32768,
        layer_types=["linear_attention" if i not in (10, 13, 17, 27) else "full_attention" for i in range(32)], tie_word_embeddings=True)),
    "falcon-h1-0.5b": ("FalconH1Config", dict(
        hidden_size=1024, intermediate_size=2048, num_hidden_layers=36, num_attention_heads=8, num_key_value_heads=2, head_dim=64,
        mamba_d_ssm=1536, mamba_n_heads=24, mamba_d_head=64, mamba_d_state=128, max_position_embeddings=16384, vocab_size=32784)),
    "mamba2-130m": ("Mamba2Config", dict(
        hidden_size=768, num_hidden_layers=24, num_heads=24, head_dim=64, n_groups=1, state_size=128, vocab_size=50288, tie_word_embeddings=True)),
}  # fmt: skip


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in SHAPES:
        sys.exit(__doc__)
    kind, settings = SHAPES[sys.argv[1]]
    torch.manual_seed(1)
    with torch.device("cpu"):
        model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, kind)(**settings), dtype=torch.bfloat16)
    model.save_pretrained(sys.argv[2])


main()
