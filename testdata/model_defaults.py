"""Writes models/testdata/defaults/VERSION.json.gz: what transformers makes of settings that are absent, null or changed.

The tiny models of models/testdata are loaded with changed config.json files: each key of the file and of its configuration
class is removed, null, and set to another value in turn; then random sets of keys are removed together. Each result is

    sum     the length of the logits (or of the last states) of one text, and their products with three vectors; empty if
            the weights do not fit the settings, absent if transformers fails
    config  what save_pretrained writes for the changed settings, as the difference from the first one

    python testdata/model_defaults.py [DIRECTORY …]

README.md says how to run it.

There is a file for each major version, as the defaults of some settings differ.
"""

import copy
import gzip
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers

torch.set_num_threads(1)
transformers.logging.set_verbosity(logging.CRITICAL)
transformers.utils.logging.disable_progress_bar()
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
FOLDER = Path(__file__).resolve().parent.parent / "models" / "testdata"
NEW = int(transformers.__version__.split(".")[0]) >= 5
EAGER = {"attn_implementation": "eager", **({"experts_implementation": "eager"} if NEW else {})}
LENGTH = 11
SUBSETS = 8
ABSENT = "-"  # instead of a value

MODELS = """
albert albert_old albert_text albert_words bert bert_text bert_untied camembert_words deberta_v3 deberta_text deberta_words distilbert_words electra_tokens
electra_words eurobert eurobert_text eurobert_tied eurobert_words gte gte_text gte_words jina_v3 jina_v3_text jina_v3_words modernbert modernbert_text modernbert_words mpnet_words nomic nomic_text nomic_words
roberta_text roberta_words xlm_roberta_words gemma2_text gemma3_embed gpt2_ended llama_text
decoders/gemma decoders/gemma2 decoders/gemma3 decoders/gemma3_multimodal decoders/gemma3_pattern decoders/gemma3n decoders/gemma4 decoders/gemma4_equal decoders/gemma4_experts decoders/gpt2
decoders/diffllama decoders/diffllama_biases decoders/falcon_h1 decoders/falcon_h1_norm decoders/gpt_neox decoders/granite_biases decoders/granite_attention decoders/granite_hybrid decoders/granite_experts decoders/lfm2 decoders/lfm2_places decoders/llama2 decoders/llama_yarn_settings decoders/mamba2 decoders/mamba2_biases decoders/mistral
decoders/ministral3 decoders/mistral3 decoders/mistral_full decoders/mixtral decoders/modernbert decoders/modernbert_biases decoders/olmo2 decoders/olmo3 decoders/phi3 decoders/phi3_part decoders/qwen2_types
decoders/deepseek_v2 decoders/deepseek_v2_greedy decoders/deepseek_v3 decoders/deepseek_v3_whole decoders/minicpm3 decoders/minicpm3_whole
decoders/qwen2_window decoders/qwen3_bias decoders/qwen3_moe decoders/qwen3_moe_normed decoders/smollm3
decoders/olmo_hybrid decoders/olmo_hybrid_rope decoders/qwen3_5 decoders/qwen3_5_multimodal decoders/qwen3_5_settings
decoders/smollm3_window decoders/starcoder2
seq2seq/bart seq2seq/m2m100 seq2seq/marian seq2seq/mt5 seq2seq/t5 seq2seq/t5_1.1 seq2seq/umt5 seq2seq/umt5_tied
""".split()

IMAGES = {"gemma3", "mistral3", "qwen3_5"}  # whose image model is not in the file

# Keys that cannot change the output: names, and what save_pretrained adds.
SKIP = {"architectures", "model_type", "transformers_version", "_name_or_path", "dtype", "torch_dtype", "label2id",
        "vision_config", "task_specific_params", "return_dict", "pruned_heads"}


def saved(config):
    """The content of config.json as save_pretrained writes it."""
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        return json.loads((Path(folder) / "config.json").read_text())


def configured(settings):
    """The configuration for the content of a config.json."""
    kind = transformers.AutoConfig.for_model(settings["model_type"]).__class__
    return kind.from_dict(copy.deepcopy(settings))


def paths(settings, at=()):
    """The keys of an object and of the objects in it."""
    for key, value in settings.items():
        if key in SKIP:
            continue
        yield (*at, key)
        if isinstance(value, dict) and key != "id2label":
            yield from paths(value, (*at, key))


def at(settings, path):
    for key in path:
        if not isinstance(settings, dict) or key not in settings:
            return ABSENT
        settings = settings[key]
    return settings


def changed(settings, changes):
    """The settings with other values of some keys. A key is "rope_parameters.factor" in an object."""
    settings = copy.deepcopy(settings)
    for path, value in changes.items():
        *outer, key = path.split(".")
        place = settings
        for name in outer:
            place = place.get(name)
            if not isinstance(place, dict):
                return None
        if value == ABSENT:
            if key not in place:
                return None
            del place[key]
        else:
            place[key] = value
    return settings


