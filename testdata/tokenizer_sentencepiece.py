"""Write testdata/tokenizer/sentencepiece.json.gz and marian/: encodings by `sentencepiece`, for the tests of package tokenizer.

    pip install -r testdata/tokenizer_requirements.txt    # in a virtual environment, Python 3.11
    python testdata/tokenizer_sentencepiece.py            # a minute; or the names of directories to be made anew

Models are trained here, on the sentences of tokenizer.py, whose texts are used too. "models" are compared with the
library sentencepiece: ids, pieces, offsets and decoded texts. "directories" are in the form of Hugging Face: that of
Marian is compared with transformers; those of T5, Llama, Gemma, XLM-R and CamemBERT with sentencepiece for what stands
between special tokens, since transformers 5 translates such models into other ones, which are not exact. How often
these differ is printed.
"""

import base64
import gzip
import hashlib
import io
import json
import logging
import pathlib
import struct
import sys
import tempfile

import sentencepiece
import transformers

import tokenizer

OUT = pathlib.Path(__file__).parent / "tokenizer" / "sentencepiece.json.gz"
SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


def rules(pairs):
    path = pathlib.Path(tempfile.mkdtemp()) / "rules.tsv"
    path.write_text("".join("%s\t%s\n" % (" ".join("%X" % ord(c) for c in a), " ".join("%X" % ord(c) for c in b))
        for a, b in pairs.items()))
    return str(path)


FEW = rules({"ﬁ": "fi", "ﬂ": "fl", "①": "1", "½": "1/2", "Ａ": "A", "\u3000": " ", "\u00a0": " ", "\t": " ", "\n": " ", "\r": " ",
    "\u200b": " ", "\ufeff": "", "e\u0301": "é", "㍿": "株式会社", "ﾊﾟ": "パ", "…": "..."})


def train(**options):
    """A model. Unless options name others, it has a few normalization rules: the library's take 240 kB."""
    if not {"normalization_rule_name", "normalization_rule_tsv"} & options.keys():
        options["normalization_rule_tsv"] = FEW
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(tokenizer.CORPUS * 3), model_writer=out, minloglevel=2,
        num_threads=1, max_sentence_length=10000, **options)
    return out.getvalue()


def fields(data):
    """The fields of a message of protobuf: number, form, and value or bytes."""
    i = 0

    def varint():
        nonlocal i
        n = shift = 0
        while True:
            n |= (data[i] & 127) << shift
            shift += 7
            i += 1
            if data[i - 1] < 128:
                return n

    while i < len(data):
        key = varint()
        size = {0: 0, 1: 8, 5: 4}.get(key & 7)
        value = varint() if key & 7 in (0, 2) else None
        if key & 7 == 2:
            size = value
        yield key >> 3, key & 7, data[i : i + size] if key & 7 else value
        i += size


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def message(parts):
    out = b""
    for number, form, value in parts:
        out += varint(number << 3 | form)
        out += varint(value) if form == 0 else (varint(len(value)) if form == 2 else b"") + value
    return out


def change_pieces(model, change):
    """Changes the scores and types of pieces: change maps id, text, score and type to a score and a type."""
    parts, n = [], 0
    for number, form, value in fields(model):
        if number == 1:
            piece = {k: v for k, _, v in fields(value)}
            score, kind = change(n, piece[1].decode(), struct.unpack("<f", piece[2])[0], piece.get(3, NORMAL))
            value = message([(1, 2, piece[1]), (2, 5, struct.pack("<f", score)), (3, 0, kind)])
            n += 1
        parts.append((number, form, value))
    return message(parts)


def change_spec(model, spec, **numbers):
    """Sets fields of trainer_spec (2), normalizer_spec (3) or denormalizer_spec (5) that are numbers."""
    numbers = {int(k[1:]): v for k, v in numbers.items()}
    parts = []
    for number, form, value in fields(model):
        if number == spec:
            value = message([f for f in fields(value) if f[0] not in numbers] + [(k, 0, v) for k, v in numbers.items()])
        parts.append((number, form, value))
    return message(parts)


