"""Writes models/testdata/lora/*/: a tiny base model, a LoRA adapter of peft, and what peft merges them into.

A case is the directories base and adapter, as save_pretrained writes them, and merged.safetensors: the weights after
merge_and_unload in float64, and their names in the file of the base.

    pip install -r testdata/lora_requirements.txt
    python testdata/lora.py           write the directories (seconds)
    python testdata/lora.py --check   compare the files with what would be written; exit 1 on a difference
"""

import copy
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["HF_HUB_OFFLINE"] = "1"

import peft
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, logging

from models import normal

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)

TARGET = Path(__file__).resolve().parent.parent / "models" / "testdata" / "lora"


def llama(**more):
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=32, tie_word_embeddings=False, **more))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=16, n_embd=16, n_layer=2, n_head=2))


def bert():
    return BertForSequenceClassification(BertConfig(
        vocab_size=20, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=16,
        num_labels=3))


# name: the base, the settings of LoRA, the type of the base and the limit of the size of its files
CASES = {
    "llama": (llama, dict(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]), torch.float32, None),
    "gpt2": (gpt2, dict(task_type="CAUSAL_LM", r=3, lora_alpha=5, fan_in_fan_out=True, target_modules=["c_attn", "c_proj", "c_fc"]), torch.float32, None),
    "rslora": (llama, dict(
        r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "k_proj", "up_proj"],
        rank_pattern={"layers.1.self_attn.q_proj": 2, "up_proj": 5}, alpha_pattern={r"^model.layers.\d.self_attn.k_proj": 3}), torch.float32, None),
    "saved": (bert, dict(task_type="SEQ_CLS", r=2, lora_alpha=4, target_modules=["query", "dense"]), torch.float32, None),
    "bfloat16": (llama, dict(r=4, lora_alpha=16, target_modules=["v_proj", "down_proj"], modules_to_save=["embed_tokens"]), torch.bfloat16, 6000),
}


def write(name, to):
    make, settings, dtype, most = CASES[name]
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(0.5 * normal(name, key, p.shape))
    model = model.to(dtype)
    model.save_pretrained(to / "base", **({} if most is None else {"max_shard_size": most}))
    tuned = peft.get_peft_model(copy.deepcopy(model), peft.LoraConfig(**settings))
    with torch.no_grad():
        for key, p in tuned.named_parameters():
            if "lora_" in key or "modules_to_save" in key:
                p.copy_(0.5 * normal(name, key, p.shape))
    tuned.peft_config["default"].base_model_name_or_path = f"owner/{name}"
    tuned.save_pretrained(to / "adapter")
    (to / "adapter" / "README.md").unlink()
    config = to / "adapter" / "adapter_config.json"
    settings = json.loads(config.read_text())
    for key, value in settings.items():  # sets have no order
        if key == "target_modules":
            settings[key] = sorted(value)
    config.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")
    merged = tuned.to(torch.float64).merge_and_unload().state_dict()
    save_file({k: v.contiguous() for k, v in merged.items() if k != "lm_head.weight" or make is not gpt2}, to / "merged.safetensors")


def main():
    check = sys.argv[1:] == ["--check"]
    with tempfile.TemporaryDirectory() as temp:
        temp = Path(temp)
        for name in CASES:
            write(name, temp / name)
        if not check:
            shutil.rmtree(TARGET, ignore_errors=True)
            shutil.copytree(temp, TARGET)
            return
        bad = 0
        for path in sorted(p for p in temp.rglob("*") if p.is_file()):
            old = TARGET / path.relative_to(temp)
            if not old.exists() or old.read_bytes() != path.read_bytes():
                print("differs:", old)
                bad = 1
        sys.exit(bad)


if __name__ == "__main__":
    main()
