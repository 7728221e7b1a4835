"""Write testdata/tokenizer/chats.json.gz: harmless texts beside special tokens, as in chats, encoded by `tokenizers`.

A special token with each combination of its settings, under each normalizer, is beside a text in each way of a
template. The Go test gives the text as the user's (Options.Literal), and wants the same tokens.

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


def main():
    cases = []
    for (norm, n), (pre, p), content in itertools.product(NORMALIZERS.items(), PRE.items(), TOKENS):
        for flags in itertools.product([False, True], repeat=4):
            single, left, right, normalized = flags
            token = {"id": len(MODEL["vocab"]), "content": content, "single_word": single, "lstrip": left, "rstrip": right,
                "normalized": normalized, "special": True}
            file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [token], "normalizer": n,
                "pre_tokenizer": p, "post_processor": None, "decoder": None, "model": MODEL}
            t = Tokenizer.from_str(json.dumps(file))
            ids = [t.encode(a.replace("T", content).format(x)).ids for a in TEMPLATES for x in TEXTS]
            cases.append({"normalizer": norm, "pre_tokenizer": pre, "token": token, "ids": ids})
    golden = {"model": MODEL, "normalizers": NORMALIZERS, "pre_tokenizers": PRE, "templates": TEMPLATES, "texts": TEXTS,
        "cases": cases}
    data = json.dumps(golden, ensure_ascii=False, separators=(",", ":")).encode()
    OUT.write_bytes(gzip.compress(data, 9, mtime=0))
    print(sum(len(c["ids"]) for c in cases), "encodings", OUT.stat().st_size, "bytes")


main()
