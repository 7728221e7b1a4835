"""Lesson 3 of docs/lessons.md in PyTorch: a translator learns to write strings backwards."""

import torch
from torch import nn
from torch.nn import functional as F

PAD, BEGIN, END, FIRST = 0, 1, 2, 3  # FIRST is the letter a


class Translator(nn.Module):
    def __init__(self, tokens, width, heads, layers, hidden):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(10, width)
        sizes = width, heads, layers, layers, hidden
        self.transformer = nn.Transformer(*sizes, dropout=0, batch_first=True)
        self.out = nn.Linear(width, tokens)

    def embed(self, ids):
        return self.tokens(ids) + self.places.weight[: ids.shape[1]]

    def forward(self, source, written):
        """Returns the logits of the next token, after each of the written ones."""
        length, padding = written.shape[1], source == PAD
        out = self.transformer(
            self.embed(source),
            self.embed(written),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.out(out)


def encode(texts):
    rows = [torch.tensor([FIRST + ord(c) - ord("a") for c in text] + [END]) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def strings(n):
    """Returns random strings of 3 to 8 letters from a to j, and their reverses."""
    lengths, letters = torch.randint(3, 9, (n,)).tolist(), torch.randint(10, (n, 8)).tolist()
    texts = ["".join("abcdefghij"[i] for i in row[:k]) for row, k in zip(letters, lengths)]
    return encode(texts), encode([text[::-1] for text in texts])


def shifted(target):
    """Returns what is written before each token of target."""
    return F.pad(target[:, :-1], (1, 0), value=BEGIN)


@torch.no_grad()
def write(model, source):
    written = torch.full((len(source), 1), BEGIN)
    for _ in range(9):
        written = torch.cat([written, model(source, written)[:, -1:].argmax(-1)], 1)
    return written[:, 1:]


torch.manual_seed(1)
torch.set_num_threads(1)  # the model is tiny: more threads wait for each other
source, target = strings(4000)
test, reverses = strings(100)

# lesson: learn
model = Translator(tokens=13, width=32, heads=2, layers=1, hidden=64)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=100)
for _ in range(10):
    for batch in torch.randperm(len(source)).split(32):
        logits = model(source[batch], shifted(target[batch]))
        loss = F.cross_entropy(logits.mT, target[batch], ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        warmup.step()
right = ((write(model, test) == reverses) | (reverses == PAD)).all(1).sum()
print("more than 90 of 100 new strings are right:", right.item() > 90)
# lesson end
# Output:
# more than 90 of 100 new strings are right: True


# lesson: record
def record(model, source, written):
    layer, seen = model.transformer.decoder.layers[0].multihead_attn, []
    ask = {"need_weights": True, "average_attn_weights": False}
    before = layer.register_forward_pre_hook(lambda _, x, o: (x, o | ask), with_kwargs=True)
    after = layer.register_forward_hook(lambda _, x, out: seen.append(out[1]))
    with before, after:
        model(source, written)
    return seen[0]  # [B H Lq Lk]


cross = record(model, encode(["abcdefgh"]), shifted(encode(["hgfedcba"])))
print(list(cross.shape))
print("attended most:", "".join("abcdefgh∎"[j] for j in cross[0].mean(0)[:8].argmax(-1)))
# lesson end
# Output:
# [1, 2, 9, 9]
# attended most: hgfedcba
