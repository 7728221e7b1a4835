"""Write testdata/tokenizer/classes.json: the characters that classes of regular expressions match in `tokenizers`.

Oniguruma finds a class by another way in brackets than outside, so each one is tried in both, negated and not, with
every character. For each expression the file has the number of characters and a hash of their ranges.

    pip install -r testdata/tokenizer_requirements.txt
    python testdata/tokenizer_classes.py            # rewrite the file (some minutes)
"""

import hashlib
import json
import pathlib

from tokenizer_unicode import CATEGORIES, CHARS, SCRIPTS, matches, ranges

OUT = pathlib.Path(__file__).parent / "tokenizer" / "classes.json"

MIXED = r"""
    [\w\d] [^\w\d] [\W\d] [^\W\d] [^\W\d_] [^\s\W] [^\w\s] [\w\s] [\W\s] [\w²] [^\w²] [\w-] [-\w] [^\w.] [a-z\W] [\w\W] [^\w\W]
    [\d\S] [\D\s] [\p{L}\p{M}] [^\s\p{L}\p{N}] [^\r\n\p{L}\p{N}] [^\r\n\p{L}\p{P}\p{S}] [\p{L}\P{L}] [^\P{L}\w] [\p{No}\w]
    (?i:\w) (?i:\W) (?i:\d) (?i:\D) (?i:\s) (?i:\S) (?i:\p{Lu}) (?i:\P{Lu}) (?i:\p{Ll}) .
""".split()


def expressions():
    yield from MIXED
    groups = ["L", "M", "N", "P", "S", "Z", "C", "Cn", "Cs"]
    for name in [r"\w", r"\d", r"\s"] + [r"\p{%s}" % c for c in CATEGORIES + groups + ["Han", "Latin", "Common"]]:
        no = name.upper() if len(name) == 2 else name.replace("p", "P", 1)
        yield from [name, no, f"[{name}]", f"[^{name}]", f"[{no}]", f"[^{no}]"]
    yield from (r"\p{%s}" % s for s in SCRIPTS)


def main():
    every, found = "".join(CHARS), {}
    for expression in expressions():
        chars = matches(f"(?:{expression})", every)
        found[expression] = [len(chars), hashlib.sha256(" ".join(ranges(chars)).encode()).hexdigest()[:16]]
    lines = ",\n".join(f"{json.dumps(e, ensure_ascii=False)}: {json.dumps(v)}" for e, v in found.items())
    OUT.write_text("{\n" + lines + "\n}\n")


main()