def tied_texts(tokens):
    """Texts of repeated tokens, of which many have several paths with nearly equal sums of scores: a run of one part, or
    a mixture of two or three."""
    tokens = [token.replace(SPACE, " ") for token in tokens]
    for i in range(TIED):
        draw = tokenizer.draws(i)
        parts = [tokens[draw(len(tokens))] for _ in range(1 + draw(3))]
        if draw(2):
            parts = [part[:1] for part in parts]
        yield "".join(parts[draw(len(parts))] * (1 + draw(9)) for _ in range(1 + draw(40)))


def make_models():
    user = ["<sep>", "New York", "xx", "xxx", SPACE + SPACE, "日本", "é", "\n", "solo"]
    folded = rules({"ﬁ": "fi", "A": "a", "AB": "ab!", "ABC": "  x  ", "\u200b": "", "\u00a0": " ", "\n": " ", "é": "e",
        "e\u0301": "e", "½": " 1/2", "…": "... ", "日": "日 "})
    unusual = rules({"the": "THE", "!": "?!", "日": ""})
    hidden = lambda model: change_pieces(model, lambda i, text, score, kind: (score, UNUSED) if kind == NORMAL and len(text) > 1
        and i % 3 == 0 else (score, kind))
    equal = lambda model: change_pieces(model, lambda i, text, score, kind: (-float(len(text) % 3), kind))
    normal = lambda model, change: change_pieces(model, lambda i, text, score, kind: change(i, text, score)
        if kind == NORMAL else (score, kind))
    some = lambda i, text, score: (score, [CONTROL, UNUSED, USER, NORMAL][i % 4])
    bpe = train(vocab_size=420, model_type="bpe", character_coverage=0.98)
    unigram = train(vocab_size=420, model_type="unigram", character_coverage=0.98)
    with_user = dict(user_defined_symbols=user, control_symbols=["<ctl>", "<mask>"])
    unigram_user = train(vocab_size=440, model_type="unigram", character_coverage=0.98, **with_user)
    nfkc = {"normalization_rule_name": "nmt_nfkc"}
    keep = dict(add_dummy_prefix=False, remove_extra_whitespaces=False)
    return {
        "unigram": unigram,
        "unigram nfkc": train(vocab_size=420, model_type="unigram", character_coverage=0.98, **nfkc),
        "unigram nfkc folded": train(vocab_size=400, model_type="unigram", character_coverage=0.98,
            normalization_rule_name="nfkc_cf"),
        "unigram bytes": train(vocab_size=640, model_type="unigram", character_coverage=0.98, byte_fallback=True),
        "unigram as it is": train(vocab_size=420, model_type="unigram", character_coverage=0.98,
            normalization_rule_name="identity", **keep),
        "unigram user": unigram_user,
        "unigram suffix": train(vocab_size=420, model_type="unigram", character_coverage=0.98,
            treat_whitespace_as_suffix=True),
        "unigram suffix kept": train(vocab_size=420, model_type="unigram", character_coverage=0.98,
            treat_whitespace_as_suffix=True, remove_extra_whitespaces=False),
        "unigram rules": train(vocab_size=420, model_type="unigram", character_coverage=0.98, normalization_rule_tsv=folded),
        "unigram spaces": change_spec(train(vocab_size=420, model_type="unigram", character_coverage=0.98), 3, _5=0),
        "unigram unused": hidden(unigram),
        "unigram equal": equal(unigram),
        "unigram by length": normal(unigram, lambda i, text, score: (-0.3 * len(text), NORMAL)),
        "unigram large": normal(unigram_user, lambda i, text, score: (3000 * score, NORMAL)),
        "unigram positive": normal(unigram_user, lambda i, text, score: (3000 + 300 * score, NORMAL)),
        "unigram kinds": normal(unigram, some),
        "unigram denormalized": train(vocab_size=420, model_type="unigram", character_coverage=0.98,
            denormalization_rule_tsv=unusual),
        "bpe": bpe,
        "bpe bytes": train(vocab_size=640, model_type="bpe", character_coverage=0.98, byte_fallback=True,
            normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True),
        "bpe user": train(vocab_size=440, model_type="bpe", character_coverage=0.98, **with_user, **keep),
        "bpe user bytes": train(vocab_size=660, model_type="bpe", character_coverage=0.98, byte_fallback=True,
            allow_whitespace_only_pieces=True, normalization_rule_name="identity", **with_user, **keep),
        "bpe unused": hidden(bpe),
        "bpe equal": equal(bpe),
        "bpe signs": normal(bpe, lambda i, text, score: ([0.0, -0.0, 1.0, 2.0, -1.0, -2.0][i % 6], NORMAL)),
        "bpe kinds": normal(bpe, some),
        "bpe rules": train(vocab_size=420, model_type="bpe", character_coverage=0.98, normalization_rule_tsv=folded,
            add_dummy_prefix=False),
        "bpe phrases": train(vocab_size=420, model_type="bpe", character_coverage=0.98, split_by_whitespace=False),
        "bpe one unknown": train(vocab_size=420, model_type="bpe", character_coverage=0.98, unk_id=2, bos_id=-1, eos_id=0,
            pad_id=1, unk_surface="??", unk_piece="[UNK]"),
    }


