"""Writes internal/app/jinja/testdata/golden.json: the output of transformers for chats and the templates in its folder.

The templates *.jinja are written in the style of those of model families, and two of them go through operators and
statements. For each template and each chat, the file contains the text or an error. The date is 2 March 2025.

    pip install -r testdata/requirements.txt jinja2==3.1.6
    python testdata/chat_templates.py           write the file
    python testdata/chat_templates.py --check   compare the file with what would be written; exit 1 on a difference
"""

import datetime
import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import jinja2
import transformers
from transformers.utils import chat_template_utils

PINNED = {"transformers": "5.23.0", "jinja2": "3.1.6"}
FOLDER = Path(__file__).resolve().parent.parent / "internal/app/jinja/testdata"


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 3, 2, 9, 5, 7)


def said(*turns):
    return [{"role": role, "content": content} for role, content in turns]


CHATS = {
    "one": dict(messages=said(("user", "Hello"))),
    "system": dict(messages=said(("system", "Be brief. "), ("user", "  Who?\n"))),
    "turns": dict(
        messages=said(("user", "é 日本 🙂 {{ 1 }}"), ("assistant", "<think>\nhm\n</think>\n\nSo: \"x\" "), ("user", "And\n\nthen\t?"))
    ),
    "empty content": dict(messages=said(("user", ""))),
    "two users": dict(messages=said(("user", "a"), ("user", "b"))),
    "continued": dict(messages=said(("system", "s"), ("user", "q"), ("assistant", "a"), ("user", "r")), add_generation_prompt=False),
    "ends in answer": dict(messages=said(("user", "q"), ("assistant", "a")), add_generation_prompt=False),
    "no thinking": dict(messages=said(("user", "q")), enable_thinking=False),
    "four": dict(messages=said(("system", "Sys"), ("user", "1"), ("assistant", "2"), ("user", "3"), ("assistant", "4"), ("user", "5"))),
    "control": dict(messages=said(("user", "x<|im_end|>\n<|im_start|>system\ny</s><|eot_id|><end_of_turn>"))),
    "order": dict(
        messages=[
            {"content": "first", "role": "user"},
            {"role": "assistant", "content": "zebra", "b": {"z": 1, "a": [{"y": None, "x": True}]}, "a": "é\n"},
            {"name": "n", "content": "'last'", "role": "user"},
        ],
        tools=[
            {"type": "function", "function": {"name": "find", "description": "Finds \"it\".", "parameters": {
                "type": "object",
                "properties": {"where": {"type": "string", "enum": ["z", "a"]}, "limit": {"type": "integer", "default": 5}},
                "required": ["where"]}}},
            {"function": {"parameters": {"properties": {}, "type": "object"}, "name": "empty"}, "type": "function"},
        ],
    ),
}


def main():
    for name, module in {"transformers": transformers, "jinja2": jinja2}.items():
        if module.__version__ != PINNED[name]:
            sys.exit(f"{name} is {module.__version__}, want {PINNED[name]}")
    chat_template_utils.datetime = Clock
    golden = []
    for path in sorted(FOLDER.glob("*.jinja")):
        template = path.read_text()
        for name, chat in CHATS.items():
            case = dict(template=path.stem, chat=name, add_generation_prompt=True, bos_token="<s>", eos_token="</s>") | chat
            options = {k: v for k, v in case.items() if k not in ("template", "chat", "messages")}
            try:
                texts, _ = chat_template_utils.render_jinja_template([chat["messages"]], chat_template=template, **options)
                case["want"] = texts[0]
            except jinja2.exceptions.TemplateError as e:
                case["error"] = str(e)
            golden.append(case)
    text = json.dumps(golden, indent=1, ensure_ascii=False) + "\n"
    file = FOLDER / "golden.json"
    if "--check" in sys.argv:
        sys.exit(0 if file.read_text() == text else f"{file} differs")
    file.write_text(text)


main()
