"""Write testdata/tokenizer/golden.json.gz: encodings by `tokenizers`, for the tests of package tokenizer.

    pip install -r testdata/tokenizer_requirements.txt    # in a virtual environment, Python 3.11
    python testdata/tokenizer.py                          # a minute
    python testdata/tokenizer.py --show CASE TEXT         # print one encoding, to look at

The models are trained here, on the sentences below. Each case is a tokenizer with its encoding of every text:
ids, tokens, offsets in bytes, words, types, and the decoded text. For random texts, which the Go tests
generate in the same way, the file contains a hash of each group of 32.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).parent / "tokenizer" / "golden.json.gz"

CORPUS = """
The quick brown fox doesn't jump over the lazy dog; she'll have 12 reasons, they've 345 and I'm at 67890.
A model attends to keys: weights are probabilities, and the heads of a layer look for different things.
Tokens, tokenizers, tokenizing, tokenized; untokenizable words are cut into pieces that the model knows.
def attention(query, key, value):\n\treturn softmax(query @ key.T / 8.0) @ value  # shape [B, H, L, E]\n
Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au delà des îles, près du mälström.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Straße, Fußgänger, Größe, süß.
El veloz murciélago hindú comía feliz cardillo y kiwi. La cigüeña tocaba el saxofón. ¿Qué? ¡Sí!
Съешь же ещё этих мягких французских булок, да выпей чаю. Модель обращает внимание на слова.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Ο οίκος του Οδυσσέως.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق. اللُّغَةُ العَرَبِيَّةُ
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले विष्णुवतार भगवान श्रीराम।
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน จงฝ่าฟันพัฒนาวิชาการ
我能吞下玻璃而不伤身体。注意力机制是一种模型。东京和北京都是首都。
いろはにほへと ちりぬるを わかよたれそ つねならむ。カタカナとひらがなと漢字。
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 한국어 토큰.
Tiếng Việt có nhiều dấu: ướt, nghiêng, được, thuở, trường, phượng hoàng.
🙂 👍🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️ ☕ 5️⃣ emoji are fun 🎉🎉
""".strip().split("\n")

TEXTS = [
    "", " ", "a", "Hello, world!", "Hello,   world !  ", "  leading", "trailing  ", "a  b   c    d", "\t\ttabs\there",
    "line\nline\r\nline\n\n\nline\r\rend", "\r\n", "\n", " \n ", "x \n\n  y", "   \r\n   z",
        "don't DON'T we'll WE'LL I'd they'Ve 'ſ 'S 's",
    "1234567890 12 3,456.78 ½ Ⅷ ٣٤٥ १२३ 五 ²", "foo123bar 3rd", "!!! ... ??? --- ((([[[{{{", "a.b,c;d:e",
        "_under_score_ __x__", "$100 €20 + 5 = < > | ~ ^ `",
    "UPPER lower Title cAmElCaSe İstanbul ΣΊΣΥΦΟΣ ẞ ǅ", "naïve café déjà-vu Ångström",
        "nai\u0308ve cafe\u0301 A\u030angstro\u0308m", "e\u0301\u0323 e\u0323\u0301 o\u0302\u0303 \u0301lone",
    "q\u0307\u0323 q\u0323\u0307 \u1e0b\u0323 a\u0315\u0300\u05ae\u0062", "ﬁne ﬂow ﬃ ① Ⓐ ｆｕｌｌ　ｗｉｄｔｈ ㎏ ㍿ ℌ ﷺ",
        "①\u0301 ﬁ\u0301 a\u0301 ½\u0301 x\u20dd",
    "日本語のテキスト、漢字とカナ。ﾊﾝｶｸ ｶﾞ", "我能吞下玻璃而不伤身体 mixed 中文 and English文",
        "\U00020000\U0002a6e0 \U0002b820\U0002b91f\U0002b920 豈\U0002f800",
        "한국어 텍스트 \u1112\u1161\u11ab\u1100\u1173\u11af 각\u11a8",
    "สวัสดีชาวโลก ทดสอบ ๑๒๓ กำ", "مرحبا بالعالم اللُّغَةُ العَرَبِيَّةُ ١٢٣", "नमस्ते दुनिया क्षत्रिय श्रीराम। १२३",
        "שָׁלוֹם עוֹלָם", "Привет, мир! Ёлки й \u0438\u0306",
    "🙂", "🙂🙂 👍🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ 5️⃣ ☕️", "a👍b 👨‍💻x", "zero\u200bwidth\u200cjoin\u200der\ufeffbom \u2060",
        "soft\u00adhyphen nb\u00a0sp thin\u2009sp ideo\u3000sp line\u2028sep para\u2029sep nel\u0085x",
    "\x00nul \x01\x02 \x07bell \x1b[0m del\x7f \x80\x9f c1", "\ufffd replacement \ue000 private \U000f0000",
        "unassigned \u0378 \U000e0001 tag\U000e0100",
        "\u0898\u0301a \u0316\u0898 a\u0898\u0301 \U00011938 \U00010d50\ua7da",
    "[CLS] [SEP] [MASK] [UNK] <s> </s> <unk> <mask> <pad> <|endoftext|>", "a[MASK]b [MASK]c d[MASK]",
        "x  <mask>  y<mask>z <mask> <mask>", "word<special>word <Special> <SPECIAL>",
        "solo xsolo solox solo_ solo, éssolo solo",
    "both  <l>  <r>  <b>  end<l><r><b>", "Déjà DÉJÀ déjà dejà", "tokens tokenizers untokenizable tokenization",
        "the quick brown fox", "The attention weights of keys", "▁ meta ▁space▁ ▁▁x", "a▁b", "<0x41> <0xE4><0x20>",
    "``quoted'' text", "\" 'single' “curly” ‘x’ «g»", "https://example.com/a?b=c&d=%20#e", "user@mail.org",
        "def f(x):\n    return x**2  # ok\n\n\tif x: pass", "{\"a\": [1, 2.5e-3, null]}",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "éééééééééééééééééééééééééééééééééééééééé", " " * 40, "a" + " " * 30 + "b", "字" * 30, "\u0301" * 20,
        "ab" * 40,
    "Tiếng Việt ướt Tiê\u0301ng Vie\u0302\u0323t", "ǆ Ǆ ŉ ß ẞ ς Σ ſ K Å", "᾿Αθῆναι ᾳ ΐ", "mixed рус ελ 中 ع ह ก 한 🙂",
        "a-b—c–d…e", "O'Neill's rock'n'roll 'tis", "3.14 1,000,000 1e10 0x1F 12345678",
        "\u1100\u1161 \uac00\u11a8 \u3131", "i̇ I ı",
    "\u06dd\u0600x \u110bd", "\u0e33 \u0ec0 \u0f73\u0f74", "\u2126\u212b\u2160 \ufb1d \u0340\u0344 \u0958\u0929",
        "A\u20d0 \U0001d15e \U0001f16c\u32ff", "\r", "a\rb", "\r\na\r\n\r\n", "e\r\n\u0301", "\u200d\u200d🙂\u200d",
]

PAIRS = [("Hello", "world"), ("", "b"), ("a", ""), ("", ""), ("What is attention?", "It weights keys."), ("日本語",
    "🙂 emoji"), (" lead", " lead two "), ("the quick brown fox", "a"), ("x", "the quick brown fox jumps"),
    ("<mask> a", "b <mask>")]

# Parts of random texts.
ALPHABETS = [
    list("abcdefghijklmnopqrstuvwxyz"), list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), list("0123456789"), list(" " * 8),
        list(" \t\n\r\u00a0\u3000\u0085\u2028"), ["\r\n", "\n\n", "  ", "   "],
    list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), list("'"), list("éèêëàâäôöùûüçñßœæøåÉÀİıſ"),
        list("абвгдежзийклмнопрстуфхцчшщъыьэюяЁ"), list("αβγδεζηθικλμνξοπρσςτυφχψωΆΣ"),
    list("ابتثجحخدذرزسشصضطظعغفقكلمنهوي\u064b\u064c\u064e\u0651\u0652"),
        list("अआइईउऊकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह\u093e\u093f\u0940\u094d\u0902\u093c"),
        list("กขคงจฉชซญดตถทนบปผพฟมยรลวสหอฮ\u0e31\u0e34\u0e35\u0e48\u0e49\u0e4c"),
    list("我能吞下玻璃而不伤身体中文字符漢\U00020000\U0002b820"), list("あいうえおかきくけこアイウエオカキクケコーﾊﾟ"), list("가각간갇갈한국어\u1100\u1161\u11a8"),
        list("\u0300\u0301\u0302\u0303\u0308\u0323\u0327\u0338\u20dd\u05b0"),
    list("🙂👍🎉❤☕👩👨💻🇩🇪\U0001f3fd\u200d\ufe0f\u20e3"),
        list("\u200b\u200c\u200d\u2060\ufeff\u00ad\u0000\u0001\u001b\u007f\u0090\ufffd\ue000"),
        list("ﬁﬂ①②½²ⅷＡｂ１℃㎏ﷺ\u0344\u0958\u1e9b\u212b"),
    ["[MASK]", "<mask>", "<s>", "</s>", "<special>", "solo", "<l>", "<r>", "<b>", "[UNK]", "▁", "<0x41>", "</w>",
        "##"], [" the", " token", "ing", "ation", "attention", " model", "n't", "'s", "'ll"],
]

RANDOM = 10000
FEWER = 1600  # for most cases
BLOCK = 32


def draws(state):
    """A simple generator of random numbers that Go reimplements: splitmix64."""
    mask = (1 << 64) - 1

    def draw(n):
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (z ^ (z >> 31)) % n

    return draw


def random_texts():
    """Texts from random numbers, seeded with the number of the text. Go makes the same texts."""
    for i in range(RANDOM):
        draw = draws(i)
        parts, alphabet = [], 0
        for _ in range(1 + draw(28)):
            if draw(3) == 0:  # else the same script goes on
                alphabet = draw(len(ALPHABETS))
            parts.append(ALPHABETS[alphabet][draw(len(ALPHABETS[alphabet]))])
        yield "".join(parts)


def every_character():
    """Each character by itself, between letters and after a space, 512 per text."""
    points = [c for c in [*range(0x3400), *range(0x4DB0, 0x4E10), *range(0x9FF0, 0xAC10), *range(0xD7A0, 0xD800),
        *range(0xE000, 0xE010), *range(0xF8F0, 0x13440),
                          *range(0x16800, 0x16FF0), *range(0x1AFF0, 0x1FBFF), *range(0x2A6D0, 0x2A710),
                              *range(0x2B730, 0x2B930), *range(0x2CEA0, 0x2CEC0), *range(0x2EBE0, 0x2EC00),
                          *range(0x2F800, 0x2FA30), *range(0xE0000, 0xE0200)]]
    for i in range(0, len(points), 512):
        yield "".join(f"a{chr(c)}b {chr(c)} " for c in points[i : i + 512])


def model(m):
    return json.loads(Tokenizer(m).to_str())["model"]


def trained(m, trainer, pre=None, normalizer=None):
    t = Tokenizer(m)
    t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator(CORPUS, trainer)
    return json.loads(t.to_str())["model"]


def make_models():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    quiet = {"show_progress": False}
    byte_level = trained(models.BPE(), trainers.BpeTrainer(vocab_size=700, special_tokens=["<s>", "<pad>", "</s>",
        "<unk>", "<mask>"], initial_alphabet=alphabet, **quiet), pre_tokenizers.ByteLevel(add_prefix_space=False))
    ignoring = {**byte_level, "ignore_merges": True}
    # words that no merge produces
    ignoring["vocab"] = {**byte_level["vocab"], "Ġzzyzx": 700, "xylo": 701, "Ġuntokenizable": 702,
        "字".encode().decode("latin-1"): 703}
    bytes_ = {f"<0x{i:02X}>": 3 + i for i in range(256)}
    spaced = trained(models.BPE(unk_token="<unk>"), trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>",
        "<s>", "</s>", *bytes_], limit_alphabet=120, **quiet), pre_tokenizers.Metaspace())
    fallback = {**spaced, "byte_fallback": True, "fuse_unk": True}
    some = {k: v for k, v in spaced["vocab"].items() if not k.startswith("<0xE") and not k.startswith("<0xF")}
    some = {k: i for i, k in enumerate(sorted(some, key=spaced["vocab"].get))}
    partly = {**fallback, "vocab": some}
    suffix = trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), trainers.BpeTrainer(vocab_size=500,
        special_tokens=["<unk>", "<s>", "</s>"], limit_alphabet=100, end_of_word_suffix="</w>", **quiet),
        pre_tokenizers.BertPreTokenizer(), normalizers.Lowercase())
    prefix = trained(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"),
        trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>"], limit_alphabet=100,
        continuing_subword_prefix="##", **quiet), pre_tokenizers.BertPreTokenizer())
    bert_special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    uncased = trained(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100),
        trainers.WordPieceTrainer(vocab_size=600, special_tokens=bert_special, limit_alphabet=300, **quiet),
        pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer())
    cased = trained(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30),
        trainers.WordPieceTrainer(vocab_size=600, special_tokens=bert_special, limit_alphabet=200, **quiet),
        pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer(lowercase=False))
    unigram = trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=420, special_tokens=["<pad>", "</s>",
        "<unk>", "<s>"], unk_token="<unk>", **quiet), pre_tokenizers.Metaspace(), normalizers.NFKC())
    with_bytes = {**unigram, "byte_fallback": True, "vocab": unigram["vocab"] + [[b, -30.0 - i / 16] for i,
        b in enumerate(bytes_)]}
    words = {w: i for i, w in enumerate(["<unk>", "the", "quick", "a", "b", "Hello", "world", ",", "!", " ", "12",
        "é", "中", "x", "-", "▁", "▁a"])}
    return {
        "byte_level": byte_level, "ignoring": ignoring, "fallback": fallback, "partly": partly, "spaced": spaced,
            "suffix": suffix, "prefix": prefix,
        "nounk": {**spaced, "unk_token": None}, "string_merges": {**prefix,
            "merges": [" ".join(m) for m in prefix["merges"]], "fuse_unk": True},
        "uncased": uncased, "cased": cased, "unigram": unigram, "unigram_bytes": with_bytes,
        "words": model(models.WordLevel(words, unk_token="<unk>")),
    }


def charsmap():
    """A small normalizer of sentencepiece: rules that shorten, lengthen, delete, and match several characters."""
    rules = {"ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "①": "1", "½": "1/2", "Ａ": "A", "ｂ": "b", "１": "1", "\u3000": " ",
        "\u00a0": " ", "\t": " ", "\n": " ", "\r\n": " ", "\u200b": "", "\u00ad": "", "\ufeff": "",
             "e\u0301": "é", "E\u0301": "É", "a\u0308": "ä", "㎏": "kg", "㍿": "株式会社", "ﷺ": "صلى الله", "ﾊﾟ": "パ",
                 "\u1100\u1161": "가", "\u0344": "\u0308\u0301", "…": "...", "„": "\"", "x\u20dd": "(x)", "🇩🇪": "DE"}
    tsv = pathlib.Path(tempfile.mkdtemp()) / "rules.tsv"
    tsv.write_text("".join("%s\t%s\n" % (" ".join("%X" % ord(c) for c in a),
        " ".join("%X" % ord(c) for c in b)) for a, b in rules.items()))
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=out, model_type="char",
        vocab_size=100, normalization_rule_tsv=str(tsv), minloglevel=2)
    data = out.getvalue()
    # Only this field is needed: normalizer_spec (3), precompiled_charsmap (2).
    def fields(b):
        i = 0
        def varint():
            nonlocal i
            n = shift = 0
            while True:
                c = b[i]
                i += 1
                n |= (c & 127) << shift
                shift += 7
                if c < 128:
                    return n
        while i < len(b):
            key = varint()
            if key & 7 == 2:
                n = varint()
                yield key >> 3, b[i : i + n]
                i += n
            elif key & 7 == 0:
                yield key >> 3, varint()
            else:
                i += 4 if key & 7 == 5 else 8
    spec = dict(fields(dict(fields(data))[3]))
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(spec[2]).decode()}


GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CLIP = r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""
KANA = r"""[一-龥ぁ-ん]+|\d{2,3}|[A-Za-z]+?e|\S"""
ENDING = r"""[^\r\n\p{L}\p{N}]?\p{L}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""


