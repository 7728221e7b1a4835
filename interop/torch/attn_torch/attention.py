"""Scores and multi-head attention. Parameters have attn's names and shapes."""

import math
import warnings

import torch
from torch import nn
from torch.nn import functional as F

# A layer whose heads have all been pruned has zero-element tensors.
warnings.filterwarnings("ignore", "Initializing zero-element tensors")


def move(x, device):
    """Copies a tensor from the CPU to a device without waiting for the device."""
    if device.type == "cuda" and not x.is_cuda:
        x = x.pin_memory()
    return x.to(device, non_blocking=True)


def pairs(q, k):
    """Returns all pairs of queries and keys, [... Lq Lk E]."""
    return q.unsqueeze(-2), k.unsqueeze(-3)


def additive(q, k, p):
    q, k = pairs(q @ p.wq.mT, k @ p.wk.mT)
    return torch.tanh(q + k) @ p.wv


def gaussian(q, k, p):
    q, k = pairs(q, k)
    return -((q - k) * p.w).square().sum(-1) / 2


def l1(q, k, p):
    q, k = pairs(q, k)
    return -((q - k) * p.w).abs().sum(-1)


def cosine(q, k, p):
    def unit(x):
        return F.normalize(x, dim=-1, eps=1e-30)

    return p.scale * (unit(q) @ unit(k).mT)


# For each name: the function for scores [... Lq Lk] of queries [... Lq E] and keys [... Lk E], and the parameters'
# shapes.
SCORES = {
    "scaled": (lambda q, k, p: q @ k.mT / math.sqrt(q.shape[-1]), lambda e: {}),
    "dot": (lambda q, k, p: q @ k.mT, lambda e: {}),
    "additive": (additive, lambda e: {"wq": (e, e), "wk": (e, e), "wv": (e,)}),
    "bilinear": (lambda q, k, p: q @ p.w @ k.mT, lambda e: {"w": (e, e)}),
    "scaled-bilinear": (lambda q, k, p: q @ p.w @ k.mT / math.sqrt(q.shape[-1]), lambda e: {"w": (e, e)}),
    "gaussian": (gaussian, lambda e: {"w": (e,)}),
    "cosine": (cosine, lambda e: {"scale": (1,)}),
    "l1": (l1, lambda e: {"w": (e,)}),
}


class Score(nn.Module):
    """A score of SCORES for vectors of the given size. Its parameters are 0 until they are loaded."""

    def __init__(self, name, size):
        super().__init__()
        if name not in SCORES:
            raise ValueError(f"score {name!r}, want one of {', '.join(SCORES)}")
        self.name = name
        self.formula, shapes = SCORES[name]
        for parameter, shape in shapes(size).items():
            setattr(self, parameter, nn.Parameter(torch.zeros(shape)))

    def attend(self, q, k, v, mask=None, dropout=0.0):
        """Returns the mean of v, weighted by the softmax of the scores; keys where the mask is False are hidden."""
        if self.name in ("scaled", "dot"):
            scale = 1.0 if self.name == "dot" else None
            return F.scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale)
        scores = self.formula(q, k, self)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return F.dropout(scores.softmax(-1), dropout) @ v


class MultiHead(nn.Module):
    """attn.MultiHead as translators use it, without the heads that were pruned."""

    def __init__(self, config, layer):
        super().__init__()
        self.size = config.width // config.heads
        self.heads = config.heads - len(config.pruned_heads.get(layer, ()))
        self.dropout = config.dropout
        for name in "q", "k", "v":
            setattr(self, name, nn.Linear(config.width, self.heads * self.size))
        self.out = nn.Linear(self.heads * self.size, config.width)
        if self.heads > 0:
            self.score = Score(config.score, self.size)

    def project(self, x):
        """Returns the keys and values of x [B L D], each [B H L E]."""
        return self.split(self.k(x)), self.split(self.v(x))

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, x, keys_values, mask):
        """Attends from x [B L D]; the mask broadcasts to [B H L Lk]."""
        if self.heads == 0:
            return self.out(x[..., :0])
        keys, values = keys_values
        dropout = self.dropout if self.training else 0.0
        y = self.score.attend(self.split(self.q(x)), keys, values, mask, dropout)
        return self.out(y.transpose(1, 2).flatten(2))
