"""Lesson 5 of docs/lessons.md in PyTorch: heads, their importance, and a layer without some."""

import copy
import datetime

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)


# lesson: ExampleMultiHead
def multi_head(layer, x, lens):
    padding = torch.arange(x.shape[1]) >= lens[:, None]  # [B L]
    return layer(x, x, x, key_padding_mask=padding, average_attn_weights=False)


layer = nn.MultiheadAttention(32, 8, batch_first=True)
x = torch.randn(2, 5, 32)  # [B L D]
out, weights = multi_head(layer, x, torch.tensor([5, 3]))
out.square().mean().backward()
print(list(out.shape), list(weights.shape))
for name, p in layer.named_parameters():
    print(name, list(p.grad.shape))
# lesson end
# Output:
# [2, 5, 32] [2, 8, 5, 5]
# in_proj_weight [96, 32]
# in_proj_bias [96]
# out_proj.weight [32, 32]
# out_proj.bias [32]


class Translator(nn.Module):
    """Writes 05.03.2019 as 2019-03-05, with one layer of four heads."""

    def __init__(self):
        super().__init__()
        self.characters, self.places = nn.Embedding(12, 32), nn.Embedding(10, 32)
        self.layer = nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
        self.out = nn.Linear(32, 12)

    def attend(self, x):
        return self.layer(x, x, x, need_weights=False)[0]

    def forward(self, source):
        return self.out(self.attend(self.characters(source) + self.places.weight))


def dates(n):
    days = [datetime.date.fromordinal(d) for d in torch.randint(693596, 767011, (n,)).tolist()]
    texts = [[d.strftime(form) for d in days] for form in ("%d.%m.%Y", "%Y-%m-%d")]
    return torch.tensor([[["0123456789.-".index(c) for c in t] for t in ts] for ts in texts])


torch.manual_seed(1)
torch.set_num_threads(1)  # the model is tiny: more threads wait for each other
torch.set_default_dtype(torch.float64)  # the same results on every processor
probe = Translator()
optimizer = torch.optim.AdamW(probe.parameters(), lr=0.01)
for _ in range(200):
    source, target = dates(32)
    optimizer.zero_grad()
    F.cross_entropy(probe(source).mT, target).backward()
    optimizer.step()
source, target = dates(100)


@torch.no_grad()
def measure():
    return F.cross_entropy(probe(source).mT, target)


# lesson: importance
# The importance of a head is the increase in loss when it is removed.
@torch.no_grad()
def importance(layer, loss):
    columns = layer.out_proj.weight.unflatten(1, (layer.num_heads, -1))  # [D H E]
    whole, scores = loss(), []
    for h in range(layer.num_heads):
        kept = columns[:, h].clone()
        columns[:, h] = 0
        scores.append(loss() - whole)
        columns[:, h] = kept
    return torch.stack(scores)


scores = importance(probe.layer, measure)
print(scores)
# lesson end
# Output:
# tensor([0.0018, 1.0806, 0.0036, 0.5768])


# lesson: remove
def keep(layer, heads):  # without the rows and columns of the others
    into = layer.in_proj_weight.unflatten(0, (3, layer.num_heads, -1))[:, heads].flatten(0, 2)
    out = layer.out_proj.weight.unflatten(1, (layer.num_heads, -1))[:, heads].flatten(1)

    def attend(x):
        q, k, v = F.linear(x, into).unflatten(-1, (3, len(heads), -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)  # [B h L E]
        return F.linear(y.transpose(1, 2).flatten(2), out)

    return attend


order = scores.argsort()  # the least important first
for n in range(1, 4):
    probe.attend = keep(probe.layer, order[n:].sort().values)
    print(f"{4 - n} heads: loss {measure():.3f}")
# lesson end
# Output:
# 3 heads: loss 0.002
# 2 heads: loss 0.030
# 1 heads: loss 0.954

# The layer with one head computes the same as the layer with zeros for the other three.
x, zeroed = torch.randn(2, 10, 32), copy.deepcopy(probe.layer)
with torch.no_grad():
    zeroed.out_proj.weight.unflatten(1, (4, -1))[:, order[:3]] = 0
torch.testing.assert_close(probe.attend(x), zeroed(x, x, x)[0], rtol=0, atol=1e-6)
