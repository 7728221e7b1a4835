"""Runs translators and inputs written by attn's Go tests, for golden.py and check.py."""

import sys
from pathlib import Path

import torch
from safetensors import safe_open
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent))

import attn_torch  # noqa: E402

PAD, EOS = 0, 2


def read(path):
    """Returns the tensors and the metadata of a safetensors file."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}


def run(directory, golden, smoothing, dtype):
    """Returns the logits of the tokens of read, the loss and the gradients, named as in attn's golden files."""
    network = attn_torch.load(directory).to(dtype).eval()
    source, target = golden["in.source"], golden["in.read"]
    logits = network(source, (source != PAD).sum(1), target)
    write = F.pad(target[:, 1:], (0, 1))
    counts = target != PAD
    write[counts & (write == PAD)] = EOS
    logits, write = logits[counts], write[counts]
    loss = F.cross_entropy(logits, write, label_smoothing=smoothing)
    loss.backward()
    results = {"want.logits": logits.detach(), "want.loss": loss.detach()}
    for name, p in network.named_parameters():
        results["grad." + attn_torch.attn_name(name)] = torch.zeros_like(p) if p.grad is None else p.grad
    return results
