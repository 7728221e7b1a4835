"""Writes testdata/golden/*.safetensors, the expected numbers of the Go tests.

Every case is one function. It draws its inputs, writes its formula in PyTorch primitives and lists what is expected.
The function runs twice on the same inputs: in float64, which gives the expected numbers and the gradients, and in
float32, whose largest distance from float64 is the error budget. README.md explains the names in the files.

    python testdata/golden.py           write the files
    python testdata/golden.py --check   compare the files with what would be written; exit 1 on a difference
"""

import hashlib
import json
import math
import os
import re
import struct
import sys
from pathlib import Path

# Gives the same bits with every vector unit. Both variables must be set before torch is loaded.
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["ATEN_CPU_CAPABILITY"] = "default"

import numpy as np
import safetensors
import torch
import torch.nn.functional as F
from torch import nn

GOLDEN = Path(__file__).resolve().parent / "golden"
FILE_LIMIT, TOTAL_LIMIT = 100_000, 2_500_000


class Case:
    """One run of a case in one precision: its random inputs, its settings and the expected results."""

    def __init__(self, name, system, dtype):
        self.name, self.dtype = name, dtype
        self.given = {}  # tensor name -> numpy array as stored: F32, BOOL or I64
        self.leaves = {}  # tensor name -> torch tensor that wants a gradient
        self.wanted = {}  # tensor name -> torch tensor in this run's precision
        self.settings = {"case": name, "system": system, "torch": torch.__version__.split("+")[0]}

    # ---- inputs. The seed of an input is the case and its name, so adding an input changes no other.

    def rng(self, name):
        digest = hashlib.sha256(f"{self.name}/{name}".encode()).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))

    def keep(self, name, array):
        assert name not in self.given, name
        self.given[name] = np.ascontiguousarray(array)
        return array

    def floats(self, name, array, grad=True):
        """Rounds to float32, stores the result, and returns it in the precision of this run."""
        array = self.keep(name, np.asarray(array).astype(np.float32))
        t = torch.from_numpy(array.copy()).to(self.dtype)
        if grad:
            self.leaves[name] = t.requires_grad_()
        return t

    def normal(self, name, *shape, std=1.0, grad=True):
        return self.floats(name, self.rng(name).standard_normal(shape) * std, grad)

    def uniform(self, name, low, high, *shape, grad=True):
        return self.floats(name, self.rng(name).uniform(low, high, shape), grad)

    def ints(self, name, values):
        return torch.from_numpy(self.keep(name, np.asarray(values, dtype=np.int64)).copy())

    def mask(self, name, *shape, p=0.6, dead=None):
        """A random mask: every query attends to at least one key, except query `dead` (an index), which attends to none."""
        rng = self.rng(name)
        mask = rng.random(shape) < p
        one = rng.integers(0, shape[-1], shape[:-1])
        np.put_along_axis(mask, one[..., None], True, axis=-1)
        if dead is not None:
            mask[dead] = False
        return torch.from_numpy(self.keep(name, mask).copy())

    def coins(self, name, p, *shape):
        return torch.from_numpy(self.keep(name, self.rng(name).random(shape) < p).copy())

    def note(self, **settings):
        for key, value in settings.items():
            self.settings[key] = str(value).lower() if isinstance(value, bool) else str(value)

    # ---- results

    def want(self, name, t):
        assert name not in self.wanted, name
        assert torch.isfinite(t).all(), f"{self.name}: {name} is not finite"
        self.wanted[name] = t.detach()

    def finish(self, through=("out",), **results):
        """Stores every result, draws in.d<name> for the names in `through`, and stores the gradients of all leaves."""
        for name, t in results.items():
            self.want(f"want.{name}", t)
        douts = [self.normal(f"in.d{name}", *results[name].shape, grad=False) for name in through]
        grads = torch.autograd.grad([results[name] for name in through], list(self.leaves.values()), douts)
        for name, g in zip(self.leaves, grads):
            self.want("grad." + name.split(".", 1)[1], g)

    def agrees(self, ours, theirs, what):
        """Compares with PyTorch's layer, in float64 only. The comparison is not part of the file."""
        if self.dtype == torch.float64:
            torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12, msg=lambda m: f"{self.name}: {what}: {m}")
            CHECKED.add(f"{self.name} against {what}")


CHECKED = set()

# ---------------------------------------------------------------- scores: each returns [… Lq Lk]


def dot(c, q, k):
    return q @ k.mT


def scaled_dot(c, q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])


def additive(c, q, k, hidden=19, prefix=""):
    wq = c.normal(f"param.{prefix}wq", hidden, q.shape[-1], std=q.shape[-1] ** -0.5)
    wk = c.normal(f"param.{prefix}wk", hidden, k.shape[-1], std=k.shape[-1] ** -0.5)
    wv = c.normal(f"param.{prefix}wv", hidden)
    features = (q @ wq.mT).unsqueeze(-2) + (k @ wk.mT).unsqueeze(-3)  # [… Lq Lk hidden]
    return torch.tanh(features) @ wv


def bilinear(c, q, k, prefix=""):
    w = c.normal(f"param.{prefix}w", q.shape[-1], k.shape[-1], std=q.shape[-1] ** -0.5)
    return q @ w @ k.mT


def scaled_bilinear(c, q, k):
    return bilinear(c, q, k) / (q.shape[-1] * k.shape[-1]) ** 0.25


def gaussian_of(q, k, w):
    return -0.5 * (((q.unsqueeze(-2) - k.unsqueeze(-3)) * w) ** 2).sum(-1)


def gaussian(c, q, k):
    return gaussian_of(q, k, c.uniform("param.w", 0.2, 0.8, q.shape[-1]))


def gaussian_scalar(c, q, k):
    return gaussian_of(q, k, c.uniform("param.w", 0.2, 0.8, 1))


def cosine(c, q, k):
    return (q @ k.mT) / (q.norm(dim=-1).unsqueeze(-1) * k.norm(dim=-1).unsqueeze(-2))


def cosine_scaled(c, q, k):
    return cosine(c, q, k) * c.uniform("param.scale", 2, 5, 1)


def l1(c, q, k):
    w = c.uniform("param.w", 0.2, 0.8, q.shape[-1])
    return -((q.unsqueeze(-2) - k.unsqueeze(-3)) * w).abs().sum(-1)


def custom(c, q, k):
    return torch.relu(q) @ k.mT / 3


