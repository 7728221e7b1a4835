"""Writes models/testdata/sentence_*/: tiny pipelines of sentence-transformers, and their vectors for some texts.

    pip install -r testdata/requirements.txt -r testdata/sentences_requirements.txt    # in a virtual environment
    python testdata/sentences.py [CASE …]          write the directories
    python testdata/sentences.py --check [CASE …]  compare the files with what would be written; exit 1 on a difference

A directory has the form that `save` writes or, if old is given, that versions before 6 wrote.
"""

import json
import sys
from pathlib import Path

import models  # sets what must be set before torch is loaded
from models import BERT, CASES, randomize, write_sorted

import sentence_transformers
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.cross_encoder.modules import LogitScore
from sentence_transformers.models import Dense, Normalize, Pooling, Router, StaticEmbedding, Transformer
from sentence_transformers.sparse_encoder.models import MLMTransformer, SparseStaticEmbedding, SpladePooling
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel, WordPiece

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat dog sat sleeps on the mat ##s query : who ? ##ing run ##ner . , and it in sun".split()
TEXTS = ["The cat sat on the mat.", "dogs", "Who runs in the sun? The runner, and the dog and the cat and it.", "", "query: cats"]
EVERY = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
WIDTH = 15


def tokens():
    """The tokenizer of the directories."""
    t = Tokenizer(WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def spoken(**more):
    """The same for transformers."""
    marks = {f"{k}_token": f"[{k.upper()}]" for k in ("pad", "unk", "cls", "sep", "mask")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokens(), model_max_length=13, **marks, **more)


def golden(name, folder, vectors, route=""):
    """Writes the vectors of a pipeline. vectors(exact) computes them in float64 or float32."""
    single, exact = vectors(False), vectors(True)
    file = "golden_sentences" + (f"_{route}" if route else "") + ".safetensors"
    write_sorted({"want.vectors": exact.float().contiguous()}, folder / file, {
        "case": name, "sentence_transformers": sentence_transformers.__version__, "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0], "texts": json.dumps(TEXTS), **({"route": route} if route else {}),
        "budget.want.vectors": repr(float((single.double() - exact).abs().max())),
    })


def clear(folder):
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    folder.rmdir()


def sentences(name, pooling, behind=(), *, most=None, old=None, lower=False, **more):
    """Registers a case. old is the text of the old 1_Pooling/config.json."""

    def write(folder):
        base = folder / "base"
        config = transformers.BertConfig(**BERT | dict(vocab_size=len(WORDS)))
        config._attn_implementation = "eager"
        net = transformers.BertModel(config)
        randomize(name, net, torch.float16)
        net.half().save_pretrained(base)
        spoken().save_pretrained(base)
        extra = dict(max_seq_length=most) if most else {}
        modules = [Transformer(str(base), model_kwargs={"attn_implementation": "eager", "dtype": torch.float32}, **extra),
                   Pooling(WIDTH, pooling), *[layer() for layer in behind]]
        for i, layer in enumerate(modules[2:]):
            randomize(f"{name}/{i}", layer, torch.float16)
        pipeline = SentenceTransformer(modules=modules, device="cpu", **more).eval()
        pipeline.save(str(folder), create_model_card=False)
        clear(base)
        if old:
            (folder / "1_Pooling" / "config.json").write_text(json.dumps(old, indent=2) + "\n")
            (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": most, "do_lower_case": lower}, indent=2) + "\n")
            settings = json.loads((folder / "tokenizer_config.json").read_text())
            settings["model_max_length"] = 13  # over which max_seq_length wins
            (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
            listed = json.loads((folder / "modules.json").read_text())
            for m in listed:
                m["type"] = "sentence_transformers.models." + m["type"].rsplit(".", 1)[1]
            (folder / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
        again = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager", "dtype": torch.float32}).eval()
        golden(name, folder, lambda double: (again.double() if double else again.float()).encode(TEXTS, convert_to_tensor=True))

    CASES[name] = write


def legacy(*flags):
    names = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
    return {"word_embedding_dimension": WIDTH} | {f"pooling_mode_{n}": n in flags for n in names} | {"include_prompt": True}


CASES.clear()
sentences("sentence_mean", "mean", [Normalize], most=7, old=legacy("mean_tokens"))
sentences("sentence_old", ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"), most=11,
          old=legacy("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"))
sentences("sentence_lower", "cls", [Normalize], most=13, old=legacy("cls_token"), lower=True)
sentences("sentence_dense", ("lasttoken", "mean"), [
    lambda: Dense(2 * WIDTH, 11), lambda: Dense(11, 7, bias=False, activation_function=torch.nn.Identity()), Normalize],
    prompts={"query": "query: ", "passage": ""}, default_prompt_name="query")



def router(name):
    """Registers a sparse encoder: queries have weights of their tokens, documents those of SPLADE."""

    def write(folder):
        base = folder / "base"
        config = transformers.BertConfig(**BERT | dict(vocab_size=len(WORDS)))
        config._attn_implementation = "eager"
        net = transformers.BertForMaskedLM(config)
        randomize(name, net, torch.float16)
        net.half().save_pretrained(base)
        spoken().save_pretrained(base)
        single = dict(model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})
        weights = torch.arange(len(WORDS)) % 7 / 4 - 0.25
        query = SparseStaticEmbedding(spoken(), weight=weights.float(), frozen=True)
        document = [MLMTransformer(str(base), max_seq_length=9, **single), SpladePooling("max")]
        SparseEncoder(modules=[Router.for_query_document([query], document)], device="cpu").save(str(folder), create_model_card=False)
        clear(base)
        again = SparseEncoder(str(folder), device="cpu", **single).eval()
        for route in ("", "query"):
            golden(name, folder, lambda double: (again.double() if double else again.float()).encode(
                TEXTS, convert_to_tensor=True, task=route or None).to_dense(), route)

    CASES[name] = write


def static(name, compressed):
    """Registers a table of vectors. A compressed one has the form of model2vec, in which tokens share rows and have weights."""

    def write(folder):
        table = torch.sin(torch.arange(len(WORDS) * 5).reshape(-1, 5) * 1.3).half().float()
        spoken = tokens()
        if compressed:
            spoken.enable_truncation(6)
            mapping = torch.arange(len(WORDS)) * 7 % 11
            tensors = {"embeddings": table[:11].contiguous(), "mapping": mapping, "weights": torch.arange(len(WORDS)) / 8 - 1}
            write_sorted(tensors, folder / "model.safetensors", {"format": "pt"})
            spoken.save(str(folder / "tokenizer.json"))
            settings = {"model_type": "model2vec", "architectures": ["StaticModel"], "tokenizer_name": "x", "apply_pca": 5, "apply_zipf": True,
                        "sif_coefficient": 1e-4, "hidden_dim": 5, "seq_length": 1000000, "normalize": True, "pooling": "mean",
                        "max_length": 6, "embedding_dtype": "float32", "vocabulary_quantization": 11}
            listed = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"},
                      {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}]
            (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n")
            (folder / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
        else:
            SentenceTransformer(modules=[StaticEmbedding(spoken, embedding_weights=table)], device="cpu").save(str(folder), create_model_card=False)
        again = SentenceTransformer(str(folder), device="cpu").eval()
        golden(name, folder, lambda double: (again.double() if double else again.float()).encode(TEXTS, convert_to_tensor=True))

    CASES[name] = write


def t5(name):
    """Registers the encoder of a T5 with a map."""

    def write(folder):
        base = folder / "base"
        config = transformers.T5Config(vocab_size=len(WORDS), d_model=12, d_kv=5, d_ff=17, num_layers=2, num_heads=3, relative_attention_num_buckets=8,
                                       relative_attention_max_distance=13, decoder_start_token_id=0, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
        net = transformers.T5EncoderModel(config)
        randomize(name, net, torch.float16)
        net.half().save_pretrained(base)
        spoken().save_pretrained(base)
        single = dict(model_kwargs={"dtype": torch.float32})
        modules = [Transformer(str(base), max_seq_length=9, **single), Pooling(12, "mean"),
                   Dense(12, 7, bias=False, activation_function=torch.nn.Identity()), Normalize()]
        randomize(f"{name}/0", modules[2], torch.float16)
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
        clear(base)
        again = SentenceTransformer(str(folder), device="cpu", **single).eval()
        golden(name, folder, lambda double: (again.double() if double else again.float()).encode(TEXTS, convert_to_tensor=True))

    CASES[name] = write


t5("t5_sentence")
router("sparse_router")
static("static_table", False)
static("static_model2vec", True)

ANSWERS = "[PAD] [UNK] <|start|> <|end|> query document answer : yes no the cat dog sat sleeps on mat who .".split()
PAIRS = [("who sat on the mat", "the cat sat on the mat ."), ("who sleeps", "the dog"), ("the dog", ""), ("who", "<|end|> the cat sleeps")]
TEMPLATE = """{%- set q = messages | selectattr("role", "eq", "query") | map(attribute="content") | first -%}
<|start|> query : {{ q }} document : {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }} <|end|>
{%- if add_generation_prompt %} <|start|> answer :{% endif %}"""


def reranker(name, **score):
    """Registers a decoder that answers yes or no. Padding in a batch would give NaN in float64. In its texts, special tokens are unknown text, as they are for attn."""

    def write(folder):
        base = folder / "base"
        config = transformers.Qwen3Config(
            vocab_size=len(ANSWERS), hidden_size=12, intermediate_size=17, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            head_dim=10, max_position_embeddings=96, tie_word_embeddings=True, rope_parameters={"rope_theta": 100.0, "rope_type": "default"})
        config._attn_implementation = "eager"
        net = transformers.Qwen3ForCausalLM(config)
        randomize(name, net, torch.float16)
        net.half().save_pretrained(base)
        t = Tokenizer(WordLevel({w: i for i, w in enumerate(ANSWERS)}, unk_token="[UNK]"))
        t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        spoken = transformers.PreTrainedTokenizerFast(
            tokenizer_object=t, pad_token="[PAD]", unk_token="[UNK]", additional_special_tokens=["<|start|>", "<|end|>"])
        spoken.chat_template = TEMPLATE
        spoken.save_pretrained(base)
        single = dict(model_kwargs={"attn_implementation": "eager", "dtype": torch.float32}, device="cpu")
        if score:
            kwargs = {"chat_template": {"add_generation_prompt": True}}
            part = Transformer(str(base), transformer_task="text-generation", model_kwargs=single["model_kwargs"], processing_kwargs=kwargs)
            whole = CrossEncoder(modules=[part, LogitScore(**{k: ANSWERS.index(w) for k, w in score.items()})], device="cpu")
            whole.save(str(folder), create_model_card=False)
        else:
            for path in base.iterdir():
                path.rename(folder / path.name)
        for path in base.iterdir():
            path.unlink()
        base.rmdir()
        pairs = [tuple(x.replace("<|end|>", "[UNK] [UNK]") for x in p) for p in PAIRS]
        net = CrossEncoder(str(folder), activation_fn=torch.nn.Identity(), **single).eval()
        scores = net.predict(pairs, batch_size=1, convert_to_tensor=True)
        exact = net.double().predict(pairs, batch_size=1, convert_to_tensor=True)
        write_sorted({"want.scores": exact.float().contiguous()}, folder / "golden_scores.safetensors", {
            "case": name, "sentence_transformers": sentence_transformers.__version__, "transformers": transformers.__version__,
            "torch": torch.__version__.split("+")[0], "pairs": json.dumps(PAIRS),
            "budget.want.scores": repr(float((scores.double() - exact).abs().max())),
        })

    CASES[name] = write


reranker("reranker_words")
reranker("reranker_score", true_token_id="yes", false_token_id="no")
reranker("reranker_one", true_token_id="answer")

if __name__ == "__main__":
    sys.exit(models.main(sys.argv[1:]))