def encode_model(sp):
    def encode(text):
        e = sp.encode_as_offset_mapping(text)
        at = [0]
        for c in text:
            at.append(at[-1] + len(c.encode()))
        offsets = [[at[a], at[b]] for a, b in e["offsets"]]
        # Only the last byte of a character has its offsets here; in attn, every byte has them.
        goes_on = lambda i: sp.is_byte(e["ids"][i]) and "8" <= e["pieces"][i][3] < "C"
        for i in reversed(range(len(offsets) - 1)):
            if goes_on(i + 1):
                offsets[i] = offsets[i + 1]
        return {"i": e["ids"], "t": e["pieces"], "o": offsets, "d": sp.decode(e["pieces"])}
    return encode


def split_special(text, tokens):
    """Splits a text at special tokens: the leftmost and, among these, the longest. (token, strips left, strips right)."""
    out, done, i = [], 0, 0
    while i < len(text):
        found = max((t for t in tokens if text.startswith(t, i)), key=len, default=None)
        if found is None:
            i += 1
            continue
        left, right = tokens[found]
        before = text[done:i]
        out.append((before.rstrip() if left else before, None))
        i += len(found)
        out.append((None, found))
        while right and i < len(text) and text[i].isspace():
            i += 1
        done = i
    return [*out, (text[done:], None)]


def encode_between(sp, tokens, begin, end, first=None):
    """Special tokens, and the encodings by sentencepiece of the texts between them; first encodes a text at the start."""
    ids = {t: tokens[t][2] for t in tokens}
    flags = {t: tokens[t][:2] for t in tokens}
    def encode(text):
        out, starts = list(begin), True
        for part, token in split_special(text, flags):
            if token:
                out.append(ids[token])
            elif part:
                out += (first if starts and first else sp).encode(part)
            starts = starts and not token and not part
        out += end
        special = {ids[t] for t in tokens if t != "[MASK]"}
        return {"i": out, "d": (first or sp).decode(["[MASK]" if i == ids.get("[MASK]") else sp.id_to_piece(i) for i in out
            if i not in special])}
    return encode


class Fairseq:
    """A model whose pieces have the ids of fairseq: some tokens first, and <mask> last."""

    def __init__(self, model, front, shift):
        self.sp, self.front, self.shift = sentencepiece.SentencePieceProcessor(model_proto=model), front, shift
        self.mask = len(self.sp) + shift
        self.special = {**{t: (False, False, i) for i, t in enumerate(front)}, "<mask>": (True, False, self.mask)}
        for t in "<s>", "</s>":
            self.special.setdefault(t, (False, False, self.sp.piece_to_id(t) + shift))

    def encode(self, text):
        return [i + self.shift if i else self.front.index("<unk>") for i in self.sp.encode(text)]

    def id_to_piece(self, i):
        return self.sp.id_to_piece(i - self.shift)

    def decode(self, pieces):
        return self.sp.decode(pieces)

    def encoder(self):
        begin, end = self.special["<s>"][2], self.special["</s>"][2]
        return encode_between(self, self.special, [begin], [end])


