"""Lesson 1 of docs/lessons.md in PyTorch: kernel regression."""

import torch
from torch.nn import functional as F

torch.manual_seed(1)
x = 5 * torch.rand(1, 50, 1).sort(1).values  # [B Lk 1]
y = 2 * x.sin() + x**0.8 + 0.5 * torch.randn(1, 50, 1)
at = torch.linspace(0, 5, 101).view(1, 101, 1)  # where the curve is estimated


# lesson: fixed
def attend(at, x, y, w, mask=0):
    scores = -(w * (at - x.mT)).square() / 2  # [B Lq Lk]
    weights = (scores + mask).softmax(-1)
    return weights @ y, weights


w = torch.ones(1, requires_grad=True)
fixed, weights = attend(at, x, y, w)
print(list(fixed.shape), list(weights.shape))
# lesson end
# Output:
# [1, 101, 1] [1, 101, 50]


# lesson: learn
def learn(x, y, w):
    others = torch.zeros(x.shape[1], x.shape[1]).fill_diagonal_(-torch.inf)
    optimizer = torch.optim.AdamW([w], lr=0.1, weight_decay=0)
    for _ in range(200):
        optimizer.zero_grad()
        estimate, _ = attend(x, x, y, w, others)
        F.mse_loss(estimate, y).backward()
        optimizer.step()


learn(x, y, w)
print(f"the learnt w is {w.item():.1f}")
# lesson end
# Output:
# the learnt w is 3.7
