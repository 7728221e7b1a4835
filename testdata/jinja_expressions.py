"""Writes internal/app/jinja/testdata/expressions.json: the output of Jinja for the templates in expressions.txt, one per line,
with the settings of transformers' apply_chat_template. An entry without "want" is a template that Jinja rejects.

    pip install jinja2==3.1.6
    python testdata/jinja_expressions.py           write the file
    python testdata/jinja_expressions.py --check   compare the file with what would be written; exit 1 on a difference
"""

import json
import sys
from pathlib import Path

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

PINNED = "3.1.6"
FOLDER = Path(__file__).resolve().parent.parent / "internal/app/jinja/testdata"


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def main():
    if jinja2.__version__ != PINNED:
        sys.exit(f"jinja2 is {jinja2.__version__}, want {PINNED}")
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = tojson
    cases = []
    for line in (FOLDER / "expressions.txt").read_text().splitlines():
        case = {"template": line}
        try:
            case["want"] = env.from_string(line).render()
        except Exception:  # of any type: those of Python come through
            pass
        cases.append(case)
    text = json.dumps(cases, indent=1, ensure_ascii=False) + "\n"
    file = FOLDER / "expressions.json"
    if "--check" in sys.argv:
        sys.exit(0 if file.read_text() == text else f"{file} differs")
    file.write_text(text)


main()