# name: (score, size of q, size of k)
SCORES = {
    "dot": (dot, 11, 11),
    "scaled_dot": (scaled_dot, 11, 11),
    "additive": (additive, 11, 17),
    "bilinear": (bilinear, 11, 17),
    "scaled_bilinear": (scaled_bilinear, 11, 17),
    "gaussian": (gaussian, 11, 11),
    "gaussian_scalar": (gaussian_scalar, 11, 11),
    "cosine": (cosine, 11, 11),
    "cosine_scaled": (cosine_scaled, 11, 11),
    "l1": (l1, 11, 11),
    "custom": (custom, 11, 11),
}

# ---------------------------------------------------------------- masks: true = may attend


def causal_mask(lq, lk, offset):
    return torch.arange(lk) <= torch.arange(lq).unsqueeze(-1) + offset


def window_mask(lq, lk, left, right, offset):
    centre = torch.arange(lq).unsqueeze(-1) + offset
    j = torch.arange(lk)
    return (centre - left <= j) & (j <= centre + right)


def valid_mask(lens, lk):
    """[B] or [B Lq] to [B 1 1 Lk] or [B 1 Lq Lk]."""
    lens = lens.unsqueeze(-1) if lens.dim() == 1 else lens
    return (torch.arange(lk) < lens.unsqueeze(-1)).unsqueeze(1)


# ---------------------------------------------------------------- attention itself


def masked_softmax(scores, mask):
    """The softmax over the keys that the mask does not hide. A row without such keys is 0 and has no gradient."""
    if mask is None:
        return torch.softmax(scores, -1)
    mask = mask.expand_as(scores)
    some = mask.any(-1, keepdim=True)
    hidden = scores.masked_fill(some & ~mask, -math.inf)
    return torch.softmax(hidden, -1).masked_fill(~mask, 0)


def pool(scores, v, *, softcap=None, bias=None, mask=None, keep=None, dropout=0.0):
    """Soft-cap, bias, mask, softmax, dropout, weighted sum. Returns out, weights (before dropout), scores (before the mask)."""
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    weights = masked_softmax(scores, mask)
    mixed = weights if keep is None else weights * keep / (1 - dropout)
    return mixed @ v, weights, scores


def check_sdpa(c, out, q, k, v, mask=None, bias=None, scale=None, gqa=False):
    """Compares with PyTorch's attention, for queries that attend to at least one key; PyTorch differs for others."""
    shape = (*q.shape[:-1], k.shape[-2])
    mask = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    add = torch.zeros(shape, dtype=q.dtype) if bias is None else bias.detach().expand(shape)
    some = mask.any(-1, keepdim=True)
    theirs = F.scaled_dot_product_attention(
        q, k, v, attn_mask=add.masked_fill(some & ~mask, -math.inf), scale=scale, enable_gqa=gqa
    )
    c.agrees(out, theirs.masked_fill(~some, 0), "F.scaled_dot_product_attention")


# ---------------------------------------------------------------- system 1: pooling


def pool_scalar(c):
    c.note(score="gaussian")
    x, xs = c.uniform("in.q", 0, 5, 1, 5, 1), c.uniform("in.k", 0, 5, 1, 7, 1)
    y, w = c.normal("in.v", 1, 7, 1), c.uniform("param.w", 0.5, 1.5, 1)
    scores = -0.5 * ((x - xs.mT) * w) ** 2
    out, weights, scores = pool(scores, y)
    c.finish(out=out, weights=weights, scores=scores)


def pool_features(c):
    c.note(score="gaussian")
    q, k, v = c.normal("in.q", 2, 5, 3), c.normal("in.k", 2, 7, 3), c.normal("in.v", 2, 7, 13)
    w = c.uniform("param.w", 0.3, 1.5, 3)
    scores = sum(-0.5 * ((q[:, :, None, f] - k[:, None, :, f]) * w[f]) ** 2 for f in range(3))
    out, weights, scores = pool(scores, v)
    c.finish(out=out, weights=weights, scores=scores)


# ---------------------------------------------------------------- system 2: scores


def score_case(name):
    """[B L E], no mask."""

    def run(c):
        score, eq, ek = SCORES[name]
        c.note(score=name)
        q, k, v = c.normal("in.q", 2, 5, eq), c.normal("in.k", 2, 7, ek), c.normal("in.v", 2, 7, 13)
        out, weights, scores = pool(score(c, q, k), v)
        if name == "scaled_dot":
            check_sdpa(c, out, q, k, v)
        if name == "cosine":
            c.agrees(scores, F.cosine_similarity(q[:, :, None], k[:, None], dim=-1), "F.cosine_similarity")
        c.finish(out=out, weights=weights, scores=scores)

    return run


def score4_case(name):
    """[B H L E] with a valid length per sequence; the score's parameters are shared by the heads."""

    def run(c):
        score, eq, ek = SCORES[name]
        c.note(score=name)
        q, k, v = c.normal("in.q", 2, 3, 5, eq), c.normal("in.k", 2, 3, 7, ek), c.normal("in.v", 2, 3, 7, 13)
        mask = valid_mask(c.ints("in.valid_lens", [4, 6]), 7)
        out, weights, scores = pool(score(c, q, k), v, mask=mask)
        c.finish(out=out, weights=weights, scores=scores)

    return run


# ---------------------------------------------------------------- Attend: scaled dot on [B H L E]


def qkv(c, b=2, h=3, lq=5, lk=7, e=11, v=13, g=None):
    g = h if g is None else g
    return c.normal("in.q", b, h, lq, e), c.normal("in.k", b, g, lk, e), c.normal("in.v", b, g, lk, v)


def attend(c, q, k, v, scale=None, mask=None, bias=None, softcap=None, through=("out",)):
    c.note(score="scaled_dot")
    scores = scaled_dot(c, q, k) if scale is None else q @ k.mT * scale
    out, weights, scores = pool(scores, v, softcap=softcap, bias=bias, mask=mask)
    if softcap is None:
        check_sdpa(c, out, q, k, v, mask=mask, bias=bias, scale=scale)
    c.finish(out=out, weights=weights, scores=scores, through=through)


def attend_causal(c, lq, lk, offset=None):
    c.note(causal=True, default_offset=offset is None)
    offset = lk - lq if offset is None else offset
    c.note(offset=offset)
    attend(c, *qkv(c, lq=lq, lk=lk), mask=causal_mask(lq, lk, offset))


def causal(c):
    attend_causal(c, 5, 7)


def causal_square(c):
    attend_causal(c, 7, 7)


def causal_offset0(c):
    attend_causal(c, 5, 7, offset=0)


def causal_tall(c):
    attend_causal(c, 7, 5)  # the offset is -2: the first two rows see nothing


def window(c):
    c.note(window_left=2, window_right=1, offset=2, default_offset=True)
    attend(c, *qkv(c), mask=window_mask(5, 7, 2, 1, 2))


