"""Writes models/testdata/*/: tiny pretrained models with random weights, and the results of transformers for them.

A case is a directory in the form of Hugging Face, as save_pretrained writes it, and golden.safetensors beside it: inputs,
the hidden states and attention weights of every layer, and the logits. The model runs in float64, which gives the expected
numbers, and in float32, whose largest distance from float64 is the error budget. README.md explains the names.

    python testdata/models.py [CASE …]          write the directories
    python testdata/models.py --check [CASE …]  compare the files with what would be written; exit 1 on a difference
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

# Gives the same bits with every vector unit. All variables must be set before torch is loaded.
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is loaded but code

import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)

TARGET = Path(__file__).resolve().parent.parent / "models" / "testdata"
FILE_LIMIT = 150_000
CASES = {}


def rng(case, name):
    """Random tensors. The seed of a tensor is its case and its name, so adding a tensor changes no other."""
    digest = hashlib.sha256(f"{case}/{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))


def normal(case, name, shape):
    return torch.from_numpy(rng(case, name).standard_normal(tuple(shape)))


def randomize(case, model, dtype):
    """Sets all parameters to random numbers, also norms and biases: their usual 1 and 0 would hide mistakes."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            x = normal(case, name, p.shape)
            if p.dim() > 1:
                x = x if "embed" in name or "shared" in name else 1.3 * x / p.shape[-1] ** 0.5
            elif name.endswith("bias"):
                x = 0.3 * x
            else:  # the gain of a norm
                x = 1 + 0.3 * x
            p.copy_(x.to(dtype).to(p.dtype))


def rename(state, pairs):
    for old, new in pairs:
        state = {name.replace(old, new): x for name, x in state.items()}
    return state


def case(name, cls, config, inputs, *, dtype=torch.float16, names=(), extra=None, shard=None, run=None, settings=None):
    """Registers a case. names maps tensor names in the file, extra adds tensors, shard is the largest size of a file, and
    settings are the content of config.json in place of what save_pretrained writes."""

    def write(folder):
        made = getattr(transformers, cls).config_class(**config)
        made._attn_implementation = "eager"
        model = getattr(transformers, cls)(made).eval()
        randomize(name, model, dtype)
        if run:
            run(name, model)
        given = {key: torch.tensor(value) for key, value in inputs.items()}
        results = {precision: compute(model.to(precision), given) for precision in (torch.float32, torch.float64)}
        save(name, folder, model.float(), dtype, given, results, names, extra, shard)
        if settings:
            write_settings(folder, settings)

    assert name not in CASES
    CASES[name] = write


