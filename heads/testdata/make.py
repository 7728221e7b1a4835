"""Writes python.safetensors with the Python code of docs/heads.md, and a copy of
that code. Run it in this directory, with torch and safetensors:

    python make.py

The weights are multiples of 1/8, exact in every type.
"""

import os
import pathlib
import re

import torch

doc = pathlib.Path("../../docs/heads.md").read_text()
lines = re.search(r"```python\n(.*?)```", doc, re.S).group(1)
assert len(lines.splitlines()) == 5
pathlib.Path("lines.txt").write_text(lines)

text = "größe <&> 😀"
tokens = ["[CLS]", "grö", "##ße", "<&>", "[SEP]"]
rows = torch.tensor([[8, 0, 0, 0, 0], [1, 2, 3, 1, 1], [0, 4, 4, 0, 0], [2, 2, 2, 1, 1], [0, 0, 0, 1, 7]]) / 8
heads = torch.stack([rows, rows.flip(1), rows.roll(1, 1)])[None]  # [1 3 5 5]
attentions = [heads.float(), heads.half().flip(1), heads.bfloat16()] + [heads.double() for _ in range(8)]
exec(lines)
os.replace("heads.safetensors", "python.safetensors")
