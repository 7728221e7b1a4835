"""Writes testdata/positions/*.safetensors: positions, relative biases, norms of queries and keys, sinks.

The files are written like those of golden.py, from formulas in PyTorch primitives in float64, with the same names.
Results are compared with functions and modules of `transformers` where it has them; their settings are in the metadata,
with the keys of config.json.

    python testdata/positions.py           write the files
    python testdata/positions.py --check   compare the files with what would be written; exit 1 on a difference
"""

import json
import math
import os
import sys
from pathlib import Path
from unittest.mock import patch

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is loaded but code

import golden  # sets what must be set before torch is loaded
from golden import CHECKED, causal_mask, masked_softmax, project, qkv, scaled_dot, split

import torch
import torch.nn.functional as F
from torch import nn
from transformers import GptOssConfig, LlamaConfig, Qwen3Config, T5Config
from transformers import __version__ as transformers_version
from transformers import logging
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom import modeling_bloom
from transformers.models.deberta_v2 import modeling_deberta_v2
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.gptj import modeling_gptj
from transformers.models.mpt import modeling_mpt
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.t5 import modeling_t5
from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert
from transformers.models.wav2vec2_conformer import modeling_wav2vec2_conformer

logging.set_verbosity_error()  # it warns of settings that are here to be tested
TARGET = Path(__file__).resolve().parent / "positions"


def nearly(c, ours, theirs, what, rtol=3e-6, atol=3e-6):
    """Compares with code that computes in float32 internally."""
    if c.dtype == torch.float64:
        torch.testing.assert_close(ours, theirs.double(), rtol=rtol, atol=atol, msg=lambda m: f"{c.name}: {what}: {m}")
        CHECKED.add(f"{c.name} against {what}")


def attend(c, q, k, v, scores=None, *, bias=None, softcap=None, mask=None, sinks=None, through=("out",), **more):
    """Scaled dot product unless scores are given, soft-cap, bias, mask, softmax with a sink per head, weighted sum."""
    scores = scaled_dot(c, q, k) if scores is None else scores
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    shown = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    if sinks is None:
        weights = masked_softmax(scores, shown)
        lse = torch.logsumexp(scores.masked_fill(~shown, -math.inf), -1)
    else:
        column = sinks[:, None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores.masked_fill(~shown, -math.inf), column], -1)
        weights = torch.softmax(scores, -1)[..., :-1]
        lse = torch.logsumexp(scores, -1)
    results = dict(out=weights @ v, weights=weights, **({"lse": lse} if "lse" in through else {}))
    c.finish(**results, **more, through=through)
    return results


# ---------------------------------------------------------------- RoPE

# rope_type: a function that returns the frequencies of dim elements, by the paper's formula, and the factor of the result.


def plain(dim, r, most):
    return r["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim), 1.0


def linear(dim, r, most):
    return plain(dim, r, most)[0] / r["factor"], 1.0


def dynamic(dim, r, most):
    length = max(r["seq_len"], most)
    base = r["rope_theta"] * (r["factor"] * length / most - (r["factor"] - 1)) ** (dim / (dim - 2))
    return plain(dim, {"rope_theta": base}, most)[0], 1.0


def yarn(dim, r, most):
    trained, base = r["original_max_position_embeddings"], r["rope_theta"]
    factor = r["factor"] or most / trained
    turns = lambda n: dim * math.log(trained / (n * 2 * math.pi)) / (2 * math.log(base))
    low, high = turns(r.get("beta_fast", 32)), turns(r.get("beta_slow", 1))
    if r.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / (high - low + (0.001 if low == high else 0))).clamp(0, 1)
    f = plain(dim, r, most)[0]
    scale = lambda m: 0.1 * m * math.log(factor) + 1
    attention = r.get("attention_factor")
    if attention is None and r.get("mscale") and r.get("mscale_all_dim"):
        attention = scale(r["mscale"]) / scale(r["mscale_all_dim"])
    return f / factor * ramp + f * (1 - ramp), scale(1) if attention is None else attention


def longrope(dim, r, most):
    trained = r["original_max_position_embeddings"]
    by = r["long_factor"] if r["seq_len"] > trained else r["short_factor"]
    factor = r.get("factor") or most / trained
    attention = r.get("attention_factor")
    if attention is None:
        attention = math.sqrt(1 + math.log(factor) / math.log(trained))
    return plain(dim, r, most)[0] / torch.tensor(by, dtype=torch.float64), attention


