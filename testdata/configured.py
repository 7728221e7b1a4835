"""Writes testdata/tokenizer/configured.json.gz: what transformers makes of the files beside a tokenizer.json.

Each case is a directory, and the tokens and token types of texts and of a pair, truncated to `most` tokens if that is not 0.

    pip install -r testdata/tokenizer_requirements.txt
    python testdata/configured.py
"""

import gzip
import json
import pathlib
import tempfile

import transformers
from transformers import AutoTokenizer

OUT = pathlib.Path(__file__).parent / "tokenizer" / "configured.json.gz"
TEXTS = ["Hello [MASK] café", "a a<new>a ", "hello e hello hello e"]


def token(id, content, **more):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} | more


NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ADDED = [token(i, name) for i, name in enumerate(NAMES)]
NAMED = {name[1:-1].lower() + "_token": name for name in NAMES}
SPECIAL = {name: {"id": name, "ids": [i], "tokens": [name]} for i, name in enumerate(NAMES[:4])}
NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
BERT = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": ADDED, "normalizer": NORMALIZER,
    "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": None,
    "post_processor": {"type": "TemplateProcessing", "special_tokens": {n: SPECIAL[n] for n in ("[CLS]", "[SEP]")}, "single": [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {
        w: i for i, w in enumerate([*NAMES, "Hello", "hello", "é", "e", "caf", "##é", "##e", "a"])}},
}
BYTES = {
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
    "added_tokens": [token(i, name) for i, name in enumerate(["<s>", "</s>", "<unk>", "<pad>", "<mask>"])],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": False},
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": True,
              "byte_fallback": False, "vocab": {w: i for i, w in enumerate(["<s>", "</s>", "<unk>", "<pad>", "<mask>", "a", "Ġ", "Ġa"])},
              "merges": ["Ġ a"]},
}
LEFT = {"direction": "Left", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
CASES = []


def case(name, base=BERT, config=None, most=0, model=None, special=None, added=None, texts=TEXTS, **changed):
    files = {"tokenizer.json": base | changed}
    if config is not None:
        files["tokenizer_config.json"] = config
    if special:
        files["special_tokens_map.json"] = special
    if added:
        files["added_tokens.json"] = added
    if model:
        files["config.json"] = {"model_type": model}
    with tempfile.TemporaryDirectory() as folder:
        for file, value in files.items():
            pathlib.Path(folder, file).write_text(json.dumps(value))
        t = AutoTokenizer.from_pretrained(folder)
    cut = dict(truncation="longest_first", max_length=most) if most else {}
    singles = [t(text, **cut) for text in texts]
    pair = t(*texts[1:], **cut)
    CASES.append({"name": name, "files": files, "texts": texts, "most": most, "ids": [x["input_ids"] for x in singles], "pair": pair["input_ids"],
                  "types": pair.get("token_type_ids", [0] * len(pair["input_ids"]))})


def decoder(*tokens):
    return {"added_tokens_decoder": {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in tokens}}


def main():
    plain = {"tokenizer_class": "TokenizersBackend"} | NAMED
    cased = {"normalizer": NORMALIZER | {"lowercase": False}}
    for name in ("BertTokenizer", "DistilBertTokenizerFast", "ElectraTokenizer", "PreTrainedTokenizerFast"):
        for lower in (True, False, None):
            config = {"tokenizer_class": name} | NAMED | ({} if lower is None else {"do_lower_case": lower})
            case(f"{name} {lower} of a tokenizer in lower case", config=config)
            case(f"{name} {lower} of a tokenizer with capital letters", config=config, **cased)
    for key, value in (("strip_accents", False), ("strip_accents", True), ("tokenize_chinese_chars", False)):
        case(f"{key} {value}", config={"tokenizer_class": "BertTokenizer", key: value, "do_lower_case": False} | NAMED)
    for model in ("bert", "distilbert", "electra"):
        case(f"no settings, {model}", model=model, **cased)
    case("no class", config={"do_lower_case": False}, model="bert")
    case("no tokens", config={"tokenizer_class": "BertTokenizer"}, added_tokens=[])
    case("tokens of the settings", config=plain, added_tokens=[])
    case("no class of a model", config={"tokenizer_class": "PreTrainedTokenizerFast"} | NAMED, model="bert")
    for name in ("RobertaTokenizer", "GPT2Tokenizer", "BartTokenizerFast", "PreTrainedTokenizerFast"):
        for prefix in (True, False, None):
            for json_prefix in (True, False):
                config = {"tokenizer_class": name, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
                case(f"{name} {prefix} {json_prefix}", BYTES, config | ({} if prefix is None else {"add_prefix_space": prefix}), texts=["a a", " a", "aa"],
                     pre_tokenizer=BYTES["pre_tokenizer"] | {"add_prefix_space": json_prefix})
    new = token(13, "<new>", special=False)
    case("declared", config=plain | decoder(*ADDED, new))
    case("declared with other flags", config=plain | decoder(*ADDED[:4], token(4, "[MASK]", single_word=True), token(12, "a", special=False, lstrip=True)))
    case("declared for words", config=plain | decoder(*ADDED, token(12, "a", special=False, single_word=True)))
    case("extra", config=plain | {"extra_special_tokens": ["<new>"]})
    case("additional", config=plain | {"additional_special_tokens": ["<new>"]})
    case("extra with names", config=plain | {"extra_special_tokens": {"new_token": "<new>"}})
    case("another name", config=plain | {"image_token": "<new>"})
    case("special_tokens_map", config=plain, special={"bos_token": "<new>"})
    case("special_tokens_map, additional", config=plain, special={"additional_special_tokens": ["<new>"]})
    case("special_tokens_map beside the decoder", config=plain | decoder(*ADDED), special={"bos_token": "<new>"})
    case("added_tokens", config=plain, added={"<new>": 13})
    case("added_tokens beside the decoder", config=plain | decoder(*ADDED), added={"<new>": 13})
    case("new padding", config=plain | {"pad_token": "<new>"})
    case("a name without a token", config=plain | {"pad_token": None, "mask_token": None})
    for inputs in (["input_ids", "attention_mask"], ["input_ids", "attention_mask", "token_type_ids"]):
        for name in ("BertTokenizer", "TokenizersBackend"):
            case(f"{name} {inputs}", config={"tokenizer_class": name, "model_input_names": inputs} | NAMED)
    for side in ("left", "right"):
        case(f"truncated {side}", config=plain | {"truncation_side": side}, most=5)
        case(f"truncated {side}, left in tokenizer.json", config=plain | {"truncation_side": side}, most=5, truncation=LEFT)
    case("truncated left in tokenizer.json", config=plain, most=5, truncation=LEFT)
    data = {"transformers": transformers.__version__, "cases": CASES}
    OUT.write_bytes(gzip.compress(json.dumps(data, ensure_ascii=False).encode(), 9, mtime=0))
    print(len(CASES), "cases,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
