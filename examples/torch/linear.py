"""Lesson 8 of docs/lessons.md in PyTorch: attention without a softmax."""

import math

import torch
from torch.nn import functional as F

torch.manual_seed(1)
x = 5 * torch.rand(1, 50, 1).sort(1).values  # [B Lk 1]
y = 2 * x.sin() + x**0.8 + 0.5 * torch.randn(1, 50, 1)
at = torch.linspace(0, 5, 101).view(1, 101, 1)  # where the curve is estimated


# lesson: state
def waves(x, p):  # φ: [… 1] to [… 2p+1]
    binomial = torch.tensor([math.comb(2 * p, p - m) / 4**p for m in range(p + 1)])
    angles = torch.arange(1, p + 1) * math.pi * x / 5
    both = torch.stack((angles.cos(), angles.sin()), -1) * (2 * binomial[1:, None]).sqrt()
    return torch.cat((binomial[0].sqrt().expand_as(x), both.flatten(-2)), -1)


def add(sums, k, v):  # S and z are the columns of one matrix
    features = waves(k, len(sums) // 2)
    return sums + torch.outer(features, torch.cat((v, torch.ones(1))))


sums = torch.zeros(21, 2)
for k, v in zip(x[0], y[0], strict=True):
    sums = add(sums, k, v)
read = waves(at, 10) @ sums  # φ(q)ᵀS and φ(q)ᵀz of each place
print(list(sums.shape), list(read.shape))
# lesson end
# Output:
# [21, 2] [1, 101, 2]


# lesson: ExampleAttend_rules
def attend(rule, q, k, v, decay=None, beta=None):  # q, k [B L E], v [B L V], decay, beta [B L]
    if rule == "softmax":
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if rule == "linear":
        q, k = F.elu(q) + 1, F.elu(k) + 1
        v = torch.cat((v, torch.ones_like(v[..., :1])), -1)  # S and z
    else:
        q, k = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    state, out = q.new_zeros(len(q), q.shape[-1], v.shape[-1]), []
    for t in range(q.shape[1]):
        if decay is not None:
            state = decay[:, t, None, None].exp() * state
        u = v[:, t]
        if beta is not None:
            u = beta[:, t, None] * (u - torch.einsum("bev,be->bv", state, k[:, t]))
        state = state + k[:, t, :, None] * u[:, None]
        out.append(torch.einsum("bev,be->bv", state, q[:, t]))
    out = torch.stack(out, 1)
    return out[..., :-1] / out[..., -1:] if rule == "linear" else out / q.shape[-1] ** 0.5


q, k, v = torch.randn(3, 2, 9, 8)
decay, beta = -torch.rand(2, 9), torch.rand(2, 9)
rules = {"softmax": (), "linear": (), "gated": (decay,), "gated delta": (decay, beta)}
for rule, options in rules.items():
    print(rule, list(attend(rule, q, k, v, *options).shape))
# lesson end
# Output:
# softmax [2, 9, 8]
# linear [2, 9, 8]
# gated [2, 9, 8]
# gated delta [2, 9, 8]


# lesson: ExampleAttend_matrix
def matrix(rule, q, k, *options):
    identity = torch.eye(q.shape[1]).expand(len(q), -1, -1)
    return attend(rule, q, k, identity, *options)


for rule, options in rules.items():
    a = matrix(rule, q, k, *options)
    same = torch.allclose(a @ v, attend(rule, q, k, v, *options), atol=1e-5)
    print(f"{rule}: {list(a.shape)}, times v it is the output: {same}, negative: {bool((a < 0).any())}")
# lesson end
# Output:
# softmax: [2, 9, 9], times v it is the output: True, negative: False
# linear: [2, 9, 9], times v it is the output: True, negative: False
# gated: [2, 9, 9], times v it is the output: True, negative: True
# gated delta: [2, 9, 9], times v it is the output: True, negative: True
