"""Write tokenizer/unicode_data.go: the characters that `tokenizers` treats as letters, punctuation and so on.

The components of the library use different versions of Unicode, from 9 to 17. So each class is read
from the component that uses it, by testing one character at a time:

    pip install -r testdata/tokenizer_requirements.txt
    python testdata/tokenizer_unicode.py            # rewrite the file (a minute)
    python testdata/tokenizer_unicode.py --check    # compare only; exit 1 on a difference
"""

import pathlib
import sys

from tokenizers import Regex, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).parent.parent / "tokenizer" / "unicode_data.go"
CHARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# Regular expressions also have Cs, which occurs in no text, and Cn, which is everything else.
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
SCRIPTS = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki
    Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee
    Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan
    Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Garay Georgian Glagolitic Gothic Grantha Greek Gujarati
    Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic
    Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi
    Khitan_Small_Script Khmer Khojki Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian
    Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui
    Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari
    New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Ol_Onal Old_Hungarian Old_Italic
    Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya
    Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada
    Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog
    Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri
    Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square
""".split()


def matches(expression, chars):
    """Characters of a text that a regular expression matches."""
    left = normalizers.Replace(Regex(expression + "+"), "").normalize_str(chars)
    return set(chars) - set(left)


def properties():
    """Tables of categories, of scripts, of characters of [\\w] that no category explains, and of \\w outside of brackets."""
    every = "".join(CHARS)
    assigned = "".join(sorted(set(every) - matches(r"[\p{Cn}\p{Co}]", every)))
    categories = {c: matches(r"\p{%s}" % c, every if c == "Co" else assigned) for c in CATEGORIES}
    scripts = {s: matches(r"\p{%s}" % s, assigned) for s in SCRIPTS}
    explained = set().union(*(categories[c] for c in "Lu Ll Lt Lm Lo Mn Mc Me Nd Pc".split()))
    words, inside = matches(r"\w", assigned), matches(r"[\w]", assigned)
    assert explained < inside < words
    return categories, scripts, inside - explained, words - inside


def tables(sets):
    """Words of a constant with several tables: each a name with a colon, ranges, and a semicolon."""
    return [word for name, chars in sets.items() for word in [name + ":", *ranges(chars), ";"]][:-1]


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
    categories, scripts, others, outside = properties()
    parts = [
        constant("categories", "are the general categories in regular expressions.", tables(categories)),
        constant("scripts", "are the scripts in regular expressions.", tables(scripts)),
        constant(
            "otherWords", "are the characters of [\\w] in regular expressions except \\p{L}, \\p{M}, \\p{Nd} and \\p{Pc}.", ranges(others)
        ),
        constant("outsideWords", "are the characters of \\w in regular expressions that [\\w] lacks.", ranges(outside)),
        constant("spaces", "are white space, everywhere.", ranges(removed(normalizers.Strip()))),
        constant(
            "numerics",
            "are the characters that the pre-tokenizer Digits splits off.",
            ranges(splits(pre_tokenizers.Digits(individual_digits=True), lambda c: ["a", c])),
        ),
        constant(
            "punctuation",
            "are the characters that the pre-tokenizers Punctuation and BertPreTokenizer split off.",
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
            "marks", "are the characters that the normalizer StripAccents strips.", ranges(removed(normalizers.StripAccents(), "a"))
        ),
        constant("normalized", "are characters that decompose or have a combining class.", ranges(normalized())),
    ]
    rows = [
        '\t%-8s "%s",' % ("0x%x:" % c, "".join("\\U%08x" % ord(x) for x in s)) for c, s in sorted(lowered().items())
    ]
    lower = "// lowered are lower-case forms that package unicode may lack, and the only one of two characters.\n"
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


if __name__ == "__main__":  # tokenizer_classes.py takes the characters
    main()