def write_settings(folder, settings):
    (folder / "config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def compute(model, given):
    """Returns the results of a model for a padded batch, with 0 at padding."""
    lens = given["lens"]
    longest = given["ids"].shape[1]
    there = torch.arange(longest)[None] < lens[:, None]
    args = {"input_ids": given["ids"], "attention_mask": there.long()}
    if "types" in given:
        args["token_type_ids"] = given["types"]
    with torch.no_grad():
        out = model(**args, output_hidden_states=True, output_attentions=True)
    hide = lambda x: x * there.reshape(there.shape + (1,) * (x.dim() - 2)).to(x.dtype)
    wanted = {f"want.hidden.{i}": hide(x) for i, x in enumerate(out.hidden_states)}
    wanted |= {f"want.weights.{i}": x * there[:, None, :, None].to(x.dtype) for i, x in enumerate(out.attentions)}
    for key in ("logits", "prediction_logits"):
        if key in out:
            logits = out[key]
            if logits.shape == given["ids"].shape:  # one class of each token
                logits = logits[..., None]
            wanted["want.logits"] = hide(logits) if logits.dim() == 3 else logits
    if "start_logits" in out:
        wanted["want.logits"] = hide(torch.stack([out.start_logits, out.end_logits], -1))
    return wanted


def save(name, folder, model, dtype, given, results, names, extra, shard):
    state = {k: x.to(dtype).contiguous().clone() for k, x in model.state_dict().items() if x.is_floating_point()}
    with tempfile.TemporaryDirectory() as scratch:
        model.to(dtype).save_pretrained(scratch, max_shard_size=shard or "5GB")
        files = sorted(Path(scratch).glob("*.safetensors"))
        if names or extra:
            assert len(files) == 1
            with safe_open(files[0], "pt") as f:
                stored = {k: f.get_tensor(k) for k in f.keys()}
            save_file(rename(stored, names) | (extra(state) if extra else {}), files[0], metadata={"format": "pt"})
        for file in [*files, *Path(scratch).glob("*.index.json"), Path(scratch) / "config.json"]:
            shutil.copyfile(file, folder / file.name)
    write_golden(name, folder, given, results)


def write_golden(name, folder, given, results):
    tensors = {f"in.{k}": x for k, x in given.items()}
    metadata = {"case": name, "transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    for key, exact in results[torch.float64].items():
        assert torch.isfinite(exact).all(), f"{name}: {key} is not finite"
        metadata[f"budget.{key}"] = repr(float((results[torch.float32][key].double() - exact).abs().max()))
        tensors[key] = exact.float().contiguous()
    write_sorted(tensors, folder / "golden.safetensors", metadata)


def write_sorted(tensors, path, metadata):
    """The safetensors format with sorted metadata, so that equal numbers give equal bytes."""
    sizes = {torch.int64: "I64", torch.float32: "F32"}
    header, at = {"__metadata__": dict(sorted(metadata.items()))}, 0
    for key, x in sorted(tensors.items()):
        n = x.numel() * x.element_size()
        header[key] = {"dtype": sizes[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, x in sorted(tensors.items()):
            f.write(x.numpy().tobytes())


# ---------------------------------------------------------------- encoders

TWO = dict(ids=[[2, 17, 29, 5, 41, 11, 3], [2, 36, 8, 3, 0, 0, 0]], lens=[7, 4])
TYPED = TWO | dict(types=[[0, 0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0, 0]])
BERT = dict(vocab_size=43, hidden_size=15, num_hidden_layers=2, num_attention_heads=3, intermediate_size=23,
            max_position_embeddings=13, type_vocab_size=2, layer_norm_eps=1e-12)
LABELS = dict(id2label={0: "calm", 1: "glad", 2: "sad"}, label2id={"calm": 0, "glad": 1, "sad": 2})

case("bert", "BertModel", BERT, TYPED)
case("bert_words", "BertForMaskedLM", BERT | dict(hidden_act="gelu_new", layer_norm_eps=1e-2), TYPED, dtype=torch.float32)
case("bert_untied", "BertForMaskedLM", BERT | dict(tie_word_embeddings=False, hidden_act="gelu_fast"), TWO)
case("bert_old", "BertForPreTraining", BERT | dict(hidden_act="relu"), TYPED,
     names=[("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")],
     extra=lambda state: {"bert.embeddings.position_ids": torch.arange(13)[None],
                          "cls.predictions.decoder.weight": state["bert.embeddings.word_embeddings.weight"]})
case("bert_text", "BertForSequenceClassification", BERT | LABELS | dict(hidden_act="silu"), TYPED, dtype=torch.bfloat16)
case("bert_rank", "BertForSequenceClassification", BERT | dict(id2label={0: "LABEL_0"}, label2id={"LABEL_0": 0}), TYPED)
case("bert_tokens", "BertForTokenClassification", BERT | LABELS | dict(hidden_act="quick_gelu", num_attention_heads=5), TYPED)
case("bert_answers", "BertForQuestionAnswering", BERT | dict(hidden_act="gelu_pytorch_tanh"), TYPED)
case("bert_next", "BertForNextSentencePrediction", BERT | dict(hidden_act="swish"), TYPED)
case("bert_shards", "BertModel", BERT | dict(hidden_act="tanh"), TYPED, shard="3KB")

DISTIL = dict(vocab_size=43, dim=15, n_layers=2, n_heads=3, hidden_dim=23, max_position_embeddings=13)
case("distilbert", "DistilBertModel", DISTIL, TWO)
case("distilbert_words", "DistilBertForMaskedLM", DISTIL | dict(activation="relu", sinusoidal_pos_embds=True), TWO)
case("distilbert_text", "DistilBertForSequenceClassification", DISTIL | LABELS, TWO, dtype=torch.bfloat16)
case("distilbert_tokens", "DistilBertForTokenClassification", DISTIL | LABELS, TWO)
case("distilbert_answers", "DistilBertForQuestionAnswering", DISTIL, TWO)

# The token in the middle of the second text is the padding token, and has its position.
PADDED = dict(ids=[[0, 17, 29, 5, 41, 11, 2], [0, 36, 1, 8, 2, 1, 1]], lens=[7, 5])
ROBERTA = dict(BERT, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2)
case("roberta", "RobertaModel", ROBERTA, PADDED)
case("roberta_words", "RobertaForMaskedLM", ROBERTA | dict(hidden_act="gelu_new"), PADDED, dtype=torch.float32)
case("roberta_text", "RobertaForSequenceClassification", ROBERTA | LABELS, PADDED)
case("roberta_tokens", "RobertaForTokenClassification", ROBERTA | LABELS, PADDED)
case("roberta_answers", "RobertaForQuestionAnswering", ROBERTA, PADDED)
case("roberta_pad", "RobertaModel", ROBERTA | dict(pad_token_id=3), dict(ids=[[0, 17, 3, 5, 41, 11, 2]], lens=[7]))
case("xlm_roberta_words", "XLMRobertaForMaskedLM", ROBERTA, PADDED)
case("camembert_words", "CamembertForMaskedLM", ROBERTA, PADDED)

MPNET = {k: x for k, x in ROBERTA.items() if k != "type_vocab_size"} | dict(max_position_embeddings=67)
FAR = dict(ids=[rng("mpnet", "ids").integers(3, 43, 61).tolist()], lens=[61])
case("mpnet", "MPNetModel", MPNET, PADDED)
case("mpnet_far", "MPNetModel", MPNET | dict(num_hidden_layers=1), FAR)
case("mpnet_words", "MPNetForMaskedLM", MPNET | dict(hidden_act="relu"), PADDED)
case("mpnet_text", "MPNetForSequenceClassification", MPNET | LABELS, PADDED)
case("mpnet_tokens", "MPNetForTokenClassification", MPNET | LABELS, PADDED)
case("mpnet_answers", "MPNetForQuestionAnswering", MPNET, PADDED)

ELECTRA = BERT | dict(embedding_size=9)
case("electra", "ElectraForPreTraining", ELECTRA, TYPED)
case("electra_words", "ElectraForMaskedLM", ELECTRA | dict(hidden_act="relu"), TYPED, dtype=torch.float32)
case("electra_text", "ElectraForSequenceClassification", ELECTRA | LABELS | dict(embedding_size=15), TYPED)
case("electra_tokens", "ElectraForTokenClassification", ELECTRA | LABELS, TYPED)
case("electra_answers", "ElectraForQuestionAnswering", ELECTRA, TYPED)

DEBERTA = BERT | dict(type_vocab_size=0, layer_norm_eps=1e-7, relative_attention=True, pos_att_type=["c2p", "p2c"])
V3 = DEBERTA | dict(position_biased_input=False, pos_att_type="p2c|c2p", share_att_key=True, norm_rel_ebd="layer_norm",
                    position_buckets=6, max_relative_positions=-1)
DISTANT = dict(ids=[rng("deberta", "ids").integers(3, 43, 61).tolist(), rng("deberta", "more").integers(3, 43, 61).tolist()],
               lens=[61, 37])
case("deberta", "DebertaV2Model", DEBERTA, TWO)
case("deberta_v3", "DebertaV2ForMaskedLM", V3 | dict(legacy=False, hidden_act="silu", layer_norm_eps=1e-2), TWO, dtype=torch.float32)
case("deberta_far", "DebertaV2Model",
     V3 | dict(max_position_embeddings=64, num_hidden_layers=1, position_buckets=16, max_relative_positions=20), DISTANT)
case("deberta_clipped", "DebertaV2Model", DEBERTA | dict(max_relative_positions=3, type_vocab_size=2, norm_rel_ebd="none"), TYPED)
case("deberta_words", "DebertaV2ForMaskedLM",
     V3 | dict(embedding_size=9, hidden_act="gelu_new", share_att_key=False, norm_rel_ebd="none"), TWO)
case("deberta_untied", "DebertaV2ForMaskedLM", V3 | dict(tie_word_embeddings=False, pos_att_type=["c2p"]), TWO)
case("deberta_text", "DebertaV2ForSequenceClassification", V3 | LABELS | dict(position_buckets=4), TWO, dtype=torch.bfloat16)
case("deberta_tanh", "DebertaV2ForSequenceClassification", DEBERTA | LABELS | dict(pooler_hidden_act="tanh", pos_att_type="p2c"), TWO)
case("deberta_tokens", "DebertaV2ForTokenClassification", DEBERTA | LABELS | dict(relative_attention=False), TWO)
case("deberta_answers", "DebertaV2ForQuestionAnswering", V3 | dict(pos_att_type=None, position_biased_input=True), TWO)

# Every query attends to a token, also in a window of five.
NEAR = dict(ids=[[2, 17, 29, 5, 41, 11, 3], [2, 36, 8, 14, 3, 0, 0]], lens=[7, 5])
MODERN = dict(vocab_size=43, hidden_size=12, num_hidden_layers=4, num_attention_heads=3, intermediate_size=17,
              max_position_embeddings=64, local_attention=4, pad_token_id=0, bos_token_id=2, eos_token_id=3,
              rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 50.0},
                               "sliding_attention": {"rope_type": "default", "rope_theta": 10.0}})
case("modernbert", "ModernBertModel", MODERN, NEAR)
case("modernbert_words", "ModernBertForMaskedLM", MODERN | dict(norm_bias=True, attention_bias=True), NEAR, dtype=torch.float32)
case("modernbert_untied", "ModernBertForMaskedLM", MODERN | dict(tie_word_embeddings=False, decoder_bias=False), NEAR)
case("modernbert_text", "ModernBertForSequenceClassification", MODERN | LABELS | dict(classifier_bias=True), NEAR)
case("modernbert_mean", "ModernBertForSequenceClassification", MODERN | LABELS | dict(classifier_pooling="mean"), NEAR)
case("modernbert_tokens", "ModernBertForTokenClassification", MODERN | LABELS | dict(hidden_activation="relu"), NEAR)
case("modernbert_answers", "ModernBertForQuestionAnswering", MODERN, NEAR)

case("gemma3_embed", "Gemma3TextModel",
     dict(vocab_size=43, hidden_size=12, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=10,
          intermediate_size=17, max_position_embeddings=64, sliding_window=4, sliding_window_pattern=2, query_pre_attn_scalar=7,
          use_bidirectional_attention=True,
          rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 50.0},
                           "sliding_attention": {"rope_type": "default", "rope_theta": 10.0}}), NEAR)