def part(x):
    return json.loads(x.__getstate__()) if x is not None else None


def make_cases():
    N, P, R, D = normalizers, pre_tokenizers, processors, decoders
    precompiled = charsmap()

    def seq(kind, *parts):
        return {"type": "Sequence", kind: list(parts)}

    def token(id, content, special=True, **flags):
        return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special, **flags}

    def case(name, model, norm=None, pre=None, post=None, dec=None, added=(), truncation=None, padding=None,
        wide=False):
        def plain(x):
            return x if isinstance(x, dict) or x is None else part(x)
        return {"name": name, "wide": wide, "tokenizer": {"version": "1.0", "truncation": truncation,
            "padding": padding, "added_tokens": list(added), "normalizer": plain(norm), "pre_tokenizer": plain(pre),
            "post_processor": plain(post), "decoder": plain(dec), "model": model}}

    bert_added = [token(i, t) for i, t in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])]
    bert_template = R.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    rob_added = [token(0, "<s>"), token(1, "<pad>"), token(2, "</s>"), token(3, "<unk>"), token(4, "<mask>",
        lstrip=True)]
    mpnet = R.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0),
        ("</s>", 2)])
    eos = R.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    byte_level = P.ByteLevel(add_prefix_space=False)
    unsplit = P.ByteLevel(add_prefix_space=False, use_regex=False)
    split = lambda expr: part(P.Split(Regex(expr), "isolated"))
    llama2 = seq("decoders", part(D.Replace("▁", " ")), part(D.ByteFallback()), part(D.Fuse()), part(D.Strip(" ", 1,
        0)))
    cut = lambda n, strategy="LongestFirst", direction="Right": {"max_length": n, "strategy": strategy,
        "direction": direction, "stride": 0}
    pad = lambda strategy, direction="Right", multiple=None: {"strategy": strategy, "direction": direction,
        "pad_to_multiple_of": multiple, "pad_id": 0, "pad_type_id": 1, "pad_token": "[PAD]"}
    short = lambda name, **settings: case(name, "uncased", N.BertNormalizer(), P.BertPreTokenizer(), bert_template,
        D.WordPiece(), bert_added, **settings)
    every = [
        token(17, "<special>", False, normalized=True), token(18, "solo", False, single_word=True, normalized=True),
            token(19, "<l>", False, lstrip=True), token(20, "<r>", False, rstrip=True),
        token(21, "<b>", lstrip=True, rstrip=True), token(22, "Déjà", False, normalized=True), token(23, "[MASK]"),
            token(24, "solo_", False), token(25, "<mask>", normalized=True, lstrip=True),
    ]

    cases = [
        case("bert uncased", "uncased", N.BertNormalizer(), P.BertPreTokenizer(), bert_template, D.WordPiece(),
            bert_added, wide=True),
        case("bert cased", "cased", N.BertNormalizer(lowercase=False), P.BertPreTokenizer(),
            R.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), D.WordPiece(cleanup=False), bert_added),
        case("bert accents kept", "uncased", N.BertNormalizer(clean_text=False, handle_chinese_chars=False,
            strip_accents=False), P.BertPreTokenizer(), None, None, bert_added),
        case("bert accents stripped", "cased", N.BertNormalizer(lowercase=False, strip_accents=True,
            clean_text=False), P.BertPreTokenizer(), bert_template, D.WordPiece("##", False), bert_added),
        case("mpnet", "uncased", N.BertNormalizer(), P.BertPreTokenizer(), mpnet, D.WordPiece(), [token(4, "[MASK]",
            lstrip=True)]),
        case("gpt2", "byte_level", None, byte_level, R.ByteLevel(trim_offsets=False), D.ByteLevel(), [token(2, "</s>",
            normalized=True)], wide=True),
        case("roberta", "byte_level", None, P.ByteLevel(add_prefix_space=False), R.RobertaProcessing(("</s>", 2),
            ("<s>", 0), True, False), D.ByteLevel(), rob_added),
        case("roberta prefix", "byte_level", None, P.ByteLevel(add_prefix_space=True), R.RobertaProcessing(("</s>",
            2), ("<s>", 0), True, True), D.ByteLevel(), rob_added),
        case("roberta untrimmed", "byte_level", None, P.ByteLevel(add_prefix_space=True), R.RobertaProcessing(("</s>",
            2), ("<s>", 0), False, True), D.ByteLevel(), rob_added),
        case("smollm", "byte_level", None, seq("pretokenizers", part(P.Digits(individual_digits=True)),
            part(byte_level)), None, D.ByteLevel(), rob_added),
        case("llama3", "ignoring", None, seq("pretokenizers", split(LLAMA3), part(unsplit)), seq("processors",
            part(R.ByteLevel(trim_offsets=False)), part(R.TemplateProcessing(single="<s> $A",
            pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 0)]))), D.ByteLevel(), rob_added, wide=True),
        case("qwen", "byte_level", N.NFC(), seq("pretokenizers", split(QWEN), part(unsplit)),
            R.ByteLevel(trim_offsets=True), D.ByteLevel(), rob_added),
        case("split gpt2", "byte_level", N.NFKC(), seq("pretokenizers", split(GPT2),
            part(P.ByteLevel(add_prefix_space=True, use_regex=False))), None, D.ByteLevel(), rob_added),
        case("split endings", "byte_level", None, seq("pretokenizers", split(ENDING), part(unsplit)), None,
            D.ByteLevel()),
        case("llama2", "fallback", seq("normalizers", part(N.Prepend("▁")), part(N.Replace(" ", "▁"))), None,
            R.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]), llama2,
            [token(0, "<unk>"), token(1, "<s>"), token(2, "</s>", normalized=True)], wide=True),
        case("gemma", "fallback", N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), None, seq("decoders",
            part(D.Replace("▁", " ")), part(D.ByteFallback()), part(D.Fuse())), [token(0, "<unk>")]),
        case("fallback partly", "partly", None, P.Metaspace(prepend_scheme="first"), None, D.ByteFallback()),
        case("unknown kept apart", "spaced", None, P.Metaspace(prepend_scheme="never", split=False), None,
            D.Metaspace(prepend_scheme="never")),
        case("unknown dropped", "nounk", None, P.Metaspace(), None, D.Metaspace()),
        case("clip", "suffix", seq("normalizers", part(N.NFC()), part(N.Replace(Regex(r"\s+"), " ")),
            part(N.Lowercase())), {"type": "Split", "pattern": {"Regex": CLIP}, "behavior": "Removed",
            "invert": True}, R.RobertaProcessing(("</s>", 2), ("<s>", 1), False, False), D.BPEDecoder("</w>"),
            [token(1, "<s>"), token(2, "</s>", normalized=True)]),
        case("bpe prefix", "prefix", None, P.BertPreTokenizer(), None, None),
        case("bpe fused", "string_merges", N.NFKD(), P.Whitespace(), None, D.WordPiece("##", True), wide=True),
        case("t5", "unigram", precompiled, P.Metaspace(), eos, D.Metaspace(), [token(0, "<pad>"), token(1, "</s>"),
            token(2, "<unk>")], wide=True),
        case("xlm-r", "unigram", seq("normalizers", precompiled, part(N.Replace(Regex(" {2,}"), " "))),
            seq("pretokenizers", part(P.WhitespaceSplit()), part(P.Metaspace())), mpnet, D.Metaspace(), [token(2,
            "<unk>")]),
        case("albert", "unigram", seq("normalizers", part(N.Replace("``", '"')), part(N.Replace("''", '"')),
            part(N.NFKD()), part(N.StripAccents()), part(N.Lowercase()), precompiled), P.Metaspace(), None,
            D.Metaspace(), wide=True),
        case("unigram bytes", "unigram_bytes", N.NFKC(), P.Metaspace(prepend_scheme="first", split=False), None,
            seq("decoders", part(D.ByteFallback()), part(D.Metaspace(prepend_scheme="first")))),
        case("whole text", "unigram", None, None, None, None),
        case("words", "words", N.NFD(), P.Whitespace(), None, D.Fuse(), wide=True),
        case("added tokens", "words", seq("normalizers", part(N.NFD()), part(N.StripAccents()), part(N.Lowercase())),
            P.Metaspace(prepend_scheme="first"), None, D.Metaspace(), every),
        case("added tokens raw", "words", N.Strip(), P.Whitespace(), None, None, every),
        case("added tokens prefix", "byte_level", N.Lowercase(), P.ByteLevel(add_prefix_space=True), R.ByteLevel(),
            D.ByteLevel(), [token(700, "<special>", False, normalized=True), token(701, "[MASK]", lstrip=True,
            rstrip=True), token(702, "éé", False), token(703, " x", False)]),
        case("nmt", "words", seq("normalizers", part(N.Nmt()), part(N.Strip(left=True, right=False))),
            P.WhitespaceSplit(), None, D.CTC("a", "b")),
        case("strip right", "words", seq("normalizers", part(N.Strip(left=False, right=True)),
            part(N.StripAccents())), P.CharDelimiterSplit("-"), None, D.Strip("a", 2, 0), wide=True),
        case("byte-level normalizer", "byte_level", N.ByteLevel(), None, None, D.ByteLevel(), [token(700, "ça", False,
            normalized=True)]),
        case("digits", "words", None, seq("pretokenizers", part(P.Digits()), part(P.Punctuation("contiguous")))),
        case("kana", "words", None, P.Split(Regex(KANA), "isolated"), wide=True),
        short("truncated", truncation=cut(8)), short("truncated left", truncation=cut(7, direction="Left")),
            short("first cut", truncation=cut(12, "OnlyFirst")),
        short("padded", padding=pad({"Fixed": 16})), short("padded left", truncation=cut(9),
            padding=pad("BatchLongest", "Left", 4)),
    ]
    for behavior in ["removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next"]:
        cases.append(case("punctuation " + behavior, "words", None, P.Punctuation(behavior)))
        for invert in [False, True]:
            cases.append(case(f"split {behavior} {invert}", "words", None, P.Split(Regex(r"[a-e\s]"), behavior,
                invert)))
    return cases


