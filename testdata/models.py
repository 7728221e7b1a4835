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


def case(name, cls, config, inputs, *, dtype=torch.float16, names=(), extra=None, shard=None, run=None):
    """Registers a case. names maps tensor names in the file, extra adds tensors, shard is the largest size of a file."""

    def write(folder):
        settings = getattr(transformers, cls).config_class(**config)
        settings._attn_implementation = "eager"
        model = getattr(transformers, cls)(settings).eval()
        randomize(name, model, dtype)
        if run:
            run(name, model)
        given = {key: torch.tensor(value) for key, value in inputs.items()}
        results = {precision: compute(model.to(precision), given) for precision in (torch.float32, torch.float64)}
        save(name, folder, model.float(), dtype, given, results, names, extra, shard)

    assert name not in CASES
    CASES[name] = write


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