# Encoders whose published files transformers reads with other settings and names, or not at all.
ROTARY = dict(vocab_size=43, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17,
              max_position_embeddings=64, type_vocab_size=2)
NOMIC = ROTARY | dict(rope_parameters={"rope_type": "default", "rope_theta": 50.0})
case("nomic", "NomicBertModel", NOMIC, TYPED)
case("nomic_words", "NomicBertForMaskedLM", NOMIC | dict(hidden_act="gelu", layer_norm_eps=1e-2), TYPED, dtype=torch.float32)
case("nomic_text", "NomicBertForSequenceClassification", NOMIC | LABELS, TYPED, dtype=torch.bfloat16)
case("nomic_tokens", "NomicBertForTokenClassification", NOMIC | LABELS, TWO)
NOMIC_FILE = dict(model_type="nomic_bert", architectures=["NomicBertModel"], vocab_size=43, n_embd=12, n_layer=2, n_head=3, n_inner=17,
                  n_positions=64, type_vocab_size=2, layer_norm_epsilon=1e-12, activation_function="swiglu", qkv_proj_bias=False,
                  mlp_fc1_bias=False, mlp_fc2_bias=False, rotary_emb_base=50, rotary_emb_fraction=1.0)
case("nomic_published", "NomicBertModel", NOMIC, TYPED, settings=NOMIC_FILE)