def encode(t, text, pair=None):
    e = t.encode(text, pair) if pair is not None else t.encode(text)
    texts = [text, pair]
    starts = []
    for s in texts:
        at = [0]
        for c in s or "":
            at.append(at[-1] + len(c.encode()))
        starts.append(at)
    offsets = []
    for (a, b), which in zip(e.offsets, e.sequence_ids):
        at = starts[which or 0]
        offsets.append([at[a], at[b]])
    return {"i": e.ids, "t": e.tokens, "o": offsets, "k": e.type_ids,
        "w": [-1 if w is None else w for w in e.word_ids], "s": e.special_tokens_mask, "m": e.attention_mask,
        "d": t.decode(e.ids), "D": t.decode(e.ids, skip_special_tokens=False)}


def line(e):
    rows = ["%d\x1f%s\x1f%d\x1f%d\x1f%d\x1f%d" % (i, t, o[0], o[1], k, w) for i, t, o, k, w in zip(e["i"], e["t"],
        e["o"], e["k"], e["w"])]
    return "\x1e".join(rows) + "\x1d" + e["d"] + "\x1c"


def hashes(t, texts):
    out, block = b"", []
    for text in texts:
        block.append(line(encode(t, text)))
        if len(block) == BLOCK:
            out += hashlib.sha256("".join(block).encode()).digest()[:4]
            block = []
    if block:
        out += hashlib.sha256("".join(block).encode()).digest()[:4]
    return base64.b64encode(out).decode()