def causal_window(c):
    c.note(causal=True, window_left=2, window_right=1, offset=2, default_offset=True)
    attend(c, *qkv(c), mask=window_mask(5, 7, 2, 1, 2) & causal_mask(5, 7, 2))


def valid_lens(c):
    attend(c, *qkv(c), mask=valid_mask(c.ints("in.valid_lens", [0, 4]), 7))


def valid_lens_rows(c):
    lens = c.ints("in.valid_lens", [[3, 7, 1, 0, 5], [6, 2, 4, 7, 3]])
    attend(c, *qkv(c), mask=valid_mask(lens, 7))


def mask_shared(c):
    attend(c, *qkv(c), mask=c.mask("in.mask", 1, 1, 5, 7))


def mask_keys(c):
    attend(c, *qkv(c), mask=c.mask("in.mask", 2, 1, 1, 7))


def mask_heads(c):
    attend(c, *qkv(c), mask=c.mask("in.mask", 3, 1, 7))  # three axes: aligned at the right


def mask_full(c):
    attend(c, *qkv(c), mask=c.mask("in.mask", 2, 3, 5, 7, dead=(1, 2, 3)))


def combined(c):
    c.note(causal=True, offset=2, default_offset=True)
    mask = c.mask("in.mask", 2, 3, 5, 7, p=0.7, dead=(0, 1, 4))
    mask = mask & causal_mask(5, 7, 2) & valid_mask(c.ints("in.valid_lens", [6, 4]), 7)
    attend(c, *qkv(c), mask=mask, bias=c.normal("in.bias", 3, 5, 7))


def bias_heads(c):
    attend(c, *qkv(c), bias=c.normal("in.bias", 3, 5, 7))


def bias_shared(c):
    attend(c, *qkv(c), bias=c.normal("in.bias", 1, 1, 5, 7))


def bias_keys(c):
    attend(c, *qkv(c), bias=c.normal("in.bias", 2, 1, 1, 7))


def bias_full(c):
    attend(c, *qkv(c), bias=c.normal("in.bias", 2, 3, 5, 7))


def softcap(c):
    c.note(softcap=1.5)
    attend(c, *qkv(c), softcap=1.5)


def softcap_bias_mask(c):
    c.note(softcap=1.5)
    mask = c.mask("in.mask", 2, 1, 5, 7, dead=(1, 0, 2))
    attend(c, *qkv(c), softcap=1.5, bias=c.normal("in.bias", 3, 5, 7), mask=mask)


def scale(c):
    c.note(scale=0.375)
    attend(c, *qkv(c), scale=0.375)


def weights_grad(c):
    c.note(causal=True, offset=2, default_offset=True)
    attend(c, *qkv(c), mask=causal_mask(5, 7, 2), through=("out", "weights"))


