"""What PyTorch users write for each operation."""

import math
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from peers import Unsupported

version = torch.__version__
warnings.filterwarnings("ignore", message="enable_nested_tensor")  # which does not go with norms in front


def prepare(w):
    torch.manual_seed(1)
    if torch.get_num_threads() != w.threads:
        torch.set_num_threads(w.threads)


def passes(w, forward, leaves, module=None):
    """Forward without a graph, or forward and backward to the leaves."""
    if not w.train:
        # A module in training mode keeps its graph, as it would in training.
        guard = torch.enable_grad if module is not None and module.training else torch.inference_mode

        def call():
            with guard():
                forward()

        return call
    for x in leaves:
        x.requires_grad_()
    dout = torch.randn_like(forward())

    def step():
        for x in leaves:
            x.grad = None
        forward().backward(dout)

    return step


def gemm(w):
    a, b = torch.randn(w.lq, w.e), torch.randn(w.e, w.lk)
    return {"matmul": passes(w, lambda: torch.matmul(a, b), [])}


def attend(scores, v, seen, w):
    """Softmax of scores that are all in memory, and the mean of the values."""
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf)
    weights = torch.softmax(scores, -1)
    return F.dropout(weights, w.dropout) @ v if w.dropout else weights @ v


def visible(w, explicit=False):
    """The boolean mask, and whether to say is_causal instead."""
    seen = w.seen(np)
    if w.causal and seen is None and explicit:
        seen = np.tri(w.lq, w.lk, dtype=bool)
    return (None if seen is None else torch.from_numpy(seen)), w.causal and seen is None


def inputs(w):
    return torch.randn(w.b, w.h, w.lq, w.e), torch.randn(w.b, w.g, w.lk, w.e), torch.randn(w.b, w.g, w.lk, w.v)


def sdpa(w):
    q, k, v = inputs(w)
    if w.weights:
        if w.g != w.h:
            raise Unsupported("weights of heads that share keys")
        seen, _ = visible(w, explicit=True)
        return {"softmax(q kT) v": passes(w, lambda: attend(q @ k.mT / math.sqrt(w.e), v, seen, w), [q, k, v])}
    seen, causal = visible(w)

    def forward():
        return F.scaled_dot_product_attention(q, k, v, seen, w.dropout, causal, enable_gqa=w.g != w.h)

    return {"scaled_dot_product_attention": passes(w, forward, [q, k, v])}