GTE = ROTARY | dict(rope_parameters={"rope_type": "linear", "factor": 3 ** (2 / 4), "rope_theta": 150.0})
case("gte", "GteModel", GTE, TYPED)
case("gte_words", "GteForMaskedLM", GTE | dict(hidden_act="relu", layer_norm_eps=1e-2), TYPED, dtype=torch.float32)
case("gte_untied", "GteForMaskedLM", GTE | dict(tie_word_embeddings=False, type_vocab_size=0), TWO)
case("gte_text", "GteForSequenceClassification", GTE | LABELS, TYPED, dtype=torch.bfloat16)
case("gte_tokens", "GteForTokenClassification", GTE | LABELS, TWO)
NEW_FILE = ROTARY | dict(model_type="new", architectures=["NewModel", "NewForTokenClassification"], position_embedding_type="rope",
                         rope_theta=50, rope_scaling={"type": "ntk", "factor": 3.0}, id2label={"0": "LABEL_0"})
case("new", "GteForTokenClassification", GTE | dict(id2label={0: "LABEL_0"}), TYPED, names=[("gte.", "new.")], settings=NEW_FILE)
case("new_rank", "GteForSequenceClassification", GTE | dict(id2label={0: "LABEL_0"}), TYPED, names=[("gte.", "new.")],
     settings=NEW_FILE | dict(architectures=["NewForSequenceClassification"]))