def attend_grouped(c, q, k, v, mask=None, bias=None):
    """Query head h reads key/value head h // (H/G)."""
    c.note(score="scaled_dot", heads=q.shape[1], kv_heads=k.shape[1])
    group = q.shape[1] // k.shape[1]
    head = [h // group for h in range(q.shape[1])]
    out, weights, scores = pool(scaled_dot(c, q, k[:, head]), v[:, head], mask=mask, bias=bias)
    check_sdpa(c, out, q, k, v, mask=mask, bias=bias, gqa=True)
    c.finish(out=out, weights=weights, scores=scores)


def gqa(c):
    attend_grouped(c, *qkv(c, b=5, h=6, g=3, lq=7, lk=11, e=4, v=8))


def gqa_bias_mask(c):
    mask = c.mask("in.mask", 6, 1, 7)
    attend_grouped(c, *qkv(c, h=6, g=3), mask=mask, bias=c.normal("in.bias", 6, 5, 7))


# ---------------------------------------------------------------- system 3: recurrent encoder and decoder


def gru_step(x, h, state):
    (xr, xz, xn), (hr, hz, hn) = x, h
    reset, update = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    return ((1 - update) * torch.tanh(xn + reset * hn) + update * state[0],)


def lstm_step(x, h, state):
    i, f, g, o = (a + b for a, b in zip(x, h))
    memory = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(memory), memory


def rnn_step(x, h, state):
    return (torch.tanh(x[0] + h[0]),)


def rnn_relu_step(x, h, state):
    return (torch.relu(x[0] + h[0]),)


# name: (blocks of rows, parts of the state, one step, PyTorch's layer, its settings)
CELLS = {
    "gru": (3, 1, gru_step, nn.GRU, {}),
    "lstm": (4, 2, lstm_step, nn.LSTM, {}),
    "rnn": (1, 1, rnn_step, nn.RNN, {}),
    "rnn_relu": (1, 1, rnn_relu_step, nn.RNN, {"nonlinearity": "relu"}),
}


def cell_params(c, cell, d, hidden, layers=1, prefix=""):
    """Parameters as PyTorch stores them, in blocks of rows: GRU reset, update, new; LSTM input, forget, cell, output."""
    std, params, rows = hidden**-0.5, {}, CELLS[cell][0] * hidden
    for n in range(layers):
        shapes = {
            f"weight_ih_l{n}": (rows, d if n == 0 else hidden),
            f"weight_hh_l{n}": (rows, hidden),
            f"bias_ih_l{n}": (rows,),
            f"bias_hh_l{n}": (rows,),
        }
        params |= {name: c.normal(f"param.{prefix}{name}", *shape, std=std) for name, shape in shapes.items()}
    return params


def unroll(cell, x, state, params, n, lens=None):
    """Maps x [B L D] and the state, a tuple of [B hidden], to the outputs of all steps [B L hidden] and the last state."""
    blocks, _, step, _, _ = CELLS[cell]
    wi, wh, bi, bh = (params[f"{name}_l{n}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    outputs = []
    for at in range(x.shape[1]):
        fresh = step((x[:, at] @ wi.mT + bi).chunk(blocks, -1), (state[0] @ wh.mT + bh).chunk(blocks, -1), state)
        if lens is None:
            state, output = fresh, fresh[0]
        else:  # past its length a sequence keeps its state and gives out 0
            alive = (at < lens).unsqueeze(-1)
            state, output = tuple(torch.where(alive, f, s) for f, s in zip(fresh, state)), fresh[0].masked_fill(~alive, 0)
        outputs.append(output)
    return torch.stack(outputs, 1), state


def check_cell(c, cell, params, x, start, out, state, lens=None):
    """start, or None, and state are tuples of [layers B hidden]."""
    _, _, _, layer, settings = CELLS[cell]
    theirs = layer(x.shape[-1], out.shape[-1], len(params) // 4, batch_first=True, **settings).to(c.dtype)
    theirs.load_state_dict({name: p.detach() for name, p in params.items()})
    if start is not None:
        start = start if cell == "lstm" else start[0]
    if lens is None:
        want, want_state = theirs(x, start)
    else:
        packed = nn.utils.rnn.pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        want, want_state = theirs(packed, start)
        want, _ = nn.utils.rnn.pad_packed_sequence(want, batch_first=True, total_length=x.shape[1])
    name = f"nn.{layer.__name__}"
    c.agrees(out, want, f"{name}, outputs")
    for ours, their, what in zip(state, want_state if cell == "lstm" else [want_state], ("last state", "last memory")):
        c.agrees(ours, their, f"{name}, {what}")


def cell_case(cell, layers=1, batch=3, start=False, lens=None):
    """start: whether the initial state is an input; lens: the lengths of the sequences."""

    def run(c):
        c.note(layers=layers)
        parts = CELLS[cell][1]
        x, params = c.normal("in.x", batch, 7, 5), cell_params(c, cell, 5, 11, layers)
        given = tuple(c.normal(name, layers, batch, 11) for name in ("in.h0", "in.c0")[:parts]) if start else None
        lengths = c.ints("in.lengths", lens) if lens else None
        out, last = x, []
        for n in range(layers):
            first = tuple(s[n] for s in given) if start else (x.new_zeros(batch, 11),) * parts
            out, state = unroll(cell, out, first, params, n, lengths)
            last.append(state)
        states = tuple(torch.stack(s) for s in zip(*last))
        check_cell(c, cell, params, x, given, out, states, lengths)
        results = dict(zip(("out", "state", "memory"), (out, *states)))
        c.finish(**results, through=tuple(results))

    return run


def conv_case(n, ends=(), silu=False, start=False, bias=True):
    """A depthwise causal convolution of width n; ends: a list of the ends of documents for each sequence."""

    def run(c):
        batch, length, channels = 3, 7, 5
        x, w = c.normal("in.x", batch, length, channels), c.normal("param.weight", channels, 1, n)
        b = c.normal("param.bias", channels) if bias else None
        first = c.normal("in.first", batch, n - 1, channels) if start else x.new_zeros(batch, n - 1, channels)
        c.note(silu=silu)
        for i, list in enumerate(ends):
            c.ints(f"in.ends{i}", list)
        outs, lasts = [], []
        for i in range(batch):
            before, state, pieces, at = first[i], first[i], [], 0
            for end in ends[i] if ends else [length]:
                inputs = torch.cat([before, x[i, at:end]])  # [N−1+M C]
                y = sum(w[:, 0, j] * inputs[j : j + end - at] for j in range(n)) + (b if bias else 0)
                if end > at:
                    theirs = F.conv1d(inputs.mT[None], w, b, groups=channels)[0].mT
                    c.agrees(y, theirs, "F.conv1d")
                pieces.append(y)
                state, at = inputs[end - at :], end
                before = torch.zeros_like(before)
            outs.append(torch.cat([*pieces, x.new_zeros(length - at, channels)]))
            lasts.append(state)
        out = torch.stack(outs)
        c.finish(out=F.silu(out) if silu else out, last=torch.stack(lasts), through=("out", "last"))

    return run


def linear_case(rule, heads=(2, 2, 2), each=False, ends=None, start=False, normalize=False):
    """Linear attention, as its recurrence; heads: of queries, keys and values; each: a decay for each element of a key;
    ends: a list of the ends of documents for each sequence."""

    def run(c):
        batch, length, e, v = 2, 9, 5, 4
        h, kh, g = heads
        n, scale = max(h, g), e**-0.5
        c.note(rule=rule, normalize=normalize)
        q, k, value = c.normal("in.q", batch, h, length, e), c.normal("in.k", batch, kh, length, e, std=0.5), c.normal("in.v", batch, g, length, v)
        decay = beta = None
        if "gated" in rule:
            decay = c.uniform("in.decay", -2, 0, *((batch, g, length, e) if each else (batch, g, length)))
        if "delta" in rule:
            beta = c.uniform("in.beta", 0, 1.5, batch, g, length)
        wide = v + normalize
        first = c.normal("in.state", batch, g, e, wide) if start else q.new_zeros(batch, g, e, wide)
        for i, list in enumerate(ends or ()):
            c.ints(f"in.ends{i}", list)
        fq, fk, values = q, k, value
        if normalize:
            fq, fk = F.elu(q) + 1, F.elu(k) + 1
            values = torch.cat([value, torch.ones_like(value[..., :1])], -1)
        outs, lasts = [], []
        for b in range(batch):
            for head in range(n):
                i, j, m = head // (n // h), head // (n // g) // (g // kh), head // (n // g)
                state, y, at, rows = first[b, m], [], 0, []
                for end in ends[b] if ends else [length]:
                    for t in range(at, end):
                        if decay is not None:
                            state = state * decay[b, m, t].exp().reshape(-1, 1)
                        u = values[b, m, t]
                        if beta is not None:
                            u = beta[b, m, t] * (u - fk[b, j, t] @ state)
                        state = state + torch.outer(fk[b, j, t], u)
                        y.append(scale * fq[b, i, t] @ state)
                    last, state, at = state, torch.zeros_like(state), end
                y += [q.new_zeros(wide)] * (length - at)
                outs.append(torch.stack(y))
                if head % (n // g) == 0:
                    lasts.append(last)
        out = torch.stack(outs).reshape(batch, n, length, wide)
        if normalize:
            out = out[..., :-1] / out[..., -1:]
        c.finish(out=out, state=torch.stack(lasts).reshape(batch, g, e, wide), through=("out", "state"))

    return run


def encdec(c):
    c.note(score="dot")
    src, tgt = c.normal("in.src", 2, 7, 5), c.normal("in.tgt", 2, 3, 13)
    enc_params, dec_params = cell_params(c, "gru", 5, 11, prefix="enc."), cell_params(c, "gru", 13, 11, prefix="dec.")
    enc, last = unroll("gru", src, (src.new_zeros(2, 11),), enc_params, 0)
    dec, _ = unroll("gru", tgt, last, dec_params, 0)
    out, weights, scores = pool(dec @ enc.mT, enc)
    check_cell(c, "gru", enc_params, src, None, enc, (last[0][None],))
    c.finish(out=out, weights=weights, scores=scores, enc=enc, dec=dec)


def sinusoids(c):
    """Vaswani et al. 2017, section 3.5; an odd width ends with a sine."""
    for name, first, length, width in (("even", 0, 13, 10), ("odd", 0, 7, 11), ("far", 4999, 5, 6), ("before", -3, 5, 4)):
        c.note(**{f"{name}.first": first, f"{name}.length": length, f"{name}.width": width})
        position = torch.arange(first, first + length, dtype=c.dtype).unsqueeze(1)
        angle = position / 10000 ** (torch.arange(0, width, 2, dtype=c.dtype) / width)
        c.want(f"want.{name}", torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :width])


# ---------------------------------------------------------------- systems 4, 5, 6: multi-head attention on [B L D]


def affine(c, name, n_in, n_out, bias):
    """Parameters of x·Wᵀ + b, as torch.nn.Linear stores them."""
    w = c.normal(f"param.{name}.weight", n_out, n_in, std=n_in**-0.5)
    return w, (c.normal(f"param.{name}.bias", n_out, std=0.5) if bias else None)


def project(x, wb):
    w, b = wb
    return x @ w.mT if b is None else x @ w.mT + b


def split(x, heads):
    """[B L heads·size] to [B heads L size]: head h takes the columns from h·size on."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join(x):
    return x.transpose(1, 2).flatten(-2)


GATES = {"sigmoid": torch.sigmoid, "softplus": F.softplus}


def multihead(
    c, q, k, v, *, heads, size, size_v=None, width=None, bias=(), score=scaled_dot, gate=None, gate_size=1, check=False, **rest
):
    """bias names the projections, among q, k, v, out and gate, that have a bias; gate is the activation of gates that each
    query computes, gate_size for each head; rest is passed to pool."""
    size_v = size_v or size
    width = width or heads * size
    c.note(heads=heads)
    maps = {
        "q": affine(c, "q", q.shape[-1], heads * size, "q" in bias),
        "k": affine(c, "k", k.shape[-1], heads * size, "k" in bias),
        "v": affine(c, "v", v.shape[-1], heads * size_v, "v" in bias),
        "out": affine(c, "out", heads * size_v, width, "out" in bias),
    }
    qh, kh, vh = (split(project(x, maps[name]), heads) for name, x in (("q", q), ("k", k), ("v", v)))
    mixed, weights, scores = pool(score(c, qh, kh), vh, **rest)
    if gate:
        c.note(gate=gate)
        maps["gate"] = affine(c, "gate", q.shape[-1], heads * gate_size, "gate" in bias)
        gated = mixed * GATES[gate](split(project(q, maps["gate"]), heads))
        if gate_size == size and "gate" in bias and "q" in bias:
            check_doubled(c, q, heads, maps, qh, mixed, gated, gate)
    out = project(join(gated if gate else mixed), maps["out"])
    if score is scaled_dot and "keep" not in rest:
        check_sdpa(c, mixed, qh, kh, vh, mask=rest.get("mask"))
    if check:  # only where the width of q, the joined heads and the output are one
        check_mha(c, q, k, v, heads, maps, out, weights, rest.get("mask"))
    return out, weights, scores


def check_doubled(c, q, heads, maps, qh, mixed, gated, gate):
    """Qwen3-Next stores the rows of each head's query and gate one after another, in one map."""
    w, b = (
        torch.cat([x.unflatten(0, (heads, -1)) for x in pair], 1).flatten(0, 1) for pair in zip(maps["q"], maps["gate"])
    )
    query, factor = torch.chunk(project(q, (w, b)).unflatten(-1, (heads, -1)), 2, dim=-1)  # [B L H 2E]
    c.agrees(query.transpose(1, 2), qh, "doubled query map, query")
    c.agrees(mixed * GATES[gate](factor.transpose(1, 2)), gated, "doubled query map, gated output")


def check_mha(c, q, k, v, heads, maps, out, weights, mask):
    theirs = nn.MultiheadAttention(
        maps["out"][0].shape[0], heads, kdim=k.shape[-1], vdim=v.shape[-1], batch_first=True
    ).to(c.dtype)
    theirs._qkv_same_embed_dim = False
    w = {name: wb[0].detach() for name, wb in maps.items()}
    b = {name: w[name].new_zeros(w[name].shape[0]) if wb[1] is None else wb[1].detach() for name, wb in maps.items()}
    theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight = (nn.Parameter(w[n]) for n in "qkv")
    theirs.in_proj_bias = nn.Parameter(torch.cat([b[n] for n in "qkv"]))
    theirs.out_proj.weight, theirs.out_proj.bias = nn.Parameter(w["out"]), nn.Parameter(b["out"])
    hidden, alive = None, torch.ones_like(out, dtype=torch.bool)
    if mask is not None:
        full = mask.expand_as(weights)
        hidden = ~full.flatten(0, 1)
        alive = full.any(-1).all(1).unsqueeze(-1)  # rows that some head sees nothing in are NaN over there
    want, want_weights = theirs(q, k, v, attn_mask=hidden, average_attn_weights=False)
    c.agrees(torch.where(alive, out, 0), torch.where(alive, want, 0), "nn.MultiheadAttention, out")
    alive = alive.unsqueeze(1)[..., :1]
    c.agrees(torch.where(alive, weights, 0), torch.where(alive, want_weights, 0), "nn.MultiheadAttention, weights")


ALL = ("q", "k", "v", "out")
NAMES = ("out", "weights", "scores")


def mha_inputs(c, dq=15, dk=15, dv=15, lq=7, lk=11):
    return c.normal("in.q", 2, lq, dq), c.normal("in.k", 2, lk, dk), c.normal("in.v", 2, lk, dv)


def mha(c, q, k, v, **settings):
    c.note(score=settings.get("score", scaled_dot).__name__)
    c.finish(**dict(zip(NAMES, multihead(c, q, k, v, heads=3, size=5, **settings))))


def mha_cross(c):
    mha(c, *mha_inputs(c), bias=ALL, check=True)


def mha_cross_shared(c):
    q, kv = c.normal("in.q", 2, 7, 15), c.normal("in.kv", 2, 11, 15)  # one encoder output is both k and v
    mha(c, q, kv, kv, bias=ALL, check=True)


def mha_mask(c):
    mha(c, *mha_inputs(c), bias=ALL, mask=c.mask("in.mask", 2, 1, 7, 11, dead=(1, 0, 3)), check=True)


def mha_mask_keys(c):
    mha(c, *mha_inputs(c), bias=ALL, mask=c.mask("in.mask", 2, 1, 1, 11), check=True)


def mha_dropout_mask(c):
    c.note(dropout=0.25)
    keep = c.coins("in.keep", 0.75, 2, 3, 7, 11)
    mha(c, *mha_inputs(c), bias=ALL, keep=keep, dropout=0.25)


def mha_valid(c):
    mask = valid_mask(c.ints("in.valid_lens", [3, 2]), 11)
    mha(c, *mha_inputs(c, 13, 17, 19), mask=mask)


def mha_valid_rows(c):
    lens = c.ints("in.valid_lens", [[3, 11, 1, 0, 5, 8, 2], [9, 4, 6, 10, 7, 1, 3]])
    mha(c, *mha_inputs(c, 13, 17, 19), mask=valid_mask(lens, 11))


def additive_inside(c, q, k):
    return additive(c, q, k, hidden=17, prefix="score.")


def bilinear_inside(c, q, k):
    return bilinear(c, q, k, prefix="score.")


def mha_additive(c):
    mask = valid_mask(c.ints("in.valid_lens", [3, 8]), 11)
    mha(c, *mha_inputs(c), score=additive_inside, mask=mask)
    c.note(score="additive")


def mha_bilinear_inside(c):
    mask = valid_mask(c.ints("in.valid_lens", [3, 8]), 11)
    mha(c, *mha_inputs(c), score=bilinear_inside, mask=mask)
    c.note(score="bilinear")


def mha_general(c):
    c.note(size_qk=5, size_v=13, width=31)
    mha(c, *mha_inputs(c, 17, 23, 29), size_v=13, width=31)


def mha_gate_elements(c):
    c.note(score="scaled_dot")
    q, kv = c.normal("in.q", 2, 5, 13), c.normal("in.kv", 2, 7, 11)
    c.finish(**dict(zip(NAMES, multihead(c, q, kv, kv, heads=3, size=4, width=9, bias=("q", "gate", "out"), gate="sigmoid", gate_size=4))))


def mha_gate_heads(c):
    c.note(score="scaled_dot")
    q, k, v = c.normal("in.q", 2, 5, 13), c.normal("in.k", 2, 7, 11), c.normal("in.v", 2, 7, 10)
    c.finish(**dict(zip(NAMES, multihead(c, q, k, v, heads=3, size=4, size_v=6, width=9, gate="softplus"))))


def mha_ones(c):
    c.note(score="scaled_dot")
    ones = [c.floats(f"in.{name}", np.ones((2, length, 10))) for name, length in (("q", 4), ("k", 6), ("v", 6))]
    mask = valid_mask(c.ints("in.valid_lens", [3, 2]), 6)
    c.finish(**dict(zip(NAMES, multihead(c, *ones, heads=5, size=2, mask=mask, check=True))))


# ---------------------------------------------------------------- system 7: sequence first, [L B D]


def seqfirst(c, bias, mask=None, score=scaled_dot):
    """mask is [Lq Lk B]; the weights are [B H Lq Lk], as in the other cases."""
    c.note(score="scaled_dot", qk_bias="q" in bias)
    q, k, v = c.normal("in.q", 7, 2, 15), c.normal("in.k", 11, 2, 15), c.normal("in.v", 11, 2, 15)
    mask = None if mask is None else mask.permute(2, 0, 1).unsqueeze(1)
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    plain = score is scaled_dot
    out, weights, scores = multihead(c, q, k, v, heads=3, size=5, bias=bias, score=score, mask=mask, check=plain)
    c.finish(out=out.transpose(0, 1), weights=weights, scores=scores)


def seqfirst_bias(c):
    seqfirst(c, ALL, c.mask("in.mask", 7, 11, 2, dead=(3, slice(None), 1)))


def seqfirst_nobias(c):
    seqfirst(c, ("v", "out"), c.mask("in.mask", 7, 11, 2))


def seqfirst_mask_keys(c):
    seqfirst(c, ALL, c.mask("in.mask", 1, 11, 2))


def seqfirst_mask_shared(c):
    seqfirst(c, ALL, c.mask("in.mask", 7, 11, 1))


def relative(c, q, k):
    """(q_i·k_j + q_i·r_{j−i+Lq−1}) / √E with one r for all heads."""
    lq, lk = q.shape[-2], k.shape[-2]
    r = c.normal("param.r", lq + lk - 1, q.shape[-1])
    at = torch.arange(lk) - torch.arange(lq).unsqueeze(-1) + lq - 1
    position = (q.unsqueeze(-2) * r[at]).sum(-1)
    return (q @ k.mT + position) / math.sqrt(q.shape[-1])


def seqfirst_relative(c):
    seqfirst(c, ALL, c.mask("in.mask", 7, 11, 2), score=relative)
    c.note(score="relative")


# ---------------------------------------------------------------- tensor operations, all in one file


def op(c, name, f, *draws, **settings):
    """Each function of draws draws one input, name.in0, name.in1, …; integers get no gradient."""
    c.note(**{f"{name}.{key}": value for key, value in settings.items()})
    inputs = [draw(f"{name}.in{i}") for i, draw in enumerate(draws)]
    result = f(*inputs)
    result = result.reshape(1) if result.dim() == 0 else result
    c.want(f"{name}.want", result)
    leaves = {i: t for i, t in enumerate(inputs) if t.is_floating_point()}
    dout = c.normal(f"{name}.dout", *result.shape, grad=False)
    for i, g in zip(leaves, torch.autograd.grad(result, list(leaves.values()), dout)):
        c.want(f"{name}.grad{i}", g)
    return result


def cross_entropy(logits, ids, smoothing=0.0, ignored=None):
    """The mean over the rows not ignored of −Σ target·log softmax, target = (1−smoothing)·one-hot + smoothing/C."""
    logp = logits - torch.logsumexp(logits, -1, keepdim=True)
    target = torch.full_like(logp, smoothing / logp.shape[-1])
    target.scatter_add_(1, ids.unsqueeze(1), torch.full_like(logp[:, :1], 1 - smoothing))
    loss = -(target * logp).sum(-1)
    used = torch.ones_like(ids, dtype=torch.bool) if ignored is None else ids != ignored
    return (loss * used).sum() / used.sum()


def layer_norm(x, gain, shift, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps) * gain + shift


def rms_norm(x, gain, eps=1e-5):
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps) * gain


def l2_normalize(x, eps=1e-12):
    return x / x.norm(dim=-1, keepdim=True).clamp_min(eps)


def ops(c):
    def N(*shape):
        return lambda name: c.normal(name, *shape)

    def U(low, high, *shape):
        return lambda name: c.uniform(name, low, high, *shape)

    def I(values):
        return lambda name: c.ints(name, values)

    def same(name, f, theirs, *draws, **settings):
        """An operation that PyTorch also has; the results are compared."""
        ours = op(c, name, f, *draws, **settings)
        inputs = [torch.from_numpy(c.given[f"{name}.in{i}"]) for i in range(len(draws))]
        inputs = [t.to(c.dtype) if t.is_floating_point() else t for t in inputs]
        c.agrees(ours.detach().squeeze(), theirs(*inputs).squeeze(), name)

    op(c, "add_broadcast", lambda a, b: a + b, N(2, 3, 5, 7), N(3, 1, 7))
    op(c, "sub_broadcast", lambda a, b: a - b, N(5, 1), N(3, 5, 7))
    op(c, "mul_broadcast", lambda a, b: a * b, N(3, 5, 7), N(3, 1, 7))
    op(c, "div_broadcast", lambda a, b: a / b, N(3, 5, 7), U(0.5, 2, 7))
    op(c, "tanh", torch.tanh, N(5, 7))
    op(c, "sigmoid", torch.sigmoid, N(5, 7))
    op(c, "relu", torch.relu, N(5, 7))
    same("gelu", lambda x: x / 2 * (1 + torch.erf(x / math.sqrt(2))), F.gelu, N(5, 7))
    same("softplus", lambda x: torch.log(1 + torch.exp(x)), F.softplus, N(5, 7))
    same("elu", lambda x: torch.where(x > 0, x, torch.exp(x) - 1), F.elu, N(5, 7))
    op(c, "exp", torch.exp, N(5, 7))
    op(c, "log", torch.log, U(0.1, 4, 5, 7))
    op(c, "sqrt", torch.sqrt, U(0.1, 4, 5, 7))
    op(c, "square", torch.square, N(5, 7))
    op(c, "matmul", torch.matmul, N(5, 7), N(7, 11))
    op(c, "matmul_batched", torch.matmul, N(2, 3, 5, 7), N(2, 3, 7, 11))
    op(c, "matmul_bt", lambda a, b: a @ b.mT, N(5, 7), N(11, 7))
    op(c, "matmul_bt_batched", lambda a, b: a @ b.mT, N(3, 5, 7), N(3, 11, 7))
    same("linear", lambda x, w, b: x @ w.mT + b, F.linear, N(2, 5, 7), N(11, 7), N(11))
    op(c, "sum_all", torch.sum, N(3, 5, 7))
    op(c, "mean_all", torch.mean, N(3, 5, 7))
    op(c, "sum_axis", lambda x: x.sum(1), N(3, 5, 7), axis=1)
    op(c, "mean_axis", lambda x: x.mean(1), N(3, 5, 7), axis=1)
    op(c, "softmax_last", lambda x: torch.softmax(x, -1), N(3, 5, 7))
    op(c, "log_softmax_last", lambda x: torch.log_softmax(x, -1), N(3, 5, 7))
    op(c, "logsumexp_last", lambda x: torch.logsumexp(x, -1), N(3, 5, 7))
    same(
        "layer_norm", layer_norm, lambda x, g, s: F.layer_norm(x, (7,), g, s), N(3, 5, 7), U(0.5, 1.5, 7), N(7), eps=1e-5
    )
    same("rms_norm", rms_norm, lambda x, g: F.rms_norm(x, (7,), g, 1e-5), N(3, 5, 7), U(0.5, 1.5, 7), eps=1e-5)
    same("l2_normalize", l2_normalize, lambda x: F.normalize(x, dim=-1), N(3, 5, 7), eps=1e-12)
    ids = [[4, 0, 4], [10, 2, 0]]  # some rows twice, most never
    same("embedding", lambda i, table: table[i], F.embedding, I(ids), N(11, 7))
    op(c, "concat", lambda *xs: torch.cat(xs, 1), N(2, 3, 7), N(2, 5, 7), N(2, 1, 7), axis=1)
    op(c, "slice", lambda x: x[:, 2:5], N(2, 7, 3), axis=1, start=2, stop=5)
    op(c, "transpose", lambda x: x.permute(0, 2, 1, 3), N(2, 3, 5, 7), perm="0 2 1 3")
    same("cross_entropy", cross_entropy, F.cross_entropy, N(7, 11), I([3, 10, 0, 5, 5, 1, 8]))
    same(
        "cross_entropy_smooth",
        lambda x, i: cross_entropy(x, i, smoothing=0.1, ignored=0),
        lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1, ignore_index=0),
        N(7, 11),
        I([3, 10, 0, 5, 0, 1, 8]),
        smoothing=0.1,
        ignored=0,
    )


# ---------------------------------------------------------------- optimisers, all in one file

OPTIMISERS = {
    "sgd": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01)),
    "nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1)),
}


