"""Write testdata/tokenizer/windows.json.gz: encodings by `tokenizers` of texts that are too long, and of special tokens as text.

    pip install -r testdata/tokenizer_requirements.txt    # in a virtual environment, Python 3.11
    python testdata/tokenizer_windows.py                  # seconds

The tokenizers are the same as in golden.json.gz. Each case has settings of truncation and padding and, for each text or pair
of texts, the encoding and its overflowing encodings.
"""

import gzip
import json
import pathlib

import tokenizer
from tokenizers import Tokenizer

FOLDER = pathlib.Path(__file__).parent / "tokenizer"
LONG = ["the quick brown fox jumps over the lazy dog, and then it sleeps", "Hello,   world !  naïve café 日本語のテキスト",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z", "", " ", "one", "🙂🙂 👍🏽 attention weights",
    "What is attention? It weights keys by a softmax of scores."]
SPECIAL = ["[CLS] [SEP] [MASK] [UNK] <s> </s> <unk> <mask> <pad>", "a[MASK]b [MASK]c", "x  <mask>  y<mask>z", "<s>hello</s> <special>solo",
    "</s></s>", "both  <l>  <r>  <b>  end<l><r><b>", "<mask>", "Déjà [MASK]solo_ <mask>"]


def flat(t, e, texts, more=True):
    starts = []
    for s in texts:
        at = [0]
        for c in s:
            at.append(at[-1] + len(c.encode()))
        starts.append(at)
    # An encoding that overflows does not say which text a token is of, and has others' types where a template says so:
    # offsets are in characters there, and types are left out. What overflows of it again is there a second time.
    if not more:
        return {"i": e.ids, "t": e.tokens, "c": [x for a in e.offsets for x in a], "s": e.special_tokens_mask,
            "w": [-1 if w is None else w for w in e.word_ids], "m": e.attention_mask}
    offsets = [(starts[which or 0][a], starts[which or 0][b]) for (a, b), which in zip(e.offsets, e.sequence_ids)]
    return {"i": e.ids, "t": e.tokens, "o": [x for a in offsets for x in a], "w": [-1 if w is None else w for w in e.word_ids],
        "s": e.special_tokens_mask, "m": e.attention_mask, "k": e.type_ids, "more": [flat(t, o, texts, False) for o in e.overflowing]}


def main():
    golden = json.loads(gzip.decompress((FOLDER / "golden.json.gz").read_bytes()))
    loaded = {c["name"]: json.dumps({**c["tokenizer"], "model": golden["models"][c["tokenizer"]["model"]]}) for c in golden["cases"]}
    out = {"texts": LONG, "special": SPECIAL, "windows": [], "as_text": []}
    for name in ["bert uncased", "bert cased", "roberta prefix", "llama3", "padded left"]:
        for n, stride, strategy, direction in [(8, 0, "longest_first", "right"), (9, 3, "longest_first", "right"),
            (9, 2, "longest_first", "left"), (20, 4, "only_second", "right"), (19, 2, "only_first", "right"), (6, 1, "longest_first", "right")]:
            t = Tokenizer.from_str(loaded[name])
            t.enable_truncation(n, stride=stride, strategy=strategy, direction=direction)
            def encode(*texts):
                try:
                    return flat(t, t.encode(*texts), texts)
                except BaseException as e:
                    return {"error": str(e)}
            pairs = [(LONG[0], LONG[7]), (LONG[7], "a b"), ("x", LONG[2]), (LONG[1], "it weights keys")]
            out["windows"].append({"name": name, "max": n, "stride": stride, "strategy": strategy, "direction": direction,
                "pair_texts": pairs, "texts": [encode(text) for text in LONG], "pairs": [encode(*pair) for pair in pairs]})
    for name in loaded:
        t = Tokenizer.from_str(loaded[name])
        t.encode_special_tokens = True
        out["as_text"].append({"name": name, "texts": [flat(t, t.encode(text), [text]) for text in SPECIAL]})
    data = json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()
    (FOLDER / "windows.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    print(len(data), (FOLDER / "windows.json.gz").stat().st_size)
    errors = {e.get("error") for c in out["windows"] for e in c["texts"] + c["pairs"]}
    print(errors)


main()
