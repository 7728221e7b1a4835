"""Trains the small model of lesson 7 that reads Chinese, and writes it as a directory of Hugging Face.

    python site/testdata/chinese.py DIR    # torch 2.15.0, transformers 5.24.0

A GPT-2 of 3 layers of 4 heads predicts the next character of the Chinese lessons and glossary. A token is a character;
words of other letters are split by spaces and punctuation.
"""

import json
import pathlib
import re
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import BertTokenizerFast, GPT2Config, GPT2LMHeadModel

torch.manual_seed(7)
torch.set_num_threads(1)
root = pathlib.Path(__file__).parents[2]
text = "".join((root / "docs" / f"{name}.zh.md").read_text() for name in ("lessons", "glossary"))
text = re.sub(r"(?ms)^```.*?^```|^    .*?$|<[^>]*>|\]\([^)]*\)|[`*|\[\]]", " ", text)
text += " ".join(json.loads((root / "site" / "words" / "zh.json").read_text()).values())
text = re.sub(r"(?<=[^\x00-\x7f])\n(?=[^\x00-\x7f])", "", text)
lines = [s.strip() for s in re.findall(r"[^。！？\n]+[。！？]?", text) if len(re.findall(r"[\u4e00-\u9fff]", s)) > 3]

special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
counts = {}
for line in lines:
    for c in re.findall(r"[\u3000-\u9fff\uff00-\uffef]|[a-z]+|\d|\S", line.lower()):
        counts[c] = counts.get(c, 0) + 1
pieces = special + sorted(c for c in counts if counts[c] > (3 if c.isascii() else 0))
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
tokenizer = BertTokenizerFast(vocab={p: i for i, p in enumerate(pieces)}, do_lower_case=True)
length = 64
config = GPT2Config(vocab_size=len(pieces), n_embd=64, n_layer=3, n_head=4, n_inner=128, n_positions=length,
                    resid_pdrop=0.05, embd_pdrop=0.05, attn_pdrop=0, bos_token_id=2, eos_token_id=3)
model = GPT2LMHeadModel(config)
ids = tokenizer(lines, truncation=True, max_length=length, padding="max_length", return_tensors="pt")
x, seen = ids["input_ids"], ids["attention_mask"]
print(len(lines), "sentences,", int(seen.sum()), "tokens,", len(pieces), "pieces,",
      sum(p.numel() for p in model.parameters()), "parameters")
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps, pct_start=0.1)
for step in range(steps):
    pick = torch.randint(len(x), (12,))
    a, m = x[pick], seen[pick]
    most = int(m.sum(1).max())
    a, m = a[:, :most], m[:, :most]
    logits = model(a, attention_mask=m).logits[:, :-1]
    loss = F.cross_entropy(logits[m[:, 1:] > 0], a[:, 1:][m[:, 1:] > 0])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
    optimizer.step()
    schedule.step()
    if step % 250 == 0 or step == steps - 1:
        print(step, f"{loss.item():.3f}", flush=True)

model.eval()
state = {name: p.half().contiguous() for name, p in model.transformer.state_dict().items()}
save_file(state, out / "model.safetensors", metadata={"format": "pt"})
settings = {k: v for k, v in sorted(config.to_dict().items()) if v is not None}
(out / "config.json").write_text(json.dumps(settings | {"architectures": ["GPT2LMHeadModel"]}, indent=1) + "\n")
tokenizer.backend_tokenizer.save(str(out / "tokenizer.json"))
