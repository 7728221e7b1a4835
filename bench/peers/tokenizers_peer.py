"""The library tokenizers by Hugging Face, on one thread."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers
from tokenizers import Tokenizer


def versions():
    return {"tokenizers": tokenizers.__version__}


def set_threads(n):
    pass  # one is all that it has without TOKENIZERS_PARALLELISM


def forms(w):
    if w.base == "tokenizer":
        return {"from_file": lambda: Tokenizer.from_file(w.file)}
    if w.base != "tokenize":
        return {}
    t = Tokenizer.from_file(w.file)
    with open(w.text, encoding="utf-8", newline="\n") as f:
        lines = f.read().removesuffix("\n").split("\n")

    def encode():
        for line in lines:
            t.encode(line)

    return {"encode": encode, "encode_batch": lambda: t.encode_batch(lines)}
