"""Trains lens/testdata/trained: a model of GPT-2's format, attention only, on repeated random tokens; it grows an induction head.

32 tokens, 32 positions, 2 layers of 4 heads of 12 columns, feed-forward layers of zeros that are not trained. A text is
token 0, a block of 6 to 12 random tokens without a token twice, and then pieces of that block from random places. So
positions do not tell where to look: one head has to say which token was before, and another to look for it. The loss
counts the tokens that can be known: those inside a piece.

    pip install -r lens/testdata/requirements.txt
    python lens/testdata/train.py    a minute; prints the loss

The weights are the golden file: other machines and versions give other weights, and then golden.py and golden_eap.py
have to be run again.
"""

import os
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

TARGET = Path(__file__).resolve().parent / "trained"
TOKENS, PLACES, STEPS, BATCH = 32, 32, 900, 48


def draw(batch, generator):
    """Texts [batch PLACES], and true where the token is known from the tokens before [batch PLACES]."""
    random = lambda low, high, *shape: torch.randint(low, high, shape, generator=generator)
    block = torch.rand(batch, TOKENS - 1, generator=generator).argsort(1) + 1  # no token twice
    length = random(6, 13, batch, 1)
    at = torch.arange(PLACES - 1).expand(batch, -1)
    jump = (torch.rand(batch, PLACES - 1, generator=generator) < 0.2) | (at == length)
    steps = torch.where(jump, random(0, 1000, batch, PLACES - 1), 1).masked_fill(at < length, 0).cumsum(1)
    where = torch.where(at < length, at, steps % length)
    ids = torch.cat([torch.zeros(batch, 1, dtype=torch.long), block.gather(1, where)], 1)
    # A token is known if it follows its predecessor in the block, and both were seen side by side before.
    known = ~jump & (at > length) & (where > 0)
    return ids, torch.cat([torch.zeros(batch, 1, dtype=torch.bool), known], 1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    config = GPT2Config(
        vocab_size=TOKENS, n_positions=PLACES, n_embd=48, n_layer=2, n_head=4, n_inner=4, bos_token_id=0, eos_token_id=0,
        attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, summary_first_dropout=0, initializer_range=0.05,
    )
    model = GPT2LMHeadModel(config)
    for block in model.transformer.h:
        for p in block.mlp.parameters():
            p.requires_grad_(False)
            p.zero_()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1, (i + 1) / 100) * min(1, 4 * (1 - i / STEPS)))
    start = time.time()
    for i in range(STEPS):
        ids, known = draw(BATCH, generator)
        logits = model(ids).logits[:, :-1]
        loss = F.cross_entropy(logits[known[:, 1:]], ids[:, 1:][known[:, 1:]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if i % 100 == 99:
            print(f"step {i + 1}  loss {loss.item():.4f}  {time.time() - start:.0f} s", flush=True)
    model.save_pretrained(TARGET)
    (TARGET / "generation_config.json").unlink(missing_ok=True)
    (TARGET / "model.safetensors").chmod(0o644)


if __name__ == "__main__":
    main()
