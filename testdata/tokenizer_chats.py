"""Write testdata/tokenizer/chats.json.gz: harmless texts beside special tokens, as in chats, encoded by `tokenizers`.

A special token with each combination of its settings, under each normalizer, is beside a text in each way of a
template; under Prepend also with an added token of several spaces, which takes the space before it. The Go test gives
the text as the user's (Options.Literal), and wants the same tokens.

    pip install -r testdata/tokenizer_requirements.txt
    python testdata/tokenizer_chats.py            # seconds
"""

import gzip
import itertools
import json
import pathlib

from tokenizers import Tokenizer

OUT = pathlib.Path(__file__).parent / "tokenizer" / "chats.json.gz"

CHARS = list("▁ abcdehilnorstwHWTEXx!.,_1<>/|é日本-\n") + ["i\u0307"]
MODEL = {
    "type": "BPE", "vocab": {c: i for i, c in enumerate(["<unk>", *CHARS, "ab", "▁H"])}, "merges": ["a b", "▁ H"],
    "unk_token": "<unk>", "fuse_unk": False, "byte_fallback": False, "dropout": None, "continuing_subword_prefix": None,
    "end_of_word_suffix": None, "ignore_merges": False,
}
PREPEND = {"type": "Prepend", "prepend": "▁"}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
NORMALIZERS = {
    "none": None, "lowercase": {"type": "Lowercase"}, "NFC": {"type": "NFC"},
    "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "prepend": PREPEND, "prepend and replace": {"type": "Sequence", "normalizers": [PREPEND, REPLACE]},
    "replace and prepend": {"type": "Sequence", "normalizers": [REPLACE, PREPEND]},
}
PRE = {
    "none": None,
    "metaspace": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
}
TEMPLATES = ["T{}T", "T {} T", "T\n{}T\n", "{}T", "T{}", "xT{}Tx", "x T{}\nT x", "T.{}.T", "TT{}TT", "{}"]
TEXTS = [
    "Hello", "Hello world", "hi!", "!hi", " hi", "hi ", "  ", " ", "\n", "hi\n", "1", "_", "é", "日本", "-", "▁a▁", "a. b, c", "ab" * 3,
]
TOKENS = ["<T>", "END"]
SPACES = ["  ", "   "]
SPACED_TEMPLATES = ["T{}T", "{} T", "x{}  T", "T {}   T\n", "  {}T  {}T"]
SPACED_TEXTS = ["hi", "hi ", "hi  ", "hi   ", "hi    ", " ", "  ", "   ", "!     ", "a▁ ", " a  b  "]


def added(i, content, single, left, right, normalized, special):
    return {"id": len(MODEL["vocab"]) + i, "content": content, "single_word": single, "lstrip": left, "rstrip": right,
        "normalized": normalized, "special": special}


def case(normalizer, pre_tokenizer, tokens, templates, texts):
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens,
        "normalizer": NORMALIZERS[normalizer], "pre_tokenizer": PRE[pre_tokenizer], "post_processor": None,
        "decoder": None, "model": MODEL}
    t = Tokenizer.from_str(json.dumps(file))
    ids = [t.encode(a.replace("T", tokens[0]["content"]).replace("{}", x)).ids for a in templates for x in texts]
    return {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "tokens": tokens, "ids": ids}


def main():
    flags = lambda n: itertools.product([False, True], repeat=n)
    cases = [case(norm, pre, [added(0, content, *f, True)], TEMPLATES, TEXTS)
        for norm, pre, content in itertools.product(NORMALIZERS, PRE, TOKENS) for f in flags(4)]
    spaced = [case(norm, pre, [added(0, "<T>", single, False, right, True, True), added(1, s, False, False, after, False, False)],
        SPACED_TEMPLATES, SPACED_TEXTS)
        for norm, pre, s in itertools.product(["prepend and replace", "replace and prepend"], PRE, SPACES)
        for single, right, after in flags(3)]
    golden = {"model": MODEL, "normalizers": NORMALIZERS, "pre_tokenizers": PRE, "templates": TEMPLATES, "texts": TEXTS,
        "cases": cases, "spaced_templates": SPACED_TEMPLATES, "spaced_texts": SPACED_TEXTS, "spaced": spaced}
    data = json.dumps(golden, ensure_ascii=False, separators=(",", ":")).encode()
    OUT.write_bytes(gzip.compress(data, 9, mtime=0))
    print(sum(len(c["ids"]) for c in cases + spaced), "encodings", OUT.stat().st_size, "bytes")


main()
