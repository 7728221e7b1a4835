"""Writes testdata/torch: state dicts of PyTorch modules, and the modules' results.

NAME.safetensors is the state dict, written by the Python code of docs/pytorch.md. NAME.golden.safetensors contains the
inputs in.*, the results want.* and the gradients grad.* in float64, with budgets as in README.md. The code of
docs/pytorch.md that loads is run on the same files. The Go tests check that attn writes the same bytes.

    python testdata/pytorch.py           write the files
    python testdata/pytorch.py --check   compare the files with what would be written; exit 1 on a difference
"""

import copy
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

# Gives the same bits with every vector unit. Both variables must be set before torch is loaded.
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["ATEN_CPU_CAPABILITY"] = "default"

import numpy as np
import torch
from safetensors.numpy import save
from torch import nn

HERE = Path(__file__).resolve().parent
DOC = HERE.parent / "docs" / "pytorch.md"


def normal(name, *shape, std=1.0):
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return (np.random.Generator(np.random.PCG64(seed)).standard_normal(shape) * std).astype(np.float32)


def x(name, *shape):
    return {"x": normal(name + "/x", *shape)}


def qkv(name, q, k, v):
    return {"q": normal(name + "/q", *q), "k": normal(name + "/k", *k), "v": normal(name + "/v", *v)}


def attention(model, q, k, v):
    out, weights = model(q, k, v, average_attn_weights=False)
    return {"out": out, "weights": weights}


def given_keys(model, q, k, v, **masks):
    """Returns the weights of the given keys, without those that add_bias_kv and add_zero_attn append."""
    out, weights = model(q, k, v, average_attn_weights=False, **masks)
    return {"out": out, "weights": weights[..., : k.shape[1]]}


def masked(model, q, k, v):
    """Causal, the last query at the last key, and keys of which the first sequence has none and the second 6."""
    lq, lk = q.shape[1], k.shape[1]
    hidden = torch.ones(lq, lk, dtype=torch.bool).triu(1 + lk - lq)
    padding = torch.arange(lk) >= torch.tensor([[0], [6]])
    return given_keys(model, q, k, v, attn_mask=hidden, key_padding_mask=padding)


def recurrent(model, x):
    out, state = model(x)
    return {"out": out, "state": state}


def out(model, x):
    return {"out": model(x)}


SHORT, LONG = (2, 5, 15), (2, 7, 15)  # [B L D], three heads of size 5
# name: module, inputs, function that computes the results
CASES = {
    "linear": (nn.Linear(7, 5), x("linear", 2, 3, 7), out),
    "linear_nobias": (nn.Linear(7, 5, bias=False), x("linear_nobias", 2, 3, 7), out),
    "embedding": (nn.Embedding(11, 5), {"ids": np.array([[10, 0, 3], [3, 7, 1]])}, lambda m, ids: {"out": m(ids)}),
    "layernorm": (nn.LayerNorm(7), x("layernorm", 2, 3, 7), out),
    "gru": (nn.GRU(5, 7, batch_first=True), x("gru", 2, 3, 5), recurrent),
    "gru_layers": (
        nn.GRU(5, 7, num_layers=2, bidirectional=True, batch_first=True),
        x("gru_layers", 2, 3, 5),
        recurrent,
    ),
    "mha": (nn.MultiheadAttention(15, 3, batch_first=True), qkv("mha", SHORT, LONG, LONG), attention),
    "mha_nobias": (
        nn.MultiheadAttention(15, 3, bias=False, batch_first=True),
        qkv("mha_nobias", SHORT, LONG, LONG),
        attention,
    ),
    "mha_widths": (
        nn.MultiheadAttention(15, 3, kdim=11, vdim=13, batch_first=True),
        qkv("mha_widths", SHORT, (2, 7, 11), (2, 7, 13)),
        attention,
    ),
    "mha_sequence_first": (
        nn.MultiheadAttention(15, 3),
        qkv("mha_sequence_first", (5, 2, 15), (7, 2, 15), (7, 2, 15)),
        attention,
    ),
    "mha_bias_kv": (
        nn.MultiheadAttention(15, 3, add_bias_kv=True, batch_first=True),
        qkv("mha_bias_kv", SHORT, LONG, LONG),
        given_keys,
    ),
    "mha_zero_attn": (
        nn.MultiheadAttention(15, 3, add_zero_attn=True, batch_first=True),
        qkv("mha_zero_attn", SHORT, LONG, LONG),
        given_keys,
    ),
    "mha_bias_zero_mask": (
        nn.MultiheadAttention(15, 3, add_bias_kv=True, add_zero_attn=True, batch_first=True),
        qkv("mha_bias_zero_mask", SHORT, LONG, LONG),
        masked,
    ),
    "encoder": (nn.TransformerEncoderLayer(15, 3, 19, batch_first=True), x("encoder", *SHORT), out),
    "encoder_norm_first": (
        nn.TransformerEncoderLayer(15, 3, 19, activation="gelu", norm_first=True, batch_first=True),
        x("encoder_norm_first", *SHORT),
        out,
    ),
    "encoder_layers": (
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(15, 3, 19, batch_first=True), 2, nn.LayerNorm(15), enable_nested_tensor=False
        ),
        x("encoder_layers", *SHORT),
        out,
    ),
}


