"""Lesson 4 of docs/lessons.md in PyTorch: shapes of multi-head attention."""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)


# lesson: ExampleMultiHead_shapes
def multi_head(layer, x, y, padding):
    def split(a):  # [B L D] to [B H L E]
        return a.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)

    wq, wk, wv = layer.in_proj_weight.chunk(3)
    q, k, v = split(F.linear(x, wq)), split(F.linear(y, wk)), split(F.linear(y, wv))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(padding[:, None, None], -torch.inf).softmax(-1)
    heads = weights @ v
    out = layer.out_proj(heads.transpose(1, 2).flatten(2))
    return q, k, weights, heads, out


layer = nn.MultiheadAttention(100, 5, bias=False, batch_first=True)
x, y = torch.ones(2, 4, 100), torch.ones(2, 6, 100)  # [B Lq D], [B Lk D]
padding = torch.arange(6) >= torch.tensor([[3], [2]])  # [B Lk]
q, k, weights, heads, out = multi_head(layer, x, y, padding)
print("queries", list(q.shape), "keys", list(k.shape))
print("weights", list(weights.shape), "heads", list(heads.shape), "out", list(out.shape))
print(weights[:, 0, 0].detach())
whole, _ = layer(x, y, y, key_padding_mask=padding)
print("the same in one call:", torch.allclose(out, whole, atol=1e-5))
# lesson end
# Output:
# queries [2, 5, 4, 20] keys [2, 5, 6, 20]
# weights [2, 5, 4, 6] heads [2, 5, 4, 20] out [2, 4, 100]
# tensor([[0.3333, 0.3333, 0.3333, 0.0000, 0.0000, 0.0000],
#         [0.5000, 0.5000, 0.0000, 0.0000, 0.0000, 0.0000]])
# the same in one call: True
