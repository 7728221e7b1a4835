"""Lesson 9 of docs/lessons.md in PyTorch: which heads continue sequences that repeat."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
torch.set_num_threads(1)


def draw(n, period=0):
    ids = torch.empty(n, 24, dtype=torch.long)
    for row in ids:
        p = period or torch.randint(4, 15, ()).item()
        row[:] = torch.randperm(24)[torch.arange(24) % p]
    return ids


# lesson: Example_model
class Layer(nn.Module):
    def __init__(self, heads=4, size=12):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(48, heads * size, bias=False) for _ in range(3))
        self.out = nn.Linear(heads * size, 48, bias=False)

    def forward(self, placed, x, edit):
        q, k, v = (
            f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, y in ((self.q, placed), (self.k, placed), (self.v, x))
        )
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # [B H L V]
        return self.out(edit(heads).transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(24, 48), nn.Embedding(24, 48)
        self.layers, self.out = nn.ModuleList([Layer(), Layer()]), nn.Linear(48, 24, bias=False)

    def forward(self, ids, edits=(None, None)):
        x, outputs = self.token(ids), []  # [B L D]
        for layer, edit in zip(self.layers, edits, strict=True):

            def keep(heads, edit=edit):
                outputs.append(heads)
                return edit(heads) if edit else heads

            placed = x + self.position.weight  # for queries and keys, not for values
            x = x + layer(placed, x, keep)
        return self.out(x), outputs


model, ids = Model(), draw(2)
logits, outputs = model(ids)
print(list(logits.shape), [list(heads.shape) for heads in outputs])
# lesson end
# Output:
# [2, 24, 24] [[2, 4, 24, 12], [2, 4, 24, 12]]


def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0)
    warmup = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda n: min(1, n / steps * 10) * (1 + math.cos(math.pi * max(0, n / steps - 0.1) / 0.9)) / 2,
    )
    for _ in range(steps):
        ids = draw(32)
        loss = F.cross_entropy(model(ids)[0][:, :-1].mT, ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        warmup.step()


@torch.no_grad()
def losses(model, ids, edits=(None, None)):  # by position, in nats
    return F.cross_entropy(model(ids, edits)[0][:, :-1].mT, ids[:, 1:], reduction="none").mean(0)


def known(losses):  # of tokens that follow a token for the second time
    return losses[12:].mean()


train(model, 400)
ids = draw(64, 12)


# lesson: Example_silence
def put(layer, head, value, positions=slice(None)):
    """Returns edits that put a value in place of what a head returns, at some positions."""
    at, edits = torch.zeros(4, 24, 1), [None, None]
    at[head, positions] = 1
    edits[layer] = lambda heads: heads + at * (value - heads)  # heads [B H L V]
    return edits


whole, effects = known(losses(model, ids)), torch.zeros(2, 4)
for layer in range(2):
    for head in range(4):
        effects[layer, head] = known(losses(model, ids, put(layer, head, 0))) - whole  # in nats
print("heads that cost more than 1 nat, by layer:", (effects > 1).sum(1).tolist())
# lesson end
# Output:
# heads that cost more than 1 nat, by layer: [1, 0]


previous, follower = effects.argmax(1).tolist()

# lesson: Example_patch
a = ids  # equal at 6 and 18, and at 7 and 19
b = a.clone()
# tokens that a does not have
b[:, 6] = torch.tensor([min(set(range(24)) - set(row.tolist())) for row in a])
outputs = model(a)[1]
edits = put(0, previous, outputs[0], 7)
before, after = losses(model, b)[18], losses(model, b, edits)[18]  # of the token at 19
print("the loss falls by more than 2 nats:", bool(before - after > 2))
# lesson end
# Output:
# the loss falls by more than 2 nats: True


# lesson: Example_keep
def keep(layer, head, size=12):
    small, rows = Layer(1), slice(head * size, (head + 1) * size)
    for old, new in (layer.q, small.q), (layer.k, small.k), (layer.v, small.v):
        new.weight.data = old.weight.data[rows].clone()
    small.out.weight.data = layer.out.weight.data[:, rows].clone()
    return small


small = copy.deepcopy(model)
small.layers = nn.ModuleList(map(keep, model.layers, (previous, follower)))
cut = known(losses(small, ids))
train(small, 100)
print("after 100 steps it is below 0.3:", bool(known(losses(small, ids)) < 0.3 < cut))
# lesson end
# Output:
# after 100 steps it is below 0.3: True