def run(model, compute, inputs, dtype):
    """The results in one precision, and the gradients of inputs, bias_k, bias_v and results times a fixed array."""
    model = copy.deepcopy(model).to(dtype)
    given = {k: torch.from_numpy(v) for k, v in inputs.items()}
    leaves = {k: v.to(dtype).requires_grad_() for k, v in given.items() if v.is_floating_point()}
    results = compute(model, **{**given, **leaves})
    leaves |= {k: p for k, p in model.named_parameters() if k in ("bias_k", "bias_v")}
    wanted = {f"want.{k}": v for k, v in results.items()}
    if leaves:
        dout = torch.from_numpy(normal("dout", *results["out"].shape)).to(dtype)
        grads = torch.autograd.grad(results["out"], list(leaves.values()), dout)
        wanted.update({f"grad.{k}": g for k, g in zip(leaves, grads)})
    return {k: v.detach().numpy() for k, v in wanted.items()}


def snippets():
    """Returns the Python code of the document: the parts that save and load a model."""
    saving, loading = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)
    return saving, loading


def build(name, model, inputs, compute):
    for key, p in model.named_parameters():
        gain = key.endswith("norm.weight") or name == "layernorm" or re.search(r"norm\d\.weight$", key)
        p.data = torch.from_numpy(normal(f"{name}/{key}", *p.shape, std=p.shape[-1] ** -0.5) + (1 if gain else 0))
    model.eval()
    exact, single = (run(model, compute, inputs, dtype) for dtype in (torch.float64, torch.float32))
    saving, loading = snippets()
    exec(saving, {"model": model})
    state = Path("model.safetensors").read_bytes()

    again = copy.deepcopy(model)
    for p in again.parameters():
        p.data.zero_()
    exec(loading, {"model": again})
    for key, value in run(again, compute, inputs, torch.float64).items():
        np.testing.assert_array_equal(value, exact[key])

    stored = {f"in.{k}": v for k, v in inputs.items()}
    if inputs.keys() != {"ids"}:
        stored["in.dout"] = normal("dout", *exact["want.out"].shape)
    stored |= {k: np.ascontiguousarray(v) for k, v in exact.items()}
    budgets = {f"budget.{k}": repr(float(np.abs(single[k] - v).max())) for k, v in exact.items()}
    return {f"{name}.safetensors": state, f"{name}.golden.safetensors": ordered(stored, budgets)}


def ordered(tensors, metadata):
    """Writes a file with sorted metadata: the library's order differs between runs."""
    import json
    import struct

    data = save(tensors)
    size = struct.unpack("<Q", data[:8])[0]
    header = {"__metadata__": dict(sorted(metadata.items())), **json.loads(data[8 : 8 + size])}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def main(check):
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
    target = HERE / "torch"
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, row in CASES.items():
            files |= build(name, *row)
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes", file=sys.stderr)
    target.mkdir(exist_ok=True)
    stale = {p.name for p in target.glob("*.safetensors")} - files.keys()
    if check:
        differ = [n for n, data in files.items() if not (target / n).exists() or (target / n).read_bytes() != data]
        for name in sorted(stale.union(differ)):
            print(f"{name} differs", file=sys.stderr)
        return 1 if differ or stale else 0
    for name in stale:
        (target / name).unlink()
    for name, data in files.items():
        (target / name).write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