def decode(w):
    found = sdpa(w)
    if w.lq == 1 and w.g < w.h and w.mask == "none" and not w.weights:
        # The query heads that share keys as more queries of one head.
        q, k, v = inputs(w)
        q = q.view(w.b, w.g, w.h // w.g, w.e)
        found["heads of a group as queries"] = passes(w, lambda: F.scaled_dot_product_attention(q, k, v), [])
    return found


def additive(w):
    if w.g != w.h:
        raise Unsupported("heads that share keys")
    q, k, v = inputs(w)
    wq, wk = torch.randn(w.width, w.e) / math.sqrt(w.e), torch.randn(w.width, w.e) / math.sqrt(w.e)
    wv = torch.randn(w.width) / math.sqrt(w.width)
    seen, _ = visible(w, explicit=True)

    def forward():
        features = torch.tanh(F.linear(q, wq).unsqueeze(-2) + F.linear(k, wk).unsqueeze(-3))
        return attend(features @ wv, v, seen, w)

    return {"broadcast tanh": passes(w, forward, [q, k, v, wq, wk, wv])}


def gaussian(w):
    if w.g != w.h:
        raise Unsupported("heads that share keys")
    q, k, v = inputs(w)
    factors = (1 + 0.1 * torch.randn(w.e)) / math.sqrt(w.e)
    seen, _ = visible(w, explicit=True)

    def broadcast():
        d = (q.unsqueeze(-2) - k.unsqueeze(-3)) * factors
        return attend(-0.5 * (d * d).sum(-1), v, seen, w)

    def distances():  # by differences too: a product would lose digits far from the origin
        d = torch.cdist(q * factors, k * factors, compute_mode="donot_use_mm_for_euclid_dist")
        return attend(-0.5 * d * d, v, seen, w)

    leaves = [q, k, v, factors]
    return {"broadcast difference": passes(w, broadcast, leaves), "cdist": passes(w, distances, leaves)}


def mha(w):
    if w.g != w.h or w.e * w.h != w.width or w.v != w.e:
        raise Unsupported("nn.MultiheadAttention has heads of width/heads")
    m = nn.MultiheadAttention(w.width, w.h, w.dropout, batch_first=True).train(w.train or w.dropout > 0)
    x = torch.randn(w.b, w.lq, w.width)
    kv = x if w.lq == w.lk else torch.randn(w.b, w.lk, w.width)
    options = {"need_weights": w.weights, "average_attn_weights": False}
    if w.mask == "padding":
        options["key_padding_mask"] = torch.arange(w.lk)[None] >= torch.tensor(w.lengths())[:, None]
    if w.mask == "bool":  # with causal in it
        options["attn_mask"] = torch.from_numpy(~w.seen(np)[:, 0]).repeat_interleave(w.h, 0)
    elif w.causal:
        options["attn_mask"] = ~torch.ones(w.lq, w.lk, dtype=torch.bool).tril(w.lk - w.lq)
        options["is_causal"] = w.lq == w.lk
    leaves = [x] if kv is x else [x, kv]
    return {"nn.MultiheadAttention": passes(w, lambda: m(x, kv, kv, **options)[0], leaves + list(m.parameters()), m)}


class Translator(nn.Module):
    """The transformer of package seq2seq: layer norm in front, sinusoids, the target's embedding as last map."""

    def __init__(self, w):
        super().__init__()
        self.source, self.target = nn.Embedding(w.vocab, w.width), nn.Embedding(w.vocab, w.width)
        for e in (self.source, self.target):
            nn.init.normal_(e.weight, std=w.width**-0.5)
        self.net = nn.Transformer(
            w.width, w.h, w.layers, w.layers, w.hidden, w.dropout, norm_first=True, batch_first=True
        )
        self.dropout = nn.Dropout(w.dropout)
        position = torch.arange(max(w.lq, w.lk))[:, None] * 10000 ** (-torch.arange(0, w.width, 2) / w.width)
        self.register_buffer("positions", torch.stack([position.sin(), position.cos()], -1).flatten(1))
        self.register_buffer("later", torch.ones(w.lq, w.lq, dtype=torch.bool).triu(1))

    def embed(self, table, ids):
        return self.dropout(table(ids) * math.sqrt(table.embedding_dim) + self.positions[: ids.shape[1]])

    def forward(self, source, read):
        padding = source == 0
        out = self.net(
            self.embed(self.source, source), self.embed(self.target, read), tgt_mask=self.later, tgt_is_causal=True,
            src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )  # fmt: skip
        return F.linear(out, self.target.weight)


def translator(w):
    """A step of training on b pairs, lk tokens in and lq out, as package seq2seq makes it."""
    model = Translator(w).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    first = 4  # behind the special tokens
    source, read = torch.randint(first, w.vocab, (w.b, w.lk)), torch.randint(first, w.vocab, (w.b, w.lq))
    write = torch.randint(first, w.vocab, (w.b, w.lq))

    def step():
        optimiser.zero_grad(set_to_none=True)
        logits = model(source, read)
        loss = F.cross_entropy(logits.flatten(0, 1), write.flatten(), ignore_index=0, label_smoothing=w.smoothing)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), w.clip)
        optimiser.step()
        return loss.item()

    return {"nn.Transformer, AdamW(fused=True)": step}


def linear_maps(*sizes, bias=True, dtype=torch.float32):
    return [nn.Linear(n_in, n_out, bias=bias, dtype=dtype) for n_in, n_out in sizes]


def encode(w):
    """The layers of BERT, written out, and nn.TransformerEncoder on its fast path."""
    table, positions = nn.Embedding(w.vocab, w.width), nn.Embedding(512, w.width)
    norm = nn.LayerNorm(w.width, 1e-12)
    ids, at = torch.randint(w.vocab, (w.b, w.lq)), torch.arange(w.lq)
    embed = lambda: norm(table(ids) + positions(at))

    dtype = torch.bfloat16 if w.storage == "bfloat16" else torch.float32

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.up, self.down = linear_maps(
                (w.width, 3 * w.width), (w.width, w.width), (w.width, w.hidden), (w.hidden, w.width)
            )
            self.norm1, self.norm2 = nn.LayerNorm(w.width, 1e-12), nn.LayerNorm(w.width, 1e-12)

        def forward(self, x):
            q, k, v = self.qkv(x).view(w.b, w.lq, 3, w.h, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(w.b, w.lq, w.width)
            x = self.norm1(x + self.out(y))
            return self.norm2(x + self.down(F.gelu(self.up(x))))

    layers = nn.Sequential(*[Layer() for _ in range(w.layers)]).eval()
    one = nn.TransformerEncoderLayer(w.width, w.h, w.hidden, 0.0, "gelu", 1e-12, batch_first=True)
    encoder = nn.TransformerEncoder(one, w.layers).eval()
    if w.storage == "int8":
        small = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear}, dtype=torch.qint8)
        return {"quantize_dynamic, scaled_dot_product_attention": passes(w, lambda: small(embed()), [])}
    for m in (table, positions, norm, layers, encoder):
        m.to(dtype)
    return {
        "nn.Linear, scaled_dot_product_attention": passes(w, lambda: layers(embed()), []),
        "nn.TransformerEncoder": passes(w, lambda: encoder(embed()), []),
    }


