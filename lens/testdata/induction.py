"""Writes lens/testdata/induction: a transformer in GPT-2's format whose weights are set by hand, so that every head is known.

16 tokens, 13 positions, 2 layers of 4 heads of 16 columns, feed-forward layers of zeros. Token 0 begins each text.

    pip install -r lens/testdata/requirements.txt
    python lens/testdata/induction.py           write the files
    python lens/testdata/induction.py --check   compare the files with what would be written; exit 1 on a difference

The residual has 64 columns, and each column has one meaning:

    tok[16]   one-hot: the token at this position. The embedding writes it.
    prev[16]  one-hot: the token at the position before. Head 0.0 writes it.
    out[16]   the prediction: the last layer's logit of token t is out[t]. Only heads write it.
    pos[13]   one-hot: the position. The position embedding writes it.
    plus, minus   +C and -C at every position, with C = 256. The position embedding writes them.
    balance   minus the sum of everything above, so that the mean of the residual is 0.

Layer norm subtracts the mean, which is 0, and divides by the standard deviation. Plus and minus are so large that the
standard deviation is √(2·C²/64) = 45.25 whatever the heads write: 1 in a further column changes it by 4 millionths. The
gain of each layer norm is 45.25 for columns that may be read and 0 for plus, minus and balance, so a layer norm is the
identity on what is read, to a ten-thousandth. The file is float16, which stores all these numbers exactly.

With scores SHARP = 20 a head's weights are 1 and 0 to eight digits. A query that matches no key of head 1.1 has its
score with token 0 instead (half of MATCH), whose value is 0 there.

    head  query        key            attends to                         writes
    0.0   pos i        pos j, at j+1  the position before                tok → prev, times 1      previous token
    0.1   0            0              all positions alike                tok → out, times 1       uniform
    0.2   tok          tok            the same token, itself as well     tok → out, times -1      duplicates
    0.3   constant     tok 0          the first position                 nothing                  sink
    1.0   0            0              all positions alike                prev → out, times 0.25   uniform
    1.1   tok          prev           the token after an equal token     tok → out, times 8       induction
    1.2   prev         tok            the token before, and its like     tok → out, times -0.5    composition by queries
    1.3   constant     tok 0          the first position                 nothing                  sink

Token 0 is never written to out by heads 1.1 and 1.2. Head 1.1 reads keys that head 0.0 has written: the circuit is
input → 0.0 (values), 0.0 → 1.1 (keys), input → 1.1 (queries and values), and 1.1 → logits. First order is wrong about it:
head 1.1's softmax is saturated, so the gradients of its queries and keys are near 0, and the edges into them rank behind
those of the uniform head 0.1.
"""

import math
import os
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import GPT2Config, GPT2LMHeadModel

TARGET = Path(__file__).resolve().parent / "induction"
TOKENS, PLACES, D, HEADS = 16, 13, 64, 4
WIDE = D // HEADS
TOK, PREV, OUT, POS, PLUS, MINUS, BALANCE = 0, 16, 32, 48, 61, 62, 63
C = 256.0
GAIN = 45.25
SHARP, MATCH = 20.0, 12.0  # scores of a match, after the scale 1/√WIDE


def columns(first, scale=1.0, without=()):
    """[D WIDE]: the columns first, first+1, … of the residual, each to one column of a head."""
    w = torch.zeros(D, WIDE)
    for t in range(TOKENS):
        if t not in without:
            w[first + t, t] = scale
    return w


def writes(first, scale):
    """[WIDE D]: each column of a head to one column of the residual, and its negative to balance."""
    w = columns(first, scale).T.contiguous()
    w[:, BALANCE] = -scale
    return w


def places(shift, scale=1.0):
    """[D WIDE]: the position p to column p + shift of a head."""
    w = torch.zeros(D, WIDE)
    for p in range(PLACES):
        if p + shift < WIDE:
            w[POS + p, p + shift] = scale
    return w


def constant(scale):
    """[WIDE]: a bias of queries, in column 0."""
    b = torch.zeros(WIDE)
    b[0] = scale
    return b


def first_token(scale, wide=1):
    """[D WIDE]: token 0 to the first columns of a head."""
    w = torch.zeros(D, WIDE)
    w[TOK, :wide] = scale
    return w


def heads():
    """For each layer and head: weights of query, key and value [D WIDE], bias of queries [WIDE], output [WIDE D]."""
    none, off, root = torch.zeros(D, WIDE), torch.zeros(WIDE), math.sqrt(WIDE)
    nothing = torch.zeros(WIDE, D)
    tok, words = columns(TOK), columns(TOK, without=(0,))
    sink = (none, first_token(1), none, constant(SHARP * root), nothing)
    return [
        [
            (places(0, SHARP * root), places(1), tok, off, writes(PREV, 1)),
            (none, none, tok, off, writes(OUT, 1)),
            (columns(TOK, SHARP * root), tok, tok, off, writes(OUT, -1)),
            sink,
        ],
        [
            (none, none, columns(PREV), off, writes(OUT, 0.25)),
            (columns(TOK, MATCH * root), columns(PREV) + first_token(0.5, WIDE), words, off, writes(OUT, 8)),
            (columns(PREV, SHARP * root), tok, words, off, writes(OUT, -0.5)),
            sink,
        ],
    ]


def build():
    config = GPT2Config(
        vocab_size=TOKENS, n_positions=PLACES, n_embd=D, n_layer=2, n_head=HEADS, n_inner=4, bos_token_id=0,
        eos_token_id=0, tie_word_embeddings=False, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, summary_first_dropout=0,
    )
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        t = model.transformer
        for v in range(TOKENS):
            t.wte.weight[v, TOK + v], t.wte.weight[v, BALANCE] = 1, -1
        for p in range(PLACES):
            t.wpe.weight[p, POS + p], t.wpe.weight[p, BALANCE] = 1, -1
            t.wpe.weight[p, PLUS], t.wpe.weight[p, MINUS] = C, -C
        for layer, block in zip(heads(), t.h):
            block.ln_1.weight[:PLUS] = GAIN
            block.ln_2.weight[:PLUS] = GAIN
            for h, (q, k, v, bias, out) in enumerate(layer):
                own = slice(h * WIDE, (h + 1) * WIDE)
                for i, w in enumerate((q, k, v)):
                    block.attn.c_attn.weight[:, i * D:(i + 1) * D][:, own] = w
                block.attn.c_attn.bias[:D][own] = bias
                block.attn.c_proj.weight[own] = out
        t.ln_f.weight[:PLUS] = GAIN
        for v in range(TOKENS):
            model.lm_head.weight[v, OUT + v] = 1
    return model.half()


def main():
    model = build()
    if "--check" not in sys.argv:
        model.save_pretrained(TARGET)
        (TARGET / "generation_config.json").unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        bad = [n for n in ("config.json", "model.safetensors")
               if (Path(folder) / n).read_bytes() != (TARGET / n).read_bytes()]
    if bad:
        sys.exit(f"differ: {', '.join(bad)}")


if __name__ == "__main__":
    main()