# Settings of earlier versions, or that other families have.
LINEAR = {"rope_type": "linear", "factor": 2.0}
MORE = [
    {"rope_theta": 500.0}, {"rope_theta": None}, {"rope_scaling": LINEAR}, {"rope_scaling": {"type": "linear", "factor": 2.0}},
    {"rope_local_base_freq": 500.0}, {"global_rope_theta": 500.0}, {"local_rope_theta": 500.0}, {"local_rope_theta": None},
    {"rotary_emb_base": 500.0}, {"rotary_pct": 1.0}, {"partial_rotary_factor": 0.5}, {"global_attn_every_n_layers": 2},
]
ADDED = [
    {"scale_decoder_outputs": True}, {"scale_decoder_outputs": False}, {"tie_word_embeddings": False},
    {"tie_word_embeddings": True}, {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    {"rope_parameters": LINEAR}, {"rope_parameters": {"rope_type": "default"}}, {"is_decoder": True}, {"is_causal": True},
    {"is_causal": False}, {"use_bidirectional_attention": True}, {"position_embedding_type": "relative_key"},
    {"add_cross_attention": True}, {"hidden_act": "relu"}, {"attention_bias": True}, {"mlp_bias": True},
    {"sliding_window": 3}, {"use_sliding_window": True}, {"use_sliding_window": True, "sliding_window": 3},
    *MORE, *({"rope_parameters": ABSENT, **m} for m in MORE),
]
ALWAYS = {"tie_word_embeddings", "is_decoder", "is_causal", "add_cross_attention", "position_embedding_type"}


def other(value):
    """Another value of the same type, or None."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.5 if value else 0.5
    return None


def run(folder, config, architecture):
    kind = getattr(transformers, architecture)
    model, info = kind.from_pretrained(folder, config=config, output_loading_info=True, dtype=torch.float32, **EAGER)
    missing = [k for k in info["missing_keys"] if not k.endswith(("position_ids", "embed_positions.weight", "embed_positions.weights"))]
    if missing or info["mismatched_keys"]:
        return []
    model.eval()
    vocabulary = model.get_input_embeddings().weight.shape[0]
    ids = torch.tensor([[(5 + 3 * i) % (vocabulary - 4) + 4 for i in range(LENGTH)]])
    more = {"decoder_input_ids": ids[:, :7]} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), **more)
    if hasattr(out, "start_logits"):
        x = torch.stack((out.start_logits, out.end_logits), dim=-1)
    else:
        x = next(out[k] for k in ("logits", "prediction_logits", "last_hidden_state") if k in out)
    x = x.double().flatten()
    wave = torch.arange(len(x), dtype=torch.float64)
    return [float(f"{y:.7g}") for y in [x.norm(), *(x @ torch.cos(1 + n + wave * (1 + n)) for n in range(3))]]


def difference(a, b):
    """The keys of b whose values differ from those of a, with objects as a whole."""
    d = {key: value for key, value in b.items() if key not in a or a[key] != value}
    return {**d, **{key: ABSENT for key in a if key not in b}}


class Model:
    def __init__(self, name):
        self.folder = FOLDER / name
        self.settings = json.loads((self.folder / "config.json").read_text())
        self.first = saved(configured(self.settings))
        self.copy = Path(tempfile.mkdtemp())
        for file in self.folder.glob("model*.safetensors*"):
            shutil.copy(file, self.copy)
        (self.copy / "generation_config.json").write_text("{}")  # or else it is searched for
        self.known = {}

    def result(self, changes):
        settings = changed(self.settings, changes)
        if settings is None:
            return None
        try:
            config = configured(settings)
            written = saved(config)
        except Exception:
            return {}
        key = json.dumps(written, sort_keys=True)
        if key not in self.known:
            r = {"config": difference(self.first, written)}
            architecture = self.settings["architectures"][0]
            try:
                if self.settings["model_type"] not in IMAGES:
                    r["sum"] = run(self.copy, config, architecture)
            except Exception:
                pass
            self.known[key] = r
        return self.known[key]

    def cases(self):
        keys = dict.fromkeys(".".join(p) for p in [*paths(self.settings), *paths(self.first)])
        yield {}
        for key in keys:
            path = key.split(".")
            value = at(self.settings, path)
            yield {key: None}
            if value != ABSENT:
                yield {key: ABSENT}
            new = other(value if value != ABSENT else at(self.first, path))
            if new is not None:
                yield {key: new}
        for changes in ADDED:
            known = all(key in self.first or key in ALWAYS for key in changes)
            if known or "rope_parameters" in self.first and any(changes == m for m in ADDED[-2 * len(MORE):]):
                yield changes

    def table(self):
        rows, fits = [], []
        for changes in self.cases():
            if (r := self.result(changes)) is not None:
                rows.append((changes, r))
                if list(changes.values()) == [ABSENT] and (r.get("sum") or self.settings["model_type"] in IMAGES):
                    fits += changes
        if not rows[0][1].get("sum") and self.settings["model_type"] not in IMAGES:
            return None  # the files are of a newer version
        draw = random.Random(str(self.folder.name))
        for n in range(SUBSETS):
            some = fits if n == 0 else [k for k in fits if draw.random() < draw.choice((0.2, 0.5))]
            some = [k for k in some if not any(k.startswith(o + ".") for o in some)]
            changes = dict.fromkeys(some, ABSENT)
            rows.append((changes, self.result(changes)))
        results = []  # different ones
        cases = []
        for changes, r in rows:
            if r not in results:
                results.append(r)
            cases.append([changes, results.index(r)])
        return {"first": self.first, "results": results, "cases": cases}


def main(names):
    version = transformers.__version__
    path = FOLDER / "defaults" / f"transformers{version.split('.')[0]}.json.gz"
    tables = {}
    if names and path.exists():
        tables = json.loads(gzip.decompress(path.read_bytes()))["models"]
    for name in names or MODELS:
        kind = json.loads((FOLDER / name / "config.json").read_text())["model_type"]
        if kind not in transformers.CONFIG_MAPPING:
            print(name, "is newer than this version", flush=True)
            continue
        model = Model(name)
        table = model.table()
        shutil.rmtree(model.copy)
        if table is None:
            print(name, "does not load", flush=True)
            continue
        tables[name] = table
        print(name, len(tables[name]["cases"]), "cases,", len(tables[name]["results"]), "results", flush=True)
    data = json.dumps({"version": version, "models": dict(sorted(tables.items()))}, separators=(",", ":"), sort_keys=True)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(data.encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