class Decoder:
    """A Llama behind `past` tokens, for `new` more: maps are functions of x, made by `make` from the sizes of their
    inputs and outputs."""

    def __init__(self, w, make, dtype, past, new):
        self.past, self.new = past, new
        self.w, e, kv = w, w.e, w.g * w.e
        self.table = torch.randn(w.vocab, w.width, dtype=dtype) / 30
        self.logits = make(w.width, w.vocab, False, self.table)
        self.gain = torch.ones(w.width, dtype=dtype)
        self.layers = [
            {
                "qkv": make(w.width, w.width + 2 * kv, w.bias),
                "out": make(w.width, w.width, False),
                "gate_up": make(w.width, 2 * w.hidden, False),
                "down": make(w.hidden, w.width, False),
                "k": torch.randn(1, w.g, past + new, e, dtype=dtype),
                "v": torch.randn(1, w.g, past + new, e, dtype=dtype),
            }
            for _ in range(w.layers)
        ]
        angle = torch.arange(past, past + new)[:, None] * 1e5 ** (-torch.arange(0, e, 2) / e)
        self.cos, self.sin = angle.cos().repeat(1, 2).to(dtype), angle.sin().repeat(1, 2).to(dtype)
        self.ids = torch.randint(w.vocab, (new,))

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def step(self):
        w = self.w
        x = self.table[self.ids]
        for layer in self.layers:
            y = F.rms_norm(x, (w.width,), self.gain, 1e-5)
            q, k, v = layer["qkv"](y).view(1, self.new, -1, w.e).transpose(1, 2).split([w.h, w.g, w.g], 1)
            keys, values = layer["k"], layer["v"]
            keys[:, :, self.past :], values[:, :, self.past :] = self.turn(k), v
            y = F.scaled_dot_product_attention(self.turn(q), keys, values, is_causal=self.new > 1, enable_gqa=True)
            x = x + layer["out"](y.transpose(1, 2).reshape(self.new, w.width))
            gate, up = layer["gate_up"](F.rms_norm(x, (w.width,), self.gain, 1e-5)).chunk(2, -1)
            x = x + layer["down"](F.silu(gate) * up)
        return self.logits(F.rms_norm(x[-1:], (w.width,), self.gain, 1e-5))


def generate(w):
    """A token behind lk others, with a cache that has room for it; q, k and v are one map, and gate and up."""
    return decoders(w, w.lk, 1)


def prompt(w):
    """lk tokens, and the logits of the last one."""
    return decoders(w, 0, w.lk)


def decoders(w, past, new):

    def dense(dtype):
        def make(n_in, n_out, bias, weight=None):
            weight = torch.randn(n_out, n_in, dtype=dtype) / 30 if weight is None else weight
            b = torch.zeros(n_out, dtype=dtype) if bias else None
            return lambda x: F.linear(x, weight, b)

        return make

    def packed(n_in, n_out, bias, weight=None):  # kernels of PyTorch's own, for weights with a scale for each row
        weight = torch.randint(-127, 128, (n_out, n_in), dtype=torch.int8)
        scales = torch.full((n_out,), 0.001, dtype=torch.bfloat16)
        return lambda x: torch._weight_int8pack_mm(x, weight, scales)

    def dynamic(n_in, n_out, bias, weight=None):
        m = nn.Sequential(nn.Linear(n_in, n_out, bias=bias))
        return torch.ao.quantization.quantize_dynamic(m, {nn.Linear}, dtype=torch.qint8)

    kinds = {
        "float32": {"float32": (dense(torch.float32), torch.float32)},
        "bfloat16": {"bfloat16": (dense(torch.bfloat16), torch.bfloat16)},
        "int8": {
            "_weight_int8pack_mm, bfloat16": (packed, torch.bfloat16),
            "quantize_dynamic": (dynamic, torch.float32),
        },
    }
    found = {}
    for name, (make, dtype) in kinds[w.storage].items():
        found[name] = passes(w, Decoder(w, make, dtype, past, new).step, [])
    return found


def load(w):
    """The tensors of a file in separate memory: load_file alone maps the file and reads nothing."""
    from safetensors.torch import load_file  # which nothing else needs

    if w.storage == "int8":
        raise Unsupported("no int8 weights in a module")
    dtype = torch.bfloat16 if w.storage == "bfloat16" else torch.float32
    return {"load_file, to(copy=True)": lambda: {k: v.to(dtype, copy=True) for k, v in load_file(w.file).items()}}


operations = {
    "gemm": gemm, "sdpa": sdpa, "decode": decode, "additive": additive, "gaussian": gaussian, "mha": mha,
    "translator": translator, "encode": encode, "generate": generate, "prompt": prompt, "load": load,
}  # fmt: skip