def directories():
    """Directories, each with a function that encodes a text."""
    quiet = lambda x: json.dumps(x, ensure_ascii=False)
    out = {}

    unigram = train(vocab_size=420, model_type="unigram", character_coverage=0.98, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    sp = sentencepiece.SentencePieceProcessor(model_proto=unigram)
    extra = {f"<extra_id_{i}>": (True, True, len(sp) + 99 - i) for i in range(100)}
    plain = {"<pad>": (False, False, 0), "</s>": (False, False, 1), "<unk>": (False, False, 2)}
    out["t5"] = {"spiece.model": unigram, "tokenizer_config.json": quiet({"tokenizer_class": "T5Tokenizer"})}, \
        encode_between(sp, {**plain, **extra}, [], [1])
    few = {f"<extra_id_{i}>": (True, True, len(sp) + 6 - i) for i in range(7)}
    out["t5 few"] = {"spiece.model": unigram, "tokenizer_config.json": quiet({"extra_ids": 7}),
        "config.json": quiet({"model_type": "t5"})}, encode_between(sp, {**plain, **few}, [], [1])

    llama = train(vocab_size=640, model_type="bpe", character_coverage=0.98, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True)
    sp = sentencepiece.SentencePieceProcessor(model_proto=llama)
    bare = sentencepiece.SentencePieceProcessor(model_proto=change_spec(llama, 3, _3=0))
    plain = {"<unk>": (False, False, 0), "<s>": (False, False, 1), "</s>": (False, False, 2)}
    out["llama legacy"] = {"tokenizer.model": llama, "tokenizer_config.json": quiet({"tokenizer_class": "LlamaTokenizer",
        "legacy": True})}, encode_between(sp, plain, [1], [])
    out["llama"] = {"tokenizer.model": llama, "tokenizer_config.json": quiet({"tokenizer_class": "LlamaTokenizerFast",
        "legacy": False, "add_eos_token": True, "added_tokens_decoder": {"640": {"content": "[MASK]", "lstrip": False,
        "normalized": True, "rstrip": False, "single_word": False, "special": False}}})}, \
        encode_between(bare, {**plain, "[MASK]": (False, False, 640)}, [1], [2], sp)

    gemma = train(vocab_size=660, model_type="bpe", character_coverage=0.98, byte_fallback=True, add_dummy_prefix=False,
        remove_extra_whitespaces=False, normalization_rule_name="identity", allow_whitespace_only_pieces=True, pad_id=0,
        eos_id=1, bos_id=2, unk_id=3, bos_piece="<bos>", eos_piece="<eos>",
        user_defined_symbols=["<mask>", "\n", "\n\n", SPACE * 2, SPACE * 3, "[MASK]"])
    sp = sentencepiece.SentencePieceProcessor(model_proto=gemma)
    out["gemma"] = {"tokenizer.model": gemma, "config.json": quiet({"model_type": "gemma2"})}, \
        encode_between(sp, {"<eos>": (False, False, 1), "<bos>": (False, False, 2), "<unk>": (False, False, 3)}, [2], [])

    unigram = train(vocab_size=420, model_type="unigram", character_coverage=0.98)
    out["xlm-roberta"] = {"sentencepiece.bpe.model": unigram, "tokenizer_config.json": quiet({"model_max_length": 512,
        "tokenizer_class": "XLMRobertaTokenizer"})}, Fairseq(unigram, ["<s>", "<pad>", "</s>", "<unk>"], 1).encoder()
    out["camembert"] = {"sentencepiece.bpe.model": unigram, "config.json": quiet({"model_type": "camembert"}),
        "special_tokens_map.json": quiet({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>",
        "pad_token": "<pad>", "cls_token": "<s>", "mask_token": {"content": "<mask>", "single_word": False, "lstrip": True,
        "rstrip": False, "normalized": True}, "additional_special_tokens": ["<s>NOTUSED", "</s>NOTUSED"]})}, \
        Fairseq(unigram, ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"], 4).encoder()

    source = train(vocab_size=420, model_type="unigram", character_coverage=0.98)
    target = train(vocab_size=360, model_type="unigram", character_coverage=0.98, user_defined_symbols=["mirror"],
        add_dummy_prefix=False, remove_extra_whitespaces=False)
    pieces = lambda model: [piece[1].decode() for n, _, value in fields(model) if n == 1 for piece in [{k: v
        for k, _, v in fields(value)}]]
    def numbered(*models):
        tokens = dict.fromkeys(["</s>", "<unk>", *(p for i, model in enumerate(models) for p in pieces(model)[3 + i :]), "語",
            ">>fra<<", ">>deu<<", "<pad>"])
        return {t: i for i, t in enumerate(tokens)}
    marian = {"source.spm": source, "target.spm": target, "vocab.json": quiet(numbered(source, target)),
        "tokenizer_config.json": quiet({"source_lang": "en", "target_lang": "ROMANCE"})}
    out["marian"] = marian, None
    out["marian separate"] = {**marian, "vocab.json": quiet(numbered(source)), "target_vocab.json": quiet(numbered(target)),
        "tokenizer_config.json": quiet({"tokenizer_class": "MarianTokenizer", "separate_vocabs": True,
        "clean_up_tokenization_spaces": True})}, None
    return out


def small_marian():
    """Files for the tiny Marian of models/testdata, which has 31 tokens."""
    sentences = ["the cat sat on the mat", "a cat ate the tea", "that coat, that note!", "one oat at noon"]
    def small(**options):
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences * 9), model_writer=out, minloglevel=2,
            num_threads=1, hard_vocab_limit=False, normalization_rule_tsv=FEW, **options)
        return out.getvalue()
    source, target = small(vocab_size=24), small(vocab_size=20, add_dummy_prefix=False)
    pieces = lambda m: [v[1].decode() for n, _, value in fields(m) if n == 1 for v in [{k: v for k, _, v in fields(value)}]][3:]
    tokens = list(dict.fromkeys(["</s>", "<unk>", ">>fra<<", *pieces(source), *pieces(target)]))[:30]
    tokens += [f"unused{i}" for i in range(30 - len(tokens))] + ["<pad>"]
    return {"source.spm": source, "target.spm": target, "vocab.json": json.dumps({t: i for i, t in enumerate(tokens)},
        ensure_ascii=False) + "\n", "tokenizer_config.json": json.dumps({"tokenizer_class": "MarianTokenizer"}) + "\n"}