def compact(t, e):
    """Omits fields that follow from others or have their default."""
    flat = [x for o in e["o"] for x in o]
    short = {"i": e["i"], "o": flat, "w": e["w"], "d": e["d"]}
    for key, usual in [("k", 0), ("s", 0), ("m", 1)]:
        if any(x != usual for x in e[key]):
            short[key] = e[key]
    if e["D"] != e["d"]:
        short["D"] = e["D"]
    odd = {i: token for i, (id, token) in enumerate(zip(e["i"], e["t"])) if t.id_to_token(id) != token}
    if odd:
        short["t"] = odd
    return short


def main():
    all_models, cases = make_models(), make_cases()
    for c in cases:
        c["loaded"] = Tokenizer.from_str(json.dumps({**c["tokenizer"], "model": all_models[c["tokenizer"]["model"]]}))
    if "--show" in sys.argv:
        name, text = sys.argv[2:4]
        t = next(c["loaded"] for c in cases if c["name"] == name)
        print(json.dumps(encode(t, text), ensure_ascii=False))
        return
    randoms, wide = list(random_texts()), list(every_character())
    for c in cases:
        t = c.pop("loaded")
        c["texts"] = [compact(t, encode(t, text)) for text in TEXTS]
        if "first cut" not in c["name"]:
            c["pairs"] = [compact(t, encode(t, a, b)) for a, b in PAIRS]
        c["random"] = hashes(t, randoms if c["wide"] else randoms[:FEWER])
        if c.pop("wide"):
            c["every"] = hashes(t, wide)
        print(c["name"], file=sys.stderr)
    golden = {"texts": TEXTS, "pair_texts": PAIRS, "alphabets": ALPHABETS, "models": all_models, "cases": cases}
    data = json.dumps(golden, ensure_ascii=False, separators=(",", ":")).encode()
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_bytes(gzip.compress(data, 9, mtime=0))
    print(len(data), OUT.stat().st_size, file=sys.stderr)


if __name__ == "__main__":  # sentencepiece.py takes the texts
    main()
