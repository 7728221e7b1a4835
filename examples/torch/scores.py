"""Lesson 2 of docs/lessons.md in PyTorch: scores and the masked softmax."""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
queries, keys, size = 7, 11, 16
k = torch.randn(1, 1, keys, size)  # [B H L E]
near = torch.arange(queries) * 3 % keys  # each query is similar to one of the keys
q = torch.randn(1, 1, queries, size) + k[:, :, near]

# lesson: scores with attend
a, b, c = (nn.Linear(n, m, bias=False) for n, m in [(size, 8), (size, 8), (8, 1)])
w = nn.Linear(size, size, bias=False)
scores = {
    "dot: q·k": lambda q, k: q @ k.mT,
    "scaled dot: q·k/√E": lambda q, k: q @ k.mT / math.sqrt(q.shape[-1]),
    "cosine": lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT,
    "Gaussian: −½|q−k|²": lambda q, k: -(q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1) / 2,
    "additive": lambda q, k: c((a(q).unsqueeze(-2) + b(k).unsqueeze(-3)).tanh()).squeeze(-1),
    "bilinear": lambda q, k: q @ w(k).mT,
}
# lesson end


# lesson: attend
def attend(score, q, k, v):
    weights = score(q, k).softmax(-1)  # [B H Lq Lk]
    return weights @ v, weights


for name, score in scores.items():
    out, weights = attend(score, q, k, k)
    print(f"{name}, weight of the matching key: {weights[0, 0, 3, 9]:.2f}")
# lesson end
# Output:
# dot: q·k, weight of the matching key: 1.00
# scaled dot: q·k/√E, weight of the matching key: 0.85
# cosine, weight of the matching key: 0.16
# Gaussian: −½|q−k|², weight of the matching key: 1.00
# additive, weight of the matching key: 0.09
# bilinear, weight of the matching key: 0.09

length, width, heads = 7, 12, 3
layer = nn.MultiheadAttention(width, heads, bias=False, batch_first=True)
x = torch.randn(2, length, width)  # [B L D]


# lesson: lengths
def padded(layer, x, lens):
    padding = torch.arange(x.shape[1]) >= lens[:, None]  # [B L]
    x = x.masked_fill(padding[..., None], 0)  # in PyTorch a weight of 0 times NaN is NaN
    out, weights = layer(x, x, x, key_padding_mask=padding, average_attn_weights=False)
    weights = weights.masked_fill(padding[:, None, :, None], 0)
    return out.masked_fill(padding[..., None], 0), weights


lens = torch.tensor([length, 4])
x[1, lens[1] :] = torch.nan  # padding may contain anything
out, weights = padded(layer, x, lens)
print(list(weights.shape), "on padding", weights[1, :, :, lens[1] :].sum().item())
# lesson end
# Output:
# [2, 3, 7, 7] on padding 0.0