def published(name, config, inputs, shapes, forward, *, dtype=torch.float16):
    """Registers a case of a model that transformers does not have: forward computes states and weights of all layers from
    tensors, which have the given shapes by their names."""

    def write(folder):
        state = {}
        for key, shape in shapes.items():
            x = normal(name, key, shape)
            if len(shape) > 1:
                x = x if "embeddings" in key else 1.3 * x / shape[-1] ** 0.5
            else:
                x = 0.3 * x + (0 if "bias" in key else 1)
            state[key] = x.to(dtype)
        given = {key: torch.tensor(value) for key, value in inputs.items()}
        results = {}
        for precision in (torch.float32, torch.float64):
            x = {key: value.to(precision) for key, value in state.items()}
            results[precision] = {}
            for i, n in enumerate(given["lens"].tolist()):  # each text alone
                args = [given["ids"][i, :n], given["types"][i, :n] if "types" in given else torch.zeros(n, dtype=torch.int64)]
                states, weights = forward(x, config, *args)
                for key, values in (("hidden", states), ("weights", weights)):
                    for j, y in enumerate(values):
                        longest = given["ids"].shape[1]
                        full = [longest, y.shape[1]] if key == "hidden" else [y.shape[0], longest, longest]
                        all = results[precision].setdefault(f"want.{key}.{j}", torch.zeros(len(given["lens"]), *full, dtype=precision))
                        if key == "hidden":
                            all[i, :n] = y
                        else:
                            all[i, :, :n, :n] = y
        save_file({key: x.contiguous() for key, x in sorted(state.items())}, folder / "model.safetensors", metadata={"format": "pt"})
        write_settings(folder, config)
        write_golden(name, folder, given, results)

    assert name not in CASES
    CASES[name] = write


def linear(x, at, y):
    y = y @ x[f"{at}.weight"].T
    return y + x[f"{at}.bias"] if f"{at}.bias" in x else y


def layer_norm(x, at, y, eps):
    return torch.nn.functional.layer_norm(y, y.shape[-1:], x[f"{at}.weight"], x[f"{at}.bias"], eps)


def attend(q, k, v, heads, bias=0):
    """Attention of all heads, and its weights. Shapes: q, k, v [H L E], bias [H L L]."""
    weights = torch.softmax(q @ k.transpose(1, 2) / q.shape[2] ** 0.5 + bias, -1)
    return (weights @ v).transpose(0, 1).flatten(1), weights


def split(y, heads):
    return y.unflatten(-1, (heads, -1)).transpose(0, 1)


def rotate(y, base, trained=None, factor=None):
    """RoFormer's rotation of a head's halves; dynamic NTK for texts longer than in training. Shape: y [H L E]."""
    length, size = y.shape[1:]
    if factor and length > trained:
        base = base * (factor * length / trained - (factor - 1)) ** (size / (size - 2))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * base ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    cos, sin = angle.cos().to(y.dtype), angle.sin().to(y.dtype)
    a, b = y.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def nomic(x, config, ids, types):
    """The original code of Nomic BERT (nomic-ai/nomic-bert-2048), from its description."""
    heads, eps, gelu = config["n_head"], config["layer_norm_epsilon"], torch.nn.functional.gelu
    h = x["embeddings.word_embeddings.weight"][ids]
    if "embeddings.token_type_embeddings.weight" in x:
        h = h + x["embeddings.token_type_embeddings.weight"][types]
    h = layer_norm(x, "emb_ln", h, eps)
    states, all = [h], []
    for i in range(config["n_layer"]):
        at = f"encoder.layers.{i}"
        q, k, v = (split(y, heads) for y in linear(x, f"{at}.attn.Wqkv", h).chunk(3, -1))
        turn = lambda y: rotate(y, config["rotary_emb_base"], config.get("max_trained_positions"), config.get("rotary_scaling_factor"))
        y, weights = attend(turn(q), turn(k), v, heads)
        h = layer_norm(x, f"{at}.norm1", h + linear(x, f"{at}.attn.out_proj", y), eps)
        if f"{at}.mlp.router.layer.weight" in x:
            n = config["num_experts"]
            chances, chosen = torch.softmax(linear(x, f"{at}.mlp.router.layer", h), -1).topk(config["moe_top_k"])
            w1, w2 = (x[f"{at}.mlp.experts.mlp.w{j}"].unflatten(0, (n, -1)) for j in (1, 2))
            y = x[f"{at}.mlp.experts.bias"] + torch.stack([
                sum(p * (gelu(w1[e] @ t) @ w2[e]) for p, e in zip(ps, es)) for t, ps, es in zip(h, chances, chosen)])
        elif f"{at}.mlp.fc11.weight" in x:
            act = {"swiglu": torch.nn.functional.silu, "geglu": gelu}[config["activation_function"]]
            y = linear(x, f"{at}.mlp.fc2", linear(x, f"{at}.mlp.fc11", h) * act(linear(x, f"{at}.mlp.fc12", h)))
        else:
            y = linear(x, f"{at}.mlp.fc2", gelu(linear(x, f"{at}.mlp.fc1", h)))
        h = layer_norm(x, f"{at}.norm2", h + y, eps)
        states.append(h)
        all.append(weights)
    return states, all