def optim(c):
    """Five steps from init.* with given gradients step<n>.grad.*, then clipping above and below the norm of a gradient."""
    steps, shapes = 5, {"w": (5, 7), "b": (7,)}
    init = {p: c.normal(f"init.{p}", *shape, grad=False) for p, shape in shapes.items()}
    given = [
        {p: c.normal(f"step{n}.grad.{p}", *shape, grad=False) for p, shape in shapes.items()} for n in range(1, steps + 1)
    ]
    for name, (make, settings) in OPTIMISERS.items():
        c.note(**{f"{name}.{key}": value for key, value in settings.items() if key != "betas"})
        if "betas" in settings:
            c.note(**{f"{name}.beta{i + 1}": beta for i, beta in enumerate(settings["betas"])})
        params = {p: t.clone().requires_grad_() for p, t in init.items()}
        optimiser = make(list(params.values()), **settings)
        for n, grads in enumerate(given, 1):
            for p, t in params.items():
                t.grad = grads[p].clone()
            optimiser.step()
            for p, t in params.items():
                c.want(f"{name}.step{n}.{p}", t.detach().clone())
    c.note(steps=steps)
    for name, most in (("clip", 2.5), ("clip_idle", 1000.0)):
        c.note(**{f"{name}.max_norm": most})
        params = {p: t.clone().requires_grad_() for p, t in init.items()}
        for p, t in params.items():
            t.grad = given[0][p].clone()
        norm = nn.utils.clip_grad_norm_(params.values(), most)
        c.want(f"{name}.norm", norm.reshape(1))
        for p, t in params.items():
            c.want(f"{name}.grad.{p}", t.grad)


