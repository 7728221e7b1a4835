"""The transformer of package models: the encoder-decoder of Vaswani et al. 2017, with pre-norm."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .attention import MultiHead, move


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.add_module("in", nn.Linear(config.width, config.hidden))
        self.out = nn.Linear(config.hidden, config.width)
        self.dropout = config.dropout

    def forward(self, x):
        return self.out(F.dropout(F.relu(self.get_submodule("in")(x)), self.dropout, self.training))


class Layer(nn.Module):
    """A layer of the encoder or, with cross-attention, of the decoder."""

    def __init__(self, config, name, cross):
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.self = MultiHead(config, name + ".self")
        if cross:
            self.norm3 = nn.LayerNorm(config.width)
            self.cross = MultiHead(config, name + ".cross")
        self.ff = FeedForward(config)

    def forward(self, x, mask, source=None, source_mask=None):
        h = self.norm1(x)
        x = x + self.dropout(self.self(h, self.self.project(h), mask))
        last = self.norm2
        if source is not None:
            x = x + self.dropout(self.cross(self.norm2(x), self.cross.project(source), source_mask))
            last = self.norm3
        return x + self.dropout(self.ff(last(x)))


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.width, self.layers = config.width, [str(i) for i in range(config.layers)]
        self.sinusoids = torch.empty(0, config.width)  # of the first positions
        self.dropout = nn.Dropout(config.dropout)
        self.source = nn.Embedding(config.source_vocab, config.width)
        self.target = nn.Embedding(config.target_vocab, config.width)
        self.encoder = nn.ModuleDict({i: Layer(config, "encoder." + i, cross=False) for i in self.layers})
        self.decoder = nn.ModuleDict({i: Layer(config, "decoder." + i, cross=True) for i in self.layers})
        self.encoder["norm"], self.decoder["norm"] = nn.LayerNorm(config.width), nn.LayerNorm(config.width)

    def forward(self, source, lengths, read):
        """Returns the logits [B Lt V] of the token after each token of read [B Lt], given sources [B Ls] and their
        lengths [B] without padding."""
        visible = torch.arange(source.shape[1], device=source.device) < lengths[:, None]
        visible = visible[:, None, None, :]
        x = self.positioned(self.source, source)
        for i in self.layers:
            x = self.encoder[i](x, visible)
        memory = self.encoder["norm"](x)

        n = read.shape[1]
        earlier = torch.ones(n, n, dtype=torch.bool, device=read.device).tril()
        x = self.positioned(self.target, read)
        for i in self.layers:
            x = self.decoder[i](x, earlier, memory, visible)
        return F.linear(self.decoder["norm"](x), self.target.weight)

    def positioned(self, embedding, ids):
        x = embedding(ids) * math.sqrt(self.width)
        n = ids.shape[1]
        if len(self.sinusoids) < n or (self.sinusoids.device, self.sinusoids.dtype) != (x.device, x.dtype):
            self.sinusoids = move(sinusoids(2 * n, self.width).to(x.dtype), x.device)
        return self.dropout(x + self.sinusoids[:n])


def sinusoids(length, width):
    """Returns sines and cosines side by side, [length width]."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
