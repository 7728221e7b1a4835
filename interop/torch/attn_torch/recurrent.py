"""The recurrent network of models: the translator of Bahdanau et al. 2015, with GRUs."""

import math
import re

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .attention import MultiHead, Score, move


class Recurrent(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, layers = config.width, range(config.layers)
        self.width = d
        self.dropout = nn.Dropout(config.dropout)
        self.source = nn.Embedding(config.source_vocab, d)
        self.target = nn.Embedding(config.target_vocab, d)
        self.encoder = nn.ModuleList(nn.GRU(d, d // 2, bidirectional=True, batch_first=True) for _ in layers)
        self.initial = nn.ModuleList(nn.Linear(d, d) for _ in layers)
        self.decoder = nn.ModuleList(nn.GRUCell(2 * d if i == 0 else d, d) for i in layers)
        if config.heads > 0:
            self.cross = MultiHead(config, "decoder.0.cross")
        else:
            self.score = Score(config.score, d)
        self.readout = nn.Linear(3 * d, d)

    def forward(self, source, lengths, read):
        """Returns the logits [B Lt V] of the token after each token of read [B Lt], given sources [B Ls] and their
        lengths [B] without padding. Lengths on another device than the CPU make it wait for that device."""
        memory, states = self.encode(source, lengths.cpu())
        visible = torch.arange(source.shape[1], device=source.device) < move(lengths, source.device)[:, None]
        heads = hasattr(self, "cross")
        keys_values = self.cross.project(memory) if heads else None
        features = []
        for token in self.dropout(self.embed(self.target, read)).unbind(1):
            query = states[-1][:, None]
            if heads:
                context = self.cross(query, keys_values, visible[:, None, None])
            else:
                context = self.score.attend(query, memory, memory, visible[:, None])
            x = h = torch.cat((token, context[:, 0]), -1)
            for i, cell in enumerate(self.decoder):
                states[i] = cell(h, states[i])
                h = self.dropout(states[i])
            features.append(torch.cat((x, h), -1))
        y = self.dropout(torch.tanh(self.readout(torch.stack(features, 1))))
        return F.linear(y, self.target.weight)

    def encode(self, source, lengths):
        """Returns the encoder's output [B Ls D], the keys and values, and the initial state of each decoder layer."""
        x = self.dropout(self.embed(self.source, source))
        states = []
        # What pack_padded_sequence does with enforce_sorted=False, without a copy that waits for the device.
        lengths, order = lengths.sort(descending=True)
        order, back = move(order, x.device), move(order.argsort(), x.device)
        for gru, first in zip(self.encoder, self.initial):
            y, last = gru(pack_padded_sequence(x.index_select(0, order), lengths, batch_first=True))
            y, _ = pad_packed_sequence(y, batch_first=True, total_length=source.shape[1])
            x, last = self.dropout(y.index_select(0, back)), last.index_select(1, back)
            states.append(torch.tanh(first(torch.cat((last[0], last[1]), -1))))
        return x, states

    def embed(self, embedding, ids):
        return embedding(ids) * math.sqrt(self.width)


def torch_name(name):
    """Returns PyTorch's name of an attn parameter. In PyTorch, both directions of an encoder layer are one module."""
    m = re.fullmatch(r"encoder\.(forward|backward)\.(\d+)\.(\w+)", name)
    if m is None:
        return name
    return f"encoder.{m[2]}.{m[3]}_l0" + ("_reverse" if m[1] == "backward" else "")


def attn_name(name):
    """The inverse of torch_name."""
    m = re.fullmatch(r"encoder\.(\d+)\.(\w+)_l0(_reverse)?", name)
    if m is None:
        return name
    return f"encoder.{'backward' if m[3] else 'forward'}.{m[1]}.{m[2]}"