# ---------------------------------------------------------------- files


def encode(tensors, metadata):
    """The safetensors format with all names sorted, an order that the library's writer does not guarantee."""
    dtypes = {"float64": "F64", "float32": "F32", "int64": "I64", "bool": "BOOL"}
    header, body = {"__metadata__": dict(sorted(metadata.items()))}, b""
    for name, array in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        span = [len(body), len(body) + len(data)]
        header[name] = {"dtype": dtypes[array.dtype.name], "shape": list(array.shape), "data_offsets": span}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def same(now, before):
    """Whether files are the same, except for the versions of the programs that they name."""
    def versionless(files):
        header, body = 8 + struct.unpack("<Q", files["golden.safetensors"][:8])[0], files["golden.safetensors"]
        names = json.loads(body[8:header])
        names["__metadata__"] = {k: v for k, v in names["__metadata__"].items() if k not in ("torch", "transformers")}
        config = re.sub(rb'"transformers_version": "[^"]*"', b"", files["config.json"])
        return {**files, "config.json": config, "golden.safetensors": (names, body[header:])}

    return now.keys() == before.keys() and versionless(now) == versionless(before)


def build(name, system, function):
    """Runs a case in both precisions and returns its file."""
    exact, plain = Case(name, system, torch.float64), Case(name, system, torch.float32)
    function(exact)
    function(plain)
    assert all(np.array_equal(exact.given[n], plain.given[n]) for n in exact.given | plain.given)
    assert exact.wanted.keys() == plain.wanted.keys()
    tensors, metadata = dict(exact.given), dict(exact.settings)
    for key, want in exact.wanted.items():
        tensors[key] = np.ascontiguousarray(want.numpy())
        metadata[f"budget.{key}"] = "%.9g" % (plain.wanted[key].double() - want).abs().max().item()
    data = encode(tensors, metadata)
    assert len(data) < FILE_LIMIT, f"{name}: {len(data)} bytes"
    back = dict(safetensors.deserialize(data))  # the reference reader accepts it and reads the same bytes
    assert all(bytes(back[n]["data"]) == tensors[n].tobytes() for n in tensors | back)
    return data