def nomic_shapes(config):
    d, f, n = config["n_embd"], config["n_inner"], config.get("num_experts")
    shapes = {"embeddings.word_embeddings.weight": [config["vocab_size"], d], "emb_ln.weight": [d], "emb_ln.bias": [d]}
    if config["type_vocab_size"]:
        shapes["embeddings.token_type_embeddings.weight"] = [config["type_vocab_size"], d]

    def map(at, out, size, bias):
        shapes[f"{at}.weight"] = [out, size]
        if bias:
            shapes[f"{at}.bias"] = [out]

    for i in range(config["n_layer"]):
        at = f"encoder.layers.{i}"
        map(f"{at}.attn.Wqkv", 3 * d, d, config["qkv_proj_bias"])
        map(f"{at}.attn.out_proj", d, d, config["qkv_proj_bias"])
        for norm in ("norm1", "norm2"):
            shapes |= {f"{at}.{norm}.weight": [d], f"{at}.{norm}.bias": [d]}
        if n and i % config["moe_every_n_layers"] == 1:
            shapes |= {f"{at}.mlp.router.layer.weight": [n, d], f"{at}.mlp.experts.mlp.w1": [n * f, d],
                       f"{at}.mlp.experts.mlp.w2": [n * f, d], f"{at}.mlp.experts.bias": [d]}
            continue
        for name in ["fc11", "fc12"] if "glu" in config["activation_function"] else ["fc1"]:
            map(f"{at}.mlp.{name}", f, d, config["mlp_fc1_bias"])
        map(f"{at}.mlp.fc2", d, f, config["mlp_fc2_bias"])
    return shapes


def nomic_case(name, inputs, **changes):
    config = NOMIC_FILE | changes
    published(name, config, inputs, nomic_shapes(config), nomic)


BIASED = dict(qkv_proj_bias=True, mlp_fc1_bias=True, mlp_fc2_bias=True)
nomic_case("nomic_gelu", TYPED, activation_function="gelu", layer_norm_epsilon=1e-2, **BIASED)
nomic_case("nomic_geglu", TWO, activation_function="geglu", type_vocab_size=0, mlp_fc1_bias=True)
nomic_case("nomic_moe", NEAR, activation_function="gelu", type_vocab_size=1, n_layer=3, n_inner=11, num_experts=4, moe_top_k=2,
           moe_every_n_layers=2, **BIASED)


def alibi(heads, length):
    """Press et al. 2022 for both directions. Shape: [H L L]."""
    slopes = lambda n: [2 ** (-8 * (i + 1) / n) for i in range(n)]
    power = 2 ** (heads.bit_length() - 1)
    all = (slopes(power) + slopes(2 * power)[::2])[:heads]
    at = torch.arange(length)
    return -torch.tensor(all, dtype=torch.float64)[:, None, None] * (at[:, None] - at[None, :]).abs()


def jina(x, config, ids, types):
    """Guenther et al. 2023, section 3, in the names of jinaai/jina-bert-implementation."""
    heads, eps = config["num_attention_heads"], config["layer_norm_eps"]
    act = {"geglu": torch.nn.functional.gelu, "reglu": torch.relu}[config["feed_forward_type"]]
    h = x["embeddings.word_embeddings.weight"][ids] + x["embeddings.token_type_embeddings.weight"][types]
    h = layer_norm(x, "embeddings.LayerNorm", h, eps)
    bias = alibi(heads, len(ids)).to(h.dtype)
    states, all = [h], []
    for i in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{i}"
        q, k, v = (split(linear(x, f"{at}.attention.self.{name}", h), heads) for name in ("query", "key", "value"))
        y, weights = attend(q, k, v, heads, bias)
        h = layer_norm(x, f"{at}.attention.output.LayerNorm", h + linear(x, f"{at}.attention.output.dense", y), eps)
        gate, up = linear(x, f"{at}.mlp.gated_layers", h).chunk(2, -1)
        h = layer_norm(x, f"{at}.mlp.layernorm", h + linear(x, f"{at}.mlp.wo", act(gate) * up), eps)
        states.append(h)
        all.append(weights)
    return states, all


def jina_case(name, inputs, **changes):
    code = "jinaai/jina-bert-implementation--modeling_bert."
    config = dict(BERT, model_type="bert", architectures=["JinaBertForMaskedLM"], auto_map={"AutoModel": code + "JinaBertModel"},
                  position_embedding_type="alibi", feed_forward_type="geglu", emb_pooler="mean") | changes
    d, f = config["hidden_size"], config["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": [config["vocab_size"], d],
              "embeddings.token_type_embeddings.weight": [config["type_vocab_size"], d], "embeddings.LayerNorm.weight": [d],
              "embeddings.LayerNorm.bias": [d], "pooler.dense.weight": [d, d], "pooler.dense.bias": [d]}
    for i in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{i}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= {f"{at}.attention.{part}.weight": [d, d], f"{at}.attention.{part}.bias": [d]}
        for norm in ("attention.output.LayerNorm", "mlp.layernorm"):
            shapes |= {f"{at}.{norm}.weight": [d], f"{at}.{norm}.bias": [d]}
        shapes |= {f"{at}.mlp.gated_layers.weight": [2 * f, d], f"{at}.mlp.wo.weight": [d, f], f"{at}.mlp.wo.bias": [d]}
    published(name, config, inputs, shapes, jina)


