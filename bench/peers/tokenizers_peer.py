"""The library tokenizers by Hugging Face, on one thread."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers
from tokenizers import Tokenizer

version = tokenizers.__version__


def load(w):
    return {"from_file": lambda: Tokenizer.from_file(w.file)}


def tokenize(w):
    t = Tokenizer.from_file(w.file)
    with open(w.text, encoding="utf-8", newline="\n") as f:
        lines = f.read().removesuffix("\n").split("\n")

    def encode():
        for line in lines:
            t.encode(line)

    return {"encode": encode, "encode_batch": lambda: t.encode_batch(lines)}


operations = {"tokenizer": load, "tokenize": tokenize}