# file name: (system, function)
CASES = {
    "pool_scalar": ("1", pool_scalar),
    "pool_features": ("1", pool_features),
    **{f"score_{name}": ("2", score_case(name)) for name in SCORES},
    **{f"score4_{name}": ("2", score4_case(name)) for name in SCORES},
    "causal": ("attend", causal),
    "causal_square": ("attend", causal_square),
    "causal_offset0": ("attend", causal_offset0),
    "causal_tall": ("attend", causal_tall),
    "window": ("attend", window),
    "causal_window": ("attend", causal_window),
    "valid_lens": ("attend", valid_lens),
    "valid_lens_rows": ("attend", valid_lens_rows),
    "mask_shared": ("attend", mask_shared),
    "mask_keys": ("attend", mask_keys),
    "mask_heads": ("attend", mask_heads),
    "mask_full": ("attend", mask_full),
    "combined": ("attend", combined),
    "bias_heads": ("attend", bias_heads),
    "bias_shared": ("attend", bias_shared),
    "bias_keys": ("attend", bias_keys),
    "bias_full": ("attend", bias_full),
    "softcap": ("attend", softcap),
    "softcap_bias_mask": ("attend", softcap_bias_mask),
    "scale": ("attend", scale),
    "weights_grad": ("attend", weights_grad),
    "gqa": ("attend", gqa),
    "gqa_bias_mask": ("attend", gqa_bias_mask),
    "gru_one_layer": ("3", cell_case("gru", batch=2, start=True)),
    "gru_with_lengths": ("3", cell_case("gru", lens=[4, 7, 1])),
    "gru_two_layers": ("3", cell_case("gru", layers=2)),
    "lstm_one_layer": ("3", cell_case("lstm", batch=2, start=True)),
    "lstm_with_lengths": ("3", cell_case("lstm", lens=[4, 7, 1])),
    "lstm_two_layers": ("3", cell_case("lstm", layers=2, start=True)),
    "rnn_one_layer": ("3", cell_case("rnn", batch=2, start=True)),
    "rnn_with_lengths": ("3", cell_case("rnn", lens=[4, 7, 1])),
    "rnn_two_layers": ("3", cell_case("rnn", layers=2)),
    "rnn_relu_one_layer": ("3", cell_case("rnn_relu", batch=2, start=True)),
    "conv_plain": ("conv", conv_case(4)),
    "conv_documents": ("conv", conv_case(4, [[2, 7], [1, 1, 5], [4]], silu=True, start=True)),
    "conv_short": ("conv", conv_case(2, [[7], [3], [0]], start=True, bias=False)),
    "linear_normalized": ("linear", linear_case("linear", (4, 2, 2), start=True, normalize=True)),
    "linear_gated": ("linear", linear_case("gated", (2, 1, 4), start=True)),
    "linear_gated_each": ("linear", linear_case("gated", (4, 2, 2), each=True, ends=[[3, 9], [0, 5, 5]])),
    "linear_delta": ("linear", linear_case("delta", (2, 1, 2), start=True)),
    "linear_gated_delta": ("linear", linear_case("gated_delta", (2, 2, 4), ends=[[5, 7], [9]], start=True)),
    "linear_gated_delta_each": ("linear", linear_case("gated_delta", (4, 1, 2), each=True, start=True)),
    "encdec": ("3", encdec),
    "sinusoids": ("position", sinusoids),
    "mha_cross": ("4", mha_cross),
    "mha_cross_shared": ("4", mha_cross_shared),
    "mha_mask": ("5", mha_mask),
    "mha_mask_keys": ("5", mha_mask_keys),
    "mha_dropout_mask": ("5", mha_dropout_mask),
    "mha_valid": ("6", mha_valid),
    "mha_valid_rows": ("6", mha_valid_rows),
    "mha_additive": ("6", mha_additive),
    "mha_bilinear_inside": ("6", mha_bilinear_inside),
    "mha_general": ("6", mha_general),
    "mha_gate_elements": ("6", mha_gate_elements),
    "mha_gate_heads": ("6", mha_gate_heads),
    "mha_ones": ("6", mha_ones),
    "seqfirst_bias": ("7", seqfirst_bias),
    "seqfirst_nobias": ("7", seqfirst_nobias),
    "seqfirst_mask_keys": ("7", seqfirst_mask_keys),
    "seqfirst_mask_shared": ("7", seqfirst_mask_shared),
    "seqfirst_relative": ("7", seqfirst_relative),
    "ops": ("tensor", ops),
    "optim": ("optim", optim),
}


def main(check):
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
    files = {f"{name}.safetensors": build(name, *row) for name, row in CASES.items()}
    total = sum(map(len, files.values()))
    assert total < TOTAL_LIMIT, total
    print(f"{len(files)} files, {total} bytes, {len(CHECKED)} cross-checks against PyTorch's own layers", file=sys.stderr)
    return write(GOLDEN, files, check)


def write(target, files, check):
    """Writes the files of a folder and removes files that belong to no case; or only compares."""
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