jina_case("jina", TYPED)
jina_case("jina_power", TWO, num_attention_heads=4, hidden_size=12, feed_forward_type="reglu", layer_norm_eps=1e-2)

ALBERT = BERT | dict(embedding_size=9, num_hidden_layers=5, num_hidden_groups=2, inner_group_num=1)
case("albert", "AlbertModel", ALBERT, TYPED)
case("albert_words", "AlbertForMaskedLM", ALBERT | dict(num_hidden_groups=1, num_hidden_layers=3), TYPED, dtype=torch.float32)
case("albert_old", "AlbertForPreTraining", ALBERT | dict(hidden_act="gelu", layer_norm_eps=1e-2), TYPED)
case("albert_text", "AlbertForSequenceClassification", ALBERT | LABELS | dict(num_hidden_layers=3), TYPED, dtype=torch.bfloat16)
case("albert_tokens", "AlbertForTokenClassification", ALBERT | LABELS, TYPED)
case("albert_answers", "AlbertForQuestionAnswering", ALBERT, TYPED)

JINA3 = BERT | dict(max_position_embeddings=64, hidden_size=12, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1,
                    rope_parameters={"rope_type": "default", "rope_theta": 50.0})
case("jina_v3", "JinaEmbeddingsV3Model", JINA3, PADDED)
case("jina_v3_words", "JinaEmbeddingsV3ForMaskedLM", JINA3 | dict(hidden_act="relu", layer_norm_eps=1e-2), PADDED, dtype=torch.float32)
case("jina_v3_text", "JinaEmbeddingsV3ForSequenceClassification", JINA3 | LABELS, PADDED, dtype=torch.bfloat16)
case("jina_v3_tokens", "JinaEmbeddingsV3ForTokenClassification", JINA3 | LABELS | dict(type_vocab_size=2), PADDED)
case("jina_v3_answers", "JinaEmbeddingsV3ForQuestionAnswering", JINA3, PADDED)

TASKS = {"retrieval.query": "find: ", "classification": "", "text-matching": "same: "}


def jina_lora(folder):
    """Jina Embeddings 3 as published: the adapter of each task is beside the weights. The class of transformers computes
    with W + alpha/rank·B·A in task/, and with W in golden.safetensors."""
    name, rank, alpha = "jina_lora", 2, 3
    model = transformers.JinaEmbeddingsV3Model(transformers.JinaEmbeddingsV3Config(**JINA3)).eval()
    randomize(name, model, torch.float16)
    with tempfile.TemporaryDirectory() as scratch:
        model.half().save_pretrained(scratch)
        with safe_open(Path(scratch) / "model.safetensors", "pt") as f:
            weights = {k: f.get_tensor(k) for k in f.keys()}
        stored, merged = {}, {}
        for key, w in weights.items():
            merged[key], at = w.double(), "roberta." + key.removesuffix(".weight") + ".parametrizations.weight"
            if w.dim() != 2:
                stored["roberta." + key] = w
                continue
            embedding = key.endswith("_embeddings.weight")
            shapes = [(w.shape[0], rank), (rank, w.shape[1])] if embedding else [(rank, w.shape[1]), (w.shape[0], rank)]
            a, b = (normal(name, key + x, (len(TASKS), *s)).mul(0.3).half() for x, s in zip("AB", shapes))
            one, two = (a[1].double(), b[1].double()) if embedding else (b[1].double(), a[1].double())
            merged[key] = w.double() + alpha / rank * (one @ two)
            stored |= {at + ".original": w, at + ".0.lora_A": a, at + ".0.lora_B": b}
        save_file({k: x.contiguous() for k, x in sorted(stored.items())}, folder / "model.safetensors", metadata={"format": "pt"})
        given = {key: torch.tensor(value) for key, value in PADDED.items()}
        for at, tensors in ((folder, {k: x.double() for k, x in weights.items()}), (folder / "task", merged)):
            at.mkdir(exist_ok=True)
            save_file({k: x.contiguous() for k, x in tensors.items()}, Path(scratch) / "model.safetensors", metadata={"format": "pt"})
            load = lambda p: transformers.JinaEmbeddingsV3Model.from_pretrained(scratch, dtype=p, attn_implementation="eager").eval()
            write_golden(name, at, given, {p: compute(load(p), given) for p in (torch.float32, torch.float64)})
    code = "jinaai/xlm-roberta-flash-implementation--"
    write_settings(folder, {k: v for k, v in JINA3.items() if k != "rope_parameters"} | dict(
        model_type="xlm-roberta", architectures=["XLMRobertaModel"], position_embedding_type="rotary", rotary_emb_base=50.0,
        auto_map={"AutoModel": code + "modeling_lora.XLMRobertaLoRA", "AutoConfig": code + "configuration_xlm_roberta.XLMRobertaFlashConfig",
                  "AutoModelForMaskedLM": code + "modeling_xlm_roberta.XLMRobertaForMaskedLM"},
        load_trained_adapters=True, lora_adaptations=list(TASKS), lora_alpha=alpha, lora_dropout_p=0.0, lora_rank=rank,
        lora_main_params_trainable=False, task_instructions=TASKS, use_flash_attn=True, use_reentrant=False, truncate_dim=None))


