"""Lesson 6 of docs/lessons.md in PyTorch: masks, layouts and positions."""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)


# lesson: ExampleDocuments
def documents(ends, length):
    place = torch.arange(length)
    document = torch.bucketize(place, ends, right=True)
    same = (document[:, None] == document) & (place < ends[-1])  # [Lq Lk]
    return same & (place[:, None] >= place)  # causal


packed = documents(torch.tensor([2, 5]), 6)
for row in packed:
    print(*("1" if seen else "·" for seen in row))
# lesson end
# Output:
# 1 · · · · ·
# 1 1 · · · ·
# · · 1 · · ·
# · · 1 1 · ·
# · · 1 1 1 ·
# · · · · · ·


# lesson: ExampleALiBi
def alibi(slopes, q, k):
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    scores = q @ k.mT / math.sqrt(q.shape[-1]) - slopes[:, None, None] * (i - j).abs()
    return scores.masked_fill(j > i, -torch.inf).softmax(-1)  # causal, [B H Lq Lk]


def alibi_slopes(heads):  # for a power of 2
    return 2 ** (-8 * torch.arange(1, heads + 1) / heads)


slopes = alibi_slopes(2)
print(slopes.tolist())
x = torch.zeros(1, 2, 3, 4)
print(alibi(slopes, x, x)[:, :, -1])  # of the last query
# lesson end
# Output:
# [0.0625, 0.00390625]
# tensor([[[0.3127, 0.3329, 0.3544],
#          [0.3320, 0.3333, 0.3346]]])


# lesson: layer
def causal(layer, x):
    future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    return layer(x, x, x, attn_mask=future, average_attn_weights=False)


def observe(layer, inputs, output):
    print('layer "first" attends with weights', list(output[1].shape))


layer = nn.MultiheadAttention(16, 4, bias=False)
layer.register_forward_hook(observe)
x = torch.randn(8, 2, 16)  # [L B D]
out, _ = causal(layer, x)
# lesson end
# Output:
# layer "first" attends with weights [2, 4, 8, 8]


# lesson: ExampleCache
q, k, v, o = (nn.Linear(16, n, bias=False) for n in (16, 8, 8, 16))  # 4 heads, 2 of k and v


def extend(x, cache, lens, new):
    places = lens[:, None] + torch.arange(x.shape[1])  # [B L]
    cache[:, torch.arange(len(x))[:, None], places] = torch.stack((k(x), v(x))).to(cache.dtype)
    keys, values = cache.to(x.dtype).unflatten(-1, (2, 4)).transpose(2, 3)  # [B G S E]
    seen = torch.arange(keys.shape[2]) <= places[:, None, :, None]  # causal
    queries = q(x).unflatten(-1, (4, 4)).transpose(1, 2)  # [B H L E]
    y = F.scaled_dot_product_attention(queries, keys, values, attn_mask=seen, enable_gqa=True)
    return o(y.transpose(1, 2).flatten(2)), lens + new


cache = torch.zeros(2, 2, 9, 8, dtype=torch.bfloat16)  # keys and values, B, S places, G·E
prompts = torch.randn(2, 7, 16)  # 7 and 4 tokens, and 3 of padding
_, lens = extend(prompts, cache, torch.tensor([0, 0]), torch.tensor([7, 4]))
print("prompts:", lens.tolist())
_, lens = extend(torch.randn(2, 1, 16), cache, lens, 1)
print("a step later:", lens.tolist())
beam, beam_lens = cache[:, [1, 1, 1]], lens[[1, 1, 1]]
y, beam_lens = extend(torch.randn(3, 1, 16), beam, beam_lens, 1)
print("three continuations of the second:", beam_lens.tolist(), list(y.shape))
beam_lens.fill_(4)
print("its prompt:", beam_lens.tolist(), "the others:", lens.tolist())
# lesson end
# Output:
# prompts: [7, 4]
# a step later: [8, 5]
# three continuations of the second: [6, 6, 6] [3, 1, 16]
# its prompt: [4, 4, 4] the others: [8, 5]
