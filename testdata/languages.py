"""Writes testdata/tokenizer/languages.json.gz and m2m100/: tiny tokenizers of NLLB, and what transformers' NllbTokenizer returns.

Each case is a directory with the files tokenizer.json and tokenizer_config.json, and languages of sources and targets.
`source` has the ids of each text as a source, `target` those as a target, `pair` those of the first two texts together.
m2m100/ has a tokenizer with the 31 tokens of models/testdata/seq2seq/m2m100.

    pip install -r testdata/tokenizer_requirements.txt
    python testdata/languages.py
"""

import base64
import gzip
import json
import pathlib
import tempfile

import tokenizer  # its texts

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import NllbTokenizer

OUT = pathlib.Path(__file__).parent / "tokenizer" / "languages.json.gz"
SMALL = OUT.parent / "m2m100"
CODES = ["deu_Latn", "eng_Latn", "fra_Latn", "fur_Latn", "zho_Hans"]
BEGIN = ["<s>", "<pad>", "</s>", "<unk>"]
TEXTS = ["Hello, world!", "a", "", "the fra_Latn cat", "déjà vu  </s> x", "<mask> <pad>", " 日本語 ", "ﬁne   ½ e\u0301 …", *tokenizer.CORPUS]


def train(size, corpus):
    """Pieces and merges of BPE, as in the hub's files: four tokens, the pieces, the codes and <mask>."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, special_tokens=BEGIN, show_progress=False))
    model = json.loads(t.to_str())["model"]
    return model["vocab"], [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]


def files(vocab, merges, **settings):
    """The files that transformers saves, as strings."""
    t = NllbTokenizer(vocab=dict(vocab), merges=merges, extra_special_tokens=CODES, **settings)
    folder = pathlib.Path(tempfile.mkdtemp())
    t.save_pretrained(folder)
    return {name: (folder / name).read_text() for name in ("tokenizer.json", "tokenizer_config.json")}


def load(made):
    folder = pathlib.Path(tempfile.mkdtemp())
    for name, text in made.items():
        (folder / name).write_text(text)
    return NllbTokenizer.from_pretrained(folder)


def main():
    vocab, merges = train(400, tokenizer.CORPUS)
    new, old = files(vocab, merges), files(vocab, merges, legacy_behaviour=True, src_lang="deu_Latn")
    mixed = {**new, "tokenizer.json": old["tokenizer.json"]}  # as on the hub: the template is that of the older class
    cases, rules = [], base64.b64decode(tokenizer.charsmap()["precompiled_charsmap"])
    for name, made, languages in [("new", new, [None, "fra_Latn"]), ("german", files(vocab, merges, src_lang="deu_Latn", _spm_precompiled_charsmap=rules), [None, "zho_Hans"]),
                                  ("legacy", old, [None, "fra_Latn"]), ("mixed", mixed, [None, "fra_Latn"]), ("other", mixed, ["fur_Latn", "deu_Latn"]),
                                  ("legacy other", old, ["fur_Latn", "eng_Latn"])]:
        t = load(made)
        if languages[0]:
            t.src_lang = languages[0]
        t.tgt_lang = languages[1]
        encode = lambda *texts: t(*texts)["input_ids"]
        cases.append({"name": name, "files": made, "from": languages[0] or "", "to": languages[1],
                      "source": [encode(x) for x in TEXTS], "pair": encode(*TEXTS[:2]),
                      "target": [t(text_target=x)["input_ids"] for x in TEXTS],
                      "decoded": [t.decode(encode(x), skip_special_tokens=True) for x in TEXTS]})
    small, merges = train(31 - len(CODES) - 1, ["the cat sat on the mat", "a cat ate"])
    SMALL.mkdir(exist_ok=True)
    for name, text in files(small, merges).items():
        (SMALL / name).write_text(json.dumps(json.loads(text), ensure_ascii=False) + "\n")
    data = {"texts": TEXTS, "cases": cases}
    OUT.write_bytes(gzip.compress(json.dumps(data, ensure_ascii=False).encode(), 9, mtime=0))
    print(OUT.stat().st_size, load(files(small, merges))("the cat")["input_ids"])


if __name__ == "__main__":
    main()