CASES["jina_lora"] = jina_lora

EURO = dict(vocab_size=43, hidden_size=12, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=17,
            max_position_embeddings=64, pad_token_id=0, head_dim=6, rope_parameters={"rope_type": "default", "rope_theta": 50.0})
case("eurobert", "EuroBertModel", EURO, NEAR)
case("eurobert_words", "EuroBertForMaskedLM", EURO | dict(mlp_bias=True, attention_bias=True), NEAR, dtype=torch.float32)
case("eurobert_tied", "EuroBertForMaskedLM", EURO | dict(tie_word_embeddings=True, rms_norm_eps=1e-2, hidden_act="gelu"), NEAR)
case("eurobert_text", "EuroBertForSequenceClassification", EURO | LABELS, NEAR)
case("eurobert_mean", "EuroBertForSequenceClassification", EURO | LABELS | dict(classifier_pooling="mean"), NEAR)
case("eurobert_bos", "EuroBertForSequenceClassification", EURO | LABELS | dict(classifier_pooling="bos"), NEAR)
case("eurobert_tokens", "EuroBertForTokenClassification", EURO | LABELS, NEAR)

# Decoders that classify texts.
DECODER = dict(vocab_size=43, hidden_size=12, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=10,
               intermediate_size=17, max_position_embeddings=64, pad_token_id=0)
case("llama_text", "LlamaForSequenceClassification", DECODER | LABELS, NEAR)
case("gemma2_text", "Gemma2ForSequenceClassification", DECODER | LABELS | dict(query_pre_attn_scalar=7), NEAR, dtype=torch.bfloat16)
case("gpt2_text", "GPT2ForSequenceClassification",
     dict(n_embd=12, n_layer=2, n_head=3, n_positions=64, vocab_size=43, pad_token_id=0) | LABELS, NEAR)

# The padding token also ends texts, is within one, and is all of another.
ENDED = dict(ids=[[2, 17, 3, 5, 41, 11, 3], [2, 36, 8, 3, 3, 3, 3], [3, 3, 3, 3, 3, 3, 3], [2, 17, 3, 5, 3, 3, 3]], lens=[7, 5, 2, 4])
case("llama_ended", "LlamaForSequenceClassification", DECODER | LABELS | dict(pad_token_id=3), ENDED)
case("gpt2_ended", "GPT2ForSequenceClassification",
     dict(n_embd=12, n_layer=2, n_head=3, n_positions=64, vocab_size=43, pad_token_id=3) | LABELS, ENDED)
case("modernbert_decoder_text", "ModernBertDecoderForSequenceClassification",
     MODERN | LABELS | dict(num_hidden_layers=2, local_attention=16, pad_token_id=3, classifier_bias=True), ENDED)


# ---------------------------------------------------------------- writing


def same(a, b):
    names = lambda d: sorted(str(p.relative_to(d)) for p in d.rglob("*") if p.is_file())
    return b.is_dir() and names(a) == names(b) and all((a / n).read_bytes() == (b / n).read_bytes() for n in names(a))


def main(args):
    check = "--check" in args
    chosen = [a for a in args if a != "--check"] or list(CASES)
    wrong = []
    for name in chosen:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / name
            folder.mkdir()
            CASES[name](folder)
            size = max(p.stat().st_size for p in folder.rglob("*"))
            assert size <= FILE_LIMIT, f"{name}: a file of {size} bytes"
            if check:
                wrong += [] if same(folder, TARGET / name) else [name]
                continue
            shutil.rmtree(TARGET / name, ignore_errors=True)
            shutil.copytree(folder, TARGET / name)
    for name in wrong:
        print(f"{name} differs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