def load(files):
    folder = pathlib.Path(tempfile.mkdtemp())
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def hashes(encode, texts):
    """A hash of each 32 texts: ids and further fields, and the decoded text."""
    out, block, texts = b"", [], list(texts)
    for n, text in enumerate(texts):
        e = encode(text)
        rows = ["\x1f".join([str(id), *([e["t"][i], *map(str, e["o"][i])] if "t" in e else [])]) for i, id in enumerate(e["i"])]
        block.append("\x1e".join(rows) + "\x1d" + e["d"] + "\x1c")
        if len(block) == tokenizer.BLOCK or n == len(texts) - 1:
            out += hashlib.sha256("".join(block).encode()).digest()[:4]
            block = []
    return base64.b64encode(out).decode()


def results(encode, texts, randoms, every):
    def flat(e):
        return {**e, "o": [x for o in e["o"] for x in o]} if "o" in e else e
    return {"texts": [flat(encode(text)) for text in texts], "random": hashes(encode, randoms),
        "every": hashes(encode, every) if every else ""}


CODES = [">>fra<< Hello, world!", ">>deu<<Hello", ">>xyz<< <pad> >>fra<< a", ">>no end", "a >>fra<< b", ">> << x", "</s>>>fra<<x",
    "語 日語 語語", "<unk> a</s> b", "mirror mirrors", "<extra_id_0> the <extra_id_99>  x <extra_id_6>", "<s>hello</s> the <s>",
    "<bos>a<eos> b", "\n\n\n", "New York xxxx solo <sep><ctl>"]