def llama3(dim, r, most):
    f = plain(dim, r, most)[0]
    wave, trained = 2 * math.pi / f, r["original_max_position_embeddings"]
    low, high = r["low_freq_factor"], r["high_freq_factor"]
    smooth = (trained / wave - low) / (high - low)
    between = (1 - smooth) * f / r["factor"] + smooth * f
    return torch.where(wave > trained / low, f / r["factor"], torch.where(wave < trained / high, f, between)), 1.0


def proportional(dim, r, most):
    f = plain(dim, r, most)[0] / r.get("factor", 1.0)
    f[int(r["partial_rotary_factor"] * dim // 2) :] = 0
    return f, 1.0


SCALINGS = dict(default=plain, linear=linear, dynamic=dynamic, yarn=yarn, longrope=longrope, llama3=llama3)
SCALINGS["proportional"] = proportional


def frequencies(c, dim, parameters, most):
    """Returns the frequencies for dim rotated elements, after comparing them with transformers."""
    kind = parameters["rope_type"]
    f, factor = SCALINGS[kind](dim, parameters, most)
    if kind in ROPE_INIT_FUNCTIONS:
        given = {k: v for k, v in parameters.items() if k != "seq_len"}
        config = LlamaConfig(head_dim=dim, max_position_embeddings=most, rope_parameters=given)
        theirs, their_factor = ROPE_INIT_FUNCTIONS[kind](config, seq_len=parameters.get("seq_len"))
        nearly(c, f, theirs, f"transformers' {kind!r}", atol=0)
        assert abs(factor - their_factor) < 1e-12, (c.name, factor, their_factor)
    return f, factor


def turned(x, cos, sin, adjacent):
    """Rotates the pairs (a, b) of x. Elements without an angle are unchanged."""
    n = cos.shape[-1]
    y = x.clone()
    at_a, at_b = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if adjacent else (slice(0, n), slice(n, 2 * n))
    a, b = x[..., at_a], x[..., at_b]
    y[..., at_a], y[..., at_b] = a * cos - b * sin, a * sin + b * cos
    return y


def angles(c, f, factor, positions):
    """Cosines and sines [B 1 L n] of positions [B L]. The angles are exact in both precisions."""
    by = torch.as_tensor(positions, dtype=torch.float64)[:, None, :, None] * f
    return (by.cos() * factor).to(c.dtype), (by.sin() * factor).to(c.dtype)


def rope(parameters={}, *, size=22, dim=None, adjacent=False, most=4096, queries=None, keys=None, offset=None):
    """queries and keys are positions [B or 1, L]; offset determines the positions of keys."""

    def run(c):
        r = {"rope_type": "default", "rope_theta": 10000.0, **parameters}
        turn = dim or size
        c.note(size=dim or 0, adjacent=adjacent, rope_parameters=json.dumps(r), max_position_embeddings=most)
        q, k, v = qkv(c, lq=5, lk=7, e=size, v=3)
        at_k = [list(range(7))] if keys is None else keys
        at_q = [[j for j in at_k[0][2:]]] if queries is None else queries
        if keys is not None or queries is not None:
            c.ints("in.key_positions", at_k)
            c.ints("in.query_positions", at_q)
        f, factor = frequencies(c, turn, r, most)
        (cq, sq), (ck, sk) = angles(c, f, factor, at_q), angles(c, f, factor, at_k)
        tq, tk = turned(q, cq, sq, adjacent), turned(k, ck, sk, adjacent)
        check_turned(c, q, tq, cq, sq, adjacent)
        check_turned(c, k, tk, ck, sk, adjacent)
        attend(c, tq, tk, v, turned_q=tq, turned_k=tk, through=("out", "turned_q", "turned_k"))

    return run


def check_turned(c, x, y, cos, sin, adjacent):
    if adjacent:
        n = 2 * cos.shape[-1]
        rows = [t[:, 0].expand(len(x), -1, -1) for t in (sin, cos)]
        theirs = modeling_gptj.apply_rotary_pos_emb(x[..., :n].transpose(1, 2), *rows).transpose(1, 2)
        c.agrees(y[..., :n], theirs, "GPT-J's apply_rotary_pos_emb")
        return
    whole = [torch.cat([t, t], -1)[:, 0] for t in (cos, sin)]
    theirs, _ = modeling_gpt_neox.apply_rotary_pos_emb(x, x, *whole)
    c.agrees(y, theirs, "GPT-NeoX's apply_rotary_pos_emb")


YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=4096)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
LLAMA3 |= dict(original_max_position_embeddings=8192, rope_theta=500000.0)
LONGROPE = dict(rope_type="longrope", original_max_position_embeddings=4096, factor=32.0)
LONGROPE["short_factor"] = [1.0, 1.02, 1.05, 1.1, 1.2, 1.25, 1.5, 2.0, 2.25, 2.5, 2.75]
LONGROPE["long_factor"] = [1.0, 1.5, 2.25, 4.0, 6.5, 9.0, 14.5, 22.0, 34.0, 48.5, 63.0]
FAR = dict(  # near and far, backwards, before the first, and beyond what float32 counts exactly
    queries=[[4, 3, 2, 1, 0], [5000, 131071, -7, 20000003, 1]],
    keys=[[0, 1, 2, 3, 4, 5, 6], [5000, 131072, 262144, -1, 20000001, 1, 1]],
)

ROPES = {
    "half": rope(),
    "adjacent": rope(adjacent=True),
    "partial": rope(dim=14),
    "partial_adjacent": rope(dim=14, adjacent=True),
    "base": rope({"rope_theta": 500000.0}),
    "offsets": rope(queries=[[3, 4, 5, 6, 7], [13, 14, 15, 16, 17]], keys=[[1, 2, 3, 4, 5, 6, 7], [11, 12, 13, 14, 15, 16, 17]]),
    "ids": rope(**FAR),
    "ids_adjacent": rope(adjacent=True, **FAR),
    "linear": rope(dict(rope_type="linear", factor=4.0), **FAR),
    "dynamic": rope(dict(rope_type="dynamic", factor=2.0, seq_len=10000), **FAR),
    "dynamic_short": rope(dict(rope_type="dynamic", factor=2.0, seq_len=1000), **FAR),
    "yarn": rope(YARN, **FAR),
    "yarn_partial": rope(YARN, dim=14, **FAR),
    "yarn_ratio": rope(YARN | dict(factor=None), most=40960, **FAR),
    "yarn_exact": rope(YARN | dict(truncate=False, beta_fast=32.0, beta_slow=1.0, factor=32.0, rope_theta=150000.0), **FAR),
    "yarn_betas": rope(YARN | dict(beta_fast=8.0, beta_slow=2.5), **FAR),
    "yarn_attention": rope(YARN | dict(attention_factor=0.875), **FAR),
    "yarn_mscale": rope(YARN | dict(factor=40.0, mscale=1.0, mscale_all_dim=0.707), **FAR),
    "yarn_step": rope(YARN | dict(original_max_position_embeddings=6, beta_fast=1.5), **FAR),
    "longrope_short": rope(LONGROPE | dict(seq_len=4096), most=131072, **FAR),
    "longrope_long": rope(LONGROPE | dict(seq_len=4097), most=131072, **FAR),
    "longrope_ratio": rope(LONGROPE | dict(seq_len=4097, factor=None), most=65536, **FAR),
    "longrope_attention": rope(LONGROPE | dict(seq_len=4097, attention_factor=1.25), most=131072, **FAR),
    "llama3": rope(LLAMA3, most=131072, **FAR),
    "llama3_partial": rope(LLAMA3 | dict(factor=32.0), dim=14, most=131072, **FAR),
    "proportional": rope(dict(rope_type="proportional", partial_rotary_factor=0.5), **FAR),
}

# ---------------------------------------------------------------- biases by position


def distances(lq, lk):
    """Key minus query, with the last query at the last key: [Lq Lk]."""
    return torch.arange(lk) - torch.arange(lq)[:, None] - (lk - lq)


def alibi_slopes(n):
    power = 2 ** math.floor(math.log2(n))
    near = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    return near + [2 ** (-4 * i / power) for i in range(1, 2 * (n - power), 2)]


def alibi_heads(c):
    """The slopes of 1 to 70 heads."""
    for n in range(1, 71):
        slopes = torch.tensor(alibi_slopes(n), dtype=c.dtype)
        nearly(c, slopes.double(), modeling_bloom._get_alibi_slopes(n, "cpu"), f"BLOOM's slopes of {n} heads")
        c.want(f"want.slopes.{n}", slopes)
    mpt = modeling_mpt.build_mpt_alibi_tensor(12, 2)
    c.want("want.mpt.12", -mpt[:, 0, 0].to(c.dtype))  # distance 1, in MPT's own order of heads


def alibi(heads):
    def run(c):
        q, k, v = qkv(c, h=heads, v=3)
        slopes = torch.tensor(alibi_slopes(heads), dtype=c.dtype)
        bias = -slopes[:, None, None] * distances(5, 7).abs()
        shown = causal_mask(5, 7, 2)
        got = attend(c, q, k, v, bias=bias, mask=shown)
        # BLOOM adds slope·j: with a causal mask, this differs only by a constant of each row.
        theirs = modeling_bloom.build_alibi_tensor(torch.ones(1, 7), heads, torch.float64).view(1, heads, 1, 7)
        their_weights = masked_softmax(scaled_dot(c, q, k) + theirs.to(c.dtype), shown)
        nearly(c, got["weights"], their_weights, "BLOOM's build_alibi_tensor")
        c.note(causal=True)

    return run


# number of buckets, MaxDistance
BUCKETS = [(32, 128), (32, 32), (32, 17), (8, 20), (6, 10), (33, 100), (320, 800), (4, 5), (2, 7), (128, 1000)]
BUCKETS += [(10, 160), (20, 160), (48, 81), (96, 81)]  # where a logarithm in float64 gives others
# MaxDistance equals or is below the number of single distances: of one direction, or of both
BUCKETS += [(33, 8), (32, 9), (256, 128), (512, 128)]


def their_buckets(distances, causal, buckets, most):
    """T5's, with a logarithm that is rounded to float32 as on all common machines: that of MKL's reproducible mode,
    which golden.py asks for, is not."""
    with patch.object(torch, "log", lambda x: x.double().log().float()):
        return modeling_t5.T5Attention._relative_position_bucket(distances, not causal, buckets, most)


def t5_buckets(causal):
    """The buckets of every distance (key minus query) from -300 to 300, and of some larger distances; -1 where a key
    before the query gets a negative number, with which transformers fails."""

    def run(c):
        at = torch.cat([torch.arange(-300, 301), torch.tensor([s * 10**n for n in (3, 6, 9) for s in (-1, 1)])])
        c.note(causal=causal)
        c.ints("in.distances", at)
        for n, most in BUCKETS:
            if (n if causal else n // 2) >= 2:
                found, behind = their_buckets(at, causal, n, most), their_buckets(-at.abs(), causal, n, most)
                c.ints(f"buckets.{n}.{most}", torch.where(behind < 0, -1, found))

    return run


def t5(causal, lq=11, lk=13):
    def run(c):
        q, k, v = qkv(c, lq=lq, lk=lk, e=5, v=3)
        table = c.normal("param.table", 8, 3)
        c.note(max_distance=11, causal=causal, score="dot")
        config = T5Config(
            num_heads=3, relative_attention_num_buckets=8, relative_attention_max_distance=11, is_decoder=causal
        )
        theirs = modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        buckets = their_buckets(distances(lq, lk), causal, 8, 11)
        bias = table[buckets].permute(2, 0, 1)
        if c.dtype == torch.float64:
            theirs.relative_attention_bias.weight = nn.Parameter(table.detach())
            c.agrees(bias[None], theirs.compute_bias(lq, lk, past_seen_tokens=lk - lq), "T5Attention.compute_bias")
        attend(c, q, k, v, q @ k.mT, bias=bias, mask=causal_mask(lq, lk, lk - lq) if causal else None)

    return run


def shaw(of_heads, lq=5, lk=7):
    def run(c):
        q, k, v = qkv(c, lq=lq, lk=lk, v=3)
        r = c.normal("param.r", *([3] if of_heads else []), 7, 11)  # distances -3 to 3
        at = distances(lq, lk).clamp(-3, 3) + 3
        if of_heads:
            bias = torch.einsum("bhie,hije->bhij", q, r[:, at]) / math.sqrt(11)
        else:
            bias = torch.einsum("bhie,ije->bhij", q, r[at]) / math.sqrt(11)
        if not of_heads and lq == lk:
            module = nn.Module()
            module.left_max_position_embeddings = module.right_max_position_embeddings = 3
            module.distance_embedding = lambda ids: r[ids]
            module.scaling = 11**-0.5
            _, theirs = modeling_wav2vec2_bert._apply_relative_key_position_encoding(module, q, k)
            c.agrees(bias, theirs, "Wav2Vec2-BERT's relative_key")
        attend(c, q, k, v, bias=bias)

    return run


def transformer_xl(of_heads, lq=5, lk=7, most=8):
    """(q+u)·k + (q+v)·r_(i-j), Dai et al. 2019, section 3.3; vector n of r is for j - i = n - most."""

    def run(c):
        q, k, values = qkv(c, lq=lq, lk=lk, v=3)
        r = c.normal("param.r", *([3] if of_heads else []), 2 * most + 1, 11)
        u, v = c.normal("param.pos_bias_u", 3, 11), c.normal("param.pos_bias_v", 3, 11)
        at = distances(lq, lk).clamp(-most, most) + most
        every = r if of_heads else r.expand(3, -1, -1)
        terms = {
            "a": q @ k.mT,
            "b": torch.einsum("bhie,hije->bhij", q, every[:, at]),
            "c": torch.einsum("he,bhje->bhj", u, k)[:, :, None],
            "d": torch.einsum("he,hije->hij", v, every[:, at])[None],
        }
        scores = sum(terms.values()) / math.sqrt(11)
        if lq == lk and most == lq - 1 and not of_heads:
            module = nn.Module()
            module.linear_pos = nn.Identity()  # r has been mapped: the same for all heads
            module.head_size, module.scaling = 11, 11**-0.5
            module.pos_bias_u, module.pos_bias_v = (nn.Parameter(t.detach()) for t in (u, v))
            their_q, bias = modeling_wav2vec2_conformer._apply_relative_position_encoding(module, q, k, r[None].repeat(1, 1, 3))
            c.agrees(scores, their_q @ k.mT / math.sqrt(11) + bias, "Wav2Vec2-Conformer's relative positions")
        attend(c, q, k, values, scores)

    return run


def deberta(keys, queries, of_heads=True, lq=5, lk=7, most=3):
    """q·k + q·keys_c + k·queries_c, He et al. 2021, section 3.1; vector n of both is for j - i = n - most."""

    def run(c):
        q, k, values = qkv(c, lq=lq, lk=lk, v=3)
        at = distances(lq, lk).clamp(-most, most) + most
        c.note(scale=(11 * (1 + keys + queries)) ** -0.5)
        r = {
            name: c.normal(f"param.{name}", *([3] if of_heads else []), 2 * most + 1, 11)
            for name, used in (("keys", keys), ("queries", queries)) if used
        }
        every = {name: x if of_heads else x.expand(3, -1, -1) for name, x in r.items()}
        scores = q @ k.mT
        if keys:
            scores = scores + torch.einsum("bhie,hije->bhij", q, every["keys"][:, at])
        if queries:
            scores = scores + torch.einsum("bhje,hije->bhij", k, every["queries"][:, at])
        scores = scores / math.sqrt(11 * (1 + keys + queries))
        if lq == lk and keys and queries and c.dtype == torch.float64:
            their_scores = their_disentangled(q, k, every, most)
            nearly(c, scores, their_scores, "DisentangledSelfAttention")
        attend(c, q, k, values, scores)

    return run


def their_disentangled(q, k, r, most):
    """Scores of DeBERTa-v2. Its vectors are for i - j from -span to span - 1."""
    module = nn.Module()
    module.transpose_for_scores = lambda x, heads: x[0]
    module.num_attention_heads, module.pos_att_type, module.share_att_key = 3, ["c2p", "p2c"], False
    module.pos_ebd_size, module.position_buckets, module.max_relative_positions = most + 1, -1, most + 1
    flipped = {name: torch.cat([x[:, -1:], x.flip(1)], 1)[None] for name, x in r.items()}
    module.pos_key_proj, module.pos_query_proj = lambda _: flipped["keys"], lambda _: flipped["queries"]
    flat = [x.reshape(-1, *x.shape[2:]) for x in (q, k)]
    at = (-distances(q.shape[2], k.shape[2])).clamp(-most, most)
    theirs = modeling_deberta_v2.DisentangledSelfAttention.disentangled_attention_bias
    bias = theirs(module, *flat, at, torch.zeros(2 * most + 2, 1).double(), 3)
    return q @ k.mT / math.sqrt(33) + bias.reshape(q.shape[:3] + k.shape[2:3])


# ---------------------------------------------------------------- sinks, soft-cap


def sinks(masked, softcap=None):
    def run(c):
        q, k, v = qkv(c, h=6, g=3, v=3)
        sink = c.normal("in.sinks", 6, std=2)
        k6, v6 = k[:, [h // 2 for h in range(6)]], v[:, [h // 2 for h in range(6)]]
        mask = c.mask("in.mask", 2, 1, 5, 7, dead=(1, 0, 2)) if masked else None
        bias = c.normal("in.bias", 6, 5, 7) if masked else None
        if softcap:
            c.note(softcap=softcap)
        got = attend(c, q, k6, v6, bias=bias, mask=mask, softcap=softcap, sinks=sink, through=("out", "weights", "lse"))
        if not masked and not softcap:
            module = nn.Module()
            module.num_key_value_groups, module.sinks = 2, sink
            out, weights = modeling_gpt_oss.eager_attention_forward(module, q, k, v, None, 11**-0.5)
            c.agrees(got["out"], out.transpose(1, 2), "gpt-oss's attention, out")
            c.agrees(got["weights"], weights, "gpt-oss's attention, weights")

    return run


def log_sum_exp(c):
    q, k, v = qkv(c, v=3)
    attend(c, q, k, v, mask=causal_mask(5, 7, 2), through=("out", "lse"))
    c.note(causal=True)


# ---------------------------------------------------------------- layers


def layer_params(c, width, heads, groups, size, bias):
    def affine(name, n_in, n_out):
        w = c.normal(f"param.{name}.weight", n_out, n_in, std=n_in**-0.5)
        return w, (c.normal(f"param.{name}.bias", n_out, std=0.5) if bias else None)

    return {
        "q": affine("q", width, heads * size),
        "k": affine("k", width, groups * size),
        "v": affine("v", width, groups * size),
        "out": affine("out", heads * size, width),
    }


def layer(c, norm, *, heads=4, groups=2, size=10, width=15, length=7, bias=False, parameters=None, scale=None, sinks=False):
    """A causal layer with QK-norm, positions and sinks. Returns out, weights, its projections, norms and angles."""
    c.note(heads=heads, kv_heads=groups, norm=norm or "", causal=True)
    x = c.normal("in.x", 2, length, width)
    maps = layer_params(c, width, heads, groups, size, bias)
    q, k = split(project(x, maps["q"]), heads), split(project(x, maps["k"]), groups)
    v = split(project(x, maps["v"]), groups)
    gains = {}
    if norm == "rms":
        for name, t in (("q", q), ("k", k)):
            gains[name] = c.uniform(f"param.{name}_norm.weight", 0.5, 1.5, size)
        c.note(eps=1e-6)
        unit = lambda t, g: t / (t.square().mean(-1, keepdim=True) + 1e-6).sqrt() * g
        q, k = unit(q, gains["q"]), unit(k, gains["k"])
    if norm == "l2":
        q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
    turn = None
    if parameters:
        r = {"rope_theta": 10000.0, **parameters}
        c.note(rope_parameters=json.dumps(r), max_position_embeddings=4096, size=0, adjacent=False)
        turn = angles(c, *frequencies(c, size, r, 4096), [list(range(length))])
        q, k = turned(q, *turn, False), turned(k, *turn, False)
    if scale is not None:
        c.note(scale=scale)
    k, v = (t[:, [h // (heads // groups) for h in range(heads)]] for t in (k, v))
    scores = q @ k.mT * (size**-0.5 if scale is None else scale)
    shown = causal_mask(length, length, 0)
    sink = c.normal("param.sinks", heads) if sinks else None
    scores = scores.masked_fill(~shown, -math.inf)
    if sinks:
        scores = torch.cat([scores, sink[:, None, None].expand(2, -1, length, 1)], -1)
    weights = torch.softmax(scores, -1)[..., :length]
    out = project((weights @ v).transpose(1, 2).flatten(-2), maps["out"])
    c.finish(out=out, weights=weights)
    return x, out, weights, maps, gains, turn, sink


def fill(module, maps, **others):
    """Copies parameters into a layer of transformers."""
    state = {}
    for ours, theirs in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("out", "o_proj")):
        state[f"{theirs}.weight"] = maps[ours][0].detach()
        if maps[ours][1] is not None:
            state[f"{theirs}.bias"] = maps[ours][1].detach()
    module.double().load_state_dict({**state, **{k: v.detach() for k, v in others.items()}})
    return module.eval()


def qwen3(c):
    """QK-norm with gains, then RoPE, with grouped queries."""
    x, out, weights, maps, gains, (cos, sin), _ = layer(c, "rms", parameters={"rope_type": "default"})
    if c.dtype == torch.float64:
        config = Qwen3Config(
            hidden_size=15, num_attention_heads=4, num_key_value_heads=2, head_dim=10, rms_norm_eps=1e-6, attn_implementation="eager"
        )
        theirs = fill(
            modeling_qwen3.Qwen3Attention(config, 0), maps, **{f"{n}_norm.weight": g for n, g in gains.items()}
        )
        whole = [torch.cat([t, t], -1)[:, 0] for t in (cos, sin)]
        want, want_weights = theirs(x, whole, torch.zeros(7, 7).masked_fill(~causal_mask(7, 7, 0), -math.inf).double())
        nearly(c, out, want, "Qwen3Attention, out")
        nearly(c, weights, want_weights, "Qwen3Attention, weights")


def gpt_oss(c):
    """Sinks, YaRN without rounding, biases, with grouped queries."""
    r = dict(rope_type="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False)
    r |= dict(original_max_position_embeddings=4096, rope_theta=150000.0)
    x, out, weights, maps, _, (cos, sin), sink = layer(c, None, bias=True, parameters=r, sinks=True)
    if c.dtype == torch.float64:
        config = GptOssConfig(
            hidden_size=15, num_attention_heads=4, num_key_value_heads=2, head_dim=10, attention_bias=True, attn_implementation="eager"
        )
        theirs = fill(modeling_gpt_oss.GptOssAttention(config, 0), maps, sinks=sink)
        hidden = torch.zeros(7, 7).masked_fill(~causal_mask(7, 7, 0), -math.inf).double()
        want, want_weights = theirs(x, [t[:, 0] for t in (cos, sin)], hidden)
        c.agrees(out, want, "GptOssAttention, out")
        c.agrees(weights, want_weights, "GptOssAttention, weights")


def qk_l2(c):
    """Henry et al. 2020: vectors of length 1 and a trained scale."""
    layer(c, "l2", scale=3.5)


# file name: (system, function)
CASES = {
    **{f"rope_{name}": ("rope", run) for name, run in ROPES.items()},
    "alibi_heads": ("slopes", alibi_heads),
    "alibi_4": ("bias", alibi(4)),
    "alibi_7": ("bias", alibi(7)),
    "t5_buckets_causal": ("buckets", t5_buckets(True)),
    "t5_buckets_both": ("buckets", t5_buckets(False)),
    "t5_causal": ("bias", t5(True)),
    "t5_both": ("bias", t5(False)),
    "shaw": ("bias", shaw(False)),
    "shaw_square": ("bias", shaw(False, 7, 7)),
    "shaw_heads": ("bias", shaw(True)),
    "xl": ("bias", transformer_xl(False)),
    "xl_square": ("bias", transformer_xl(False, 7, 7, 6)),
    "xl_heads": ("bias", transformer_xl(True)),
    "xl_clipped": ("bias", transformer_xl(True, most=2)),
    "deberta": ("bias", deberta(True, True)),
    "deberta_square": ("bias", deberta(True, True, lq=7)),
    "deberta_keys": ("bias", deberta(True, False)),
    "deberta_queries": ("bias", deberta(False, True, of_heads=False, most=9)),
    "sinks": ("sinks", sinks(False)),
    "sinks_mask": ("sinks", sinks(True)),
    "sinks_softcap": ("sinks", sinks(True, softcap=1.5)),
    "log_sum_exp": ("sinks", log_sum_exp),
    "layer_qwen3": ("layer", qwen3),
    "layer_gpt_oss": ("layer", gpt_oss),
    "layer_qk_l2": ("layer", qk_l2),
}


def main(check):
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
    files = {}
    for name, (system, function) in CASES.items():
        files[f"{name}.safetensors"] = golden.build(name, system, function)
    total = sum(map(len, files.values()))
    print(f"{len(files)} files, {total} bytes, {len(CHECKED)} cross-checks, transformers {transformers_version}", file=sys.stderr)
    return golden.write(TARGET, files, check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
