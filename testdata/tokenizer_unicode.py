"""Write tokenizer/unicode_data.go: which characters `tokenizers` takes for letters, punctuation and so on.

The library mixes several versions of Unicode, from 9 to 17, according to who asks. So each class is asked
from the component that uses it, one character at a time:

    pip install -r testdata/tokenizer_requirements.txt
    python testdata/tokenizer_unicode.py            # rewrite the file (a minute)
    python testdata/tokenizer_unicode.py --check    # compare only; exit 1 on a difference
"""

import pathlib
import sys

from tokenizers import Regex, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).parent.parent / "tokenizer" / "unicode_data.go"
CHARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def removed(normalizer, before=""):
    """Characters that a normalizer takes away."""
    return {c for c in CHARS if normalizer.normalize_str(before + c) == before}


def splits(pre_tokenizer, want):
    """Characters behind an "a" for which the pieces are as wanted."""
    return {c for c in CHARS if [p for p, _ in pre_tokenizer.pre_tokenize_str("a" + c)] == want(c)}


def normalized():
    """Characters that decompose, or change places with other marks."""
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()

    def moves(c):
        return (
            nfd.normalize_str("a" + c + "\u0334") != "a" + c + "\u0334"
            or nfd.normalize_str("a\u0345" + c) != "a\u0345" + c
        )

    return {c for c in CHARS if nfkd.normalize_str(c) != c or moves(c)}


def lowered():
    """Lower-case forms of capital letters that Unicode has added since version 15, and of İ."""
    lower = normalizers.Lowercase()
    new = [
        range(0x130, 0x131),
        range(0x1C89, 0x1C8A),
        range(0xA7CB, 0xA7DD),
        range(0x10D50, 0x10D66),
        range(0x16EA0, 0x16EB9),
    ]
    return {c: lower.normalize_str(chr(c)) for r in new for c in r if lower.normalize_str(chr(c)) != chr(c)}


def ranges(chars):
    """Ranges of code points, as "41-5a 61-7a"."""
    out, points = [], sorted(map(ord, chars))
    for p in points:
        if out and out[-1][1] + 1 == p:
            out[-1][1] = p
        else:
            out.append([p, p])
    return ["%x" % a if a == b else "%x-%x" % (a, b) for a, b in out]


def constant(name, comment, words):
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 100:
            lines.append(line)
            line = ""
        line += word + " "
    lines.append(line.rstrip())
    quoted = " +\n\t".join('"%s"' % line for line in lines)
    return "// %s %s\nconst %s = %s\n" % (name, comment, name, quoted)


def source():
    bert = lambda **on: normalizers.BertNormalizer(
        **{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False, **on}
    )
    decomposed = {c for c in CHARS if normalizers.NFD().normalize_str(c) != c}
    parts = [
        constant(
            "letters", "are \\p{L} in regular expressions.", ranges(removed(normalizers.Replace(Regex(r"\p{L}"), "")))
        ),
        constant(
            "numbers", "are \\p{N} in regular expressions.", ranges(removed(normalizers.Replace(Regex(r"\p{N}"), "")))
        ),
        constant(
            "decimals",
            "are \\p{Nd} in regular expressions.",
            ranges(removed(normalizers.Replace(Regex(r"\p{Nd}"), ""))),
        ),
        constant("spaces", "are white space, everywhere.", ranges(removed(normalizers.Strip()))),
        constant(
            "numerics",
            "are what the pre-tokenizer Digits splits off.",
            ranges(splits(pre_tokenizers.Digits(individual_digits=True), lambda c: ["a", c])),
        ),
        constant(
            "punctuation",
            "is what the pre-tokenizers Punctuation and BertPreTokenizer split off.",
            ranges(splits(pre_tokenizers.Punctuation(), lambda c: ["a", c])),
        ),
        constant(
            "words",
            "are \\w in the pre-tokenizer Whitespace and around added tokens.",
            ranges(splits(pre_tokenizers.Whitespace(), lambda c: ["a" + c])),
        ),
        constant("controls", "are what BertNormalizer cleans away.", ranges(removed(bert(clean_text=True)))),
        constant(
            "accents",
            "are what BertNormalizer strips, after decomposing.",
            ranges(removed(bert(strip_accents=True), "a") - decomposed),
        ),
        constant(
            "marks", "are what the normalizer StripAccents strips.", ranges(removed(normalizers.StripAccents(), "a"))
        ),
        constant("normalized", "are characters that decompose or have a combining class.", ranges(normalized())),
    ]
    rows = [
        '\t%-8s "%s",' % ("0x%x:" % c, "".join("\\U%08x" % ord(x) for x in s)) for c, s in sorted(lowered().items())
    ]
    lower = "// lowered are lower-case forms that package unicode may not know, and the one of two characters.\n"
    lower += "var lowered = map[rune]string{\n" + "\n".join(rows) + "\n}\n"
    head = "// Code generated by testdata/tokenizer_unicode.py; DO NOT EDIT.\n\npackage tokenizer\n\n"
    return head + "\n".join(parts + [lower])


def main():
    text = source()
    if "--check" in sys.argv:
        same = OUT.read_text() == text
        print("same" if same else f"{OUT} differs")
        sys.exit(not same)
    OUT.write_text(text)


main()
