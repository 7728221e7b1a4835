"""Writes files of torch.save, and the same tensors as safetensors:

- safetensors/testdata/torch.bin and .safetensors: all types, parts of a storage, nested dicts;
- models/testdata/torch_save/: the weights of models/testdata/bert_words (with tied tensors) and bert_shards.

    python testdata/torch_save.py          write the files
    python testdata/torch_save.py --check  compare them with what would be written; exit 1 on a difference
"""

import collections
import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent


def types(folder):
    x = torch.arange(30, dtype=torch.float64).reshape(2, 3, 5) / 7 - 1
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.5, -1.5, 2.0], [1 / 3, -0.0, 7e-5]]))
        layer.bias.copy_(torch.tensor([float("inf"), 1e-42]))
    state = collections.OrderedDict(
        f64=x, f32=x.float(), f16=x.half(), bf16=x.bfloat16(), i64=torch.tensor([-(2**63), 5]), i32=torch.tensor([-3, 7], dtype=torch.int32),
        i16=torch.tensor([-2, 300], dtype=torch.int16), i8=torch.tensor([-128, 1], dtype=torch.int8), u8=torch.tensor([255], dtype=torch.uint8),
        bool=torch.tensor([True, False]), c64=torch.tensor([1 + 2j, -3.5j]), scalar=torch.tensor(0.1), empty=torch.zeros(3, 0, 2),
        one=torch.arange(6.0).reshape(6, 1)[2:5], parameter=layer.weight)
    state["tied"] = state["f32"]
    state["slice"] = state["f32"][1]
    torch.save({"model": state, "layer": layer.state_dict(), "epoch": 3, "rate": 1e-3, "far": 2**40, "none": None,
                "optimizer": {"state": {0: {"step": torch.tensor(2.0)}}, "groups": [{"params": [0], "betas": (0.9, 0.99)}]}}, folder / "torch.bin")
    flat = {f"model.{k}": v for k, v in state.items()} | {f"layer.{k}": v for k, v in layer.state_dict().items()}
    flat["optimizer.state.0.step"] = torch.tensor(2.0)
    save_file({k: v.detach().clone(memory_format=torch.contiguous_format) for k, v in flat.items()}, folder / "torch.safetensors")


def weights(folder):
    models = ROOT / "models" / "testdata"
    state = collections.OrderedDict(load_file(models / "bert_words" / "model.safetensors"))
    state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    state["cls.predictions.decoder.bias"] = state["cls.predictions.bias"]
    state["bert.embeddings.position_ids"] = torch.arange(13).expand((1, -1))
    torch.save(state, folder / "bert_words.bin")
    state = load_file(models / "bert" / "model.safetensors")
    names = list(state)
    index = {}
    for i, part in enumerate([names[:5], names[5:]], 1):
        file = f"pytorch_model-{i:05d}-of-00002.bin"
        torch.save({name: state[name] for name in part}, folder / file)
        index |= {name: file for name in part}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}, indent=1) + "\n")


def main(check):
    wrong = []
    for write, target in (types, ROOT / "safetensors" / "testdata"), (weights, ROOT / "models" / "testdata" / "torch_save"):
        with tempfile.TemporaryDirectory() as scratch:
            write(Path(scratch))
            for file in Path(scratch).iterdir():
                to = target / file.name
                if check:
                    wrong += [] if to.exists() and to.read_bytes() == file.read_bytes() else [to]
                    continue
                target.mkdir(exist_ok=True)
                to.write_bytes(file.read_bytes())
    for file in wrong:
        print(f"{file} differs")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