SMALL = OUT.parent / "marian"

TIED = 320


def main():
    logging.disable(logging.WARNING)
    randoms, wide = list(tokenizer.random_texts()), list(tokenizer.every_character())
    texts = tokenizer.TEXTS + CODES
    names = [a for a in sys.argv[1:] if a != "--show"]
    golden = {"texts": texts, "models": [], "directories": []}
    if names:
        golden = json.loads(gzip.decompress(OUT.read_bytes()))
        assert golden["texts"] == texts, "the texts have changed, so all must be made anew"
        golden["directories"] = [d for d in golden["directories"] if d["name"] not in names]
    for name, model in make_models().items() if not names else []:
        sp = sentencepiece.SentencePieceProcessor(model_proto=model)
        every = wide if name in ("unigram nfkc", "unigram nfkc folded", "bpe user bytes") else None
        golden["models"].append({"name": name, "model": base64.b64encode(model).decode(),
            **results(encode_model(sp), texts, randoms if every else randoms[: tokenizer.FEWER], every),
            "tied": hashes(encode_model(sp), tied_texts(sp.id_to_piece(list(range(len(sp))))))})
        print(name, len(model), file=sys.stderr)
    for name, (files, encode) in directories().items():
        if names and name not in names:
            continue
        folder = load(files)
        golden["directories"].append(case := {"name": name, "files": {k: base64.b64encode(v if isinstance(v, bytes)
            else v.encode()).decode() for k, v in files.items()}})
        if encode:
            case.update(results(encode, texts, randoms, None))
            t = transformers.AutoTokenizer.from_pretrained(folder) if "config.json" in files else None
            if "tokenizer_config.json" in files:
                kind = getattr(transformers, json.loads(files["tokenizer_config.json"]).get("tokenizer_class", "T5Tokenizer"))
                t = kind.from_pretrained(folder)
            other = [text for text, e in zip(texts, case["texts"]) if t.encode(text) != e["i"]]
            print(name, "differs from transformers for", len(other), "of", len(texts), file=sys.stderr)
            if "sentencepiece.bpe.model" in files:
                case["pair"] = t("Hello", "world")["input_ids"]
            if "--show" in sys.argv:
                print("\n".join(map(repr, other)), file=sys.stderr)
            continue
        t = transformers.MarianTokenizer.from_pretrained(folder)
        def side(**which):
            def encode(text):
                words = t.target_encoder if t.separate_vocabs and "text_target" in which else t.encoder
                t.decoder = {id: word for word, id in words.items()}  # which transformers does for targets alone
                for token in ["</s>", "<unk>", "<pad>"]:  # and this for sources alone, even in targets
                    t._added_tokens_encoder[token] = words[token]
                ids = t(text if "text" in which else None, text_target=text if "text_target" in which else None)["input_ids"]
                return {"i": ids, "d": t.decode(ids, skip_special_tokens=True, use_source_tokenizer="text" in which)}
            return encode
        case.update(results(side(text=1), texts, randoms, None))
        case["target"] = results(side(text_target=1), texts, randoms, None)
        case["pair"] = t("Hello", "world")["input_ids"]
        print(name, file=sys.stderr)
    if not names:
        make_small()
    data = json.dumps(golden, ensure_ascii=False, separators=(",", ":")).encode()
    OUT.write_bytes(gzip.compress(data, 9, mtime=0))
    print(len(data), OUT.stat().st_size, file=sys.stderr)


def make_small():
    SMALL.mkdir(exist_ok=True)
    for name, content in small_marian().items():
        (SMALL / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    t = transformers.MarianTokenizer.from_pretrained(SMALL)
    print("small", t(">>fra<< the cat, ate!")["input_ids"], t(text_target="noon")["input_ids"], file=sys.stderr)


if __name__ == "__main__":
    main()
