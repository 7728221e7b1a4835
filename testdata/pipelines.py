"""Writes models/testdata/pipelines.json: what sentence-transformers computes with changed files of pipelines.

Each case is a directory of models/testdata with changed files, and the vectors of texts, or the scores of pairs. The
directories of cross-encoders have no tokenizer; they get that of sentence_mean.

    pip install -r testdata/requirements.txt -r testdata/sentences_requirements.txt    # in a virtual environment
    python testdata/pipelines.py
"""

import json
import pathlib
import shutil
import tempfile

import models  # sets what must be set before torch is loaded

import sentence_transformers
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder

ROOT = pathlib.Path(__file__).parent.parent / "models" / "testdata"
TEXTS = ["The cat sat on the mat.", "dogs", "Who runs in the sun? The runner, and the dog and the cat and it.", ""]
PAIRS = [["who sat on the mat?", "The cat sat on the mat."], ["dogs", "The cat sleeps, and the dog runs in the sun."], ["", "it"]]
TRANSFORMER = {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer", "idx": 0, "name": "0"}
EXACT = dict(device="cpu", model_kwargs={"attn_implementation": "eager", "dtype": torch.float64})
SINGLE = dict(model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})
CASES = []


def case(name, base, rank=False, sparse=False, **files):
    """files are changed; their names are in NAMES. None removes a file."""
    changed = {NAMES[key]: value for key, value in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder, "model")
        shutil.copytree(ROOT / base, folder)
        if rank:
            for file in ("tokenizer.json", "tokenizer_config.json"):
                if file not in changed:
                    shutil.copy(ROOT / "sentence_mean" / file, folder)
        for file, value in changed.items():
            if value is None:
                (folder / file).unlink()
            else:
                (folder / file).write_text(json.dumps(value))
        if rank:
            want = CrossEncoder(str(folder), activation_fn=torch.nn.Identity(), **EXACT).eval().predict(PAIRS, convert_to_tensor=True)
            want = want.reshape(len(PAIRS), -1)
        elif sparse:
            want = SparseEncoder(str(folder), **EXACT).eval().encode(TEXTS, convert_to_tensor=True).to_dense()
            single = SparseEncoder(str(folder), **EXACT | SINGLE).eval().encode(TEXTS, convert_to_tensor=True).to_dense()
        else:
            want = SentenceTransformer(str(folder), **EXACT).eval().encode(TEXTS, convert_to_tensor=True)
    rows = [[round(x, 9) for x in row] for row in want.tolist()]
    sums = {"budget": float((single.double() - want).abs().max())} if sparse else {}
    CASES.append({"name": name, "base": base, "files": changed, "rank": rank, "want": rows} | sums)


NAMES = {"length": "sentence_bert_config.json", "roberta": "sentence_roberta_config.json", "xlnet": "sentence_xlnet_config.json",
         "prompts": "config_sentence_transformers.json", "modules": "modules.json", "tokens": "tokenizer_config.json",
         "pooling": "1_Pooling/config.json", "json": "tokenizer.json", "splade": "document_1_SpladePooling/config.json",
         "words": "document_0_MLMTransformer/sentence_bert_config.json", "router": "router_config.json", "config": "config.json"}


def main():
    spoken = json.loads((ROOT / "sentence_mean" / "tokenizer_config.json").read_text())
    cross = {"model_type": "CrossEncoder", "__version__": {"sentence_transformers": "6.2.0"}, "prompts": {}, "default_prompt_name": None}
    plain = {"transformer_task": "sequence-classification", "module_output_name": "scores",
             "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}}
    pooling = {"word_embedding_dimension": 15, "pooling_mode_mean_tokens": True}
    calls = lambda **text: {"processing_kwargs": {"text": text}}

    case("as it is", "sentence_mean")
    case("old name of the length", "sentence_mean", length=None, roberta={"max_seq_length": 5, "do_lower_case": False})
    case("the oldest name of the length", "sentence_mean", length=None, xlnet={"max_seq_length": 4})
    case("two names of the length", "sentence_mean", length={"max_seq_length": 6}, roberta={"max_seq_length": 3})
    case("an empty file before", "sentence_mean", length={}, roberta={"max_seq_length": 5})
    case("length of a call", "sentence_mean", length={"max_seq_length": 7} | calls(max_length=5, truncation=True))
    case("length of a call that is larger", "sentence_mean", length={"max_seq_length": 4} | calls(max_length=9))
    case("common length of calls", "sentence_mean", length={"processing_kwargs": {"text": {"max_length": 5}, "common": {"max_length": 8}}})
    case("cut at the left", "sentence_mean", tokens=spoken | {"truncation_side": "left"})
    prompted = {"prompts": {"q": "the cat : "}, "default_prompt_name": "q"}
    case("prompt", "sentence_mean", prompts=prompted)
    case("truncated vectors", "sentence_mean", prompts={"truncate_dim": 6})
    case("truncated to more than their length", "sentence_mean", prompts={"truncate_dim": 16})
    for mode in ("mean_tokens", "cls_token", "max_tokens", "lasttoken", "mean_sqrt_len_tokens"):
        case(f"prompt that {mode} excludes", "sentence_mean", prompts=prompted,
             pooling={"word_embedding_dimension": 15, "include_prompt": False, "pooling_mode_" + mode: True})
    case("no pooling is named", "sentence_mean", pooling={"word_embedding_dimension": 15})
    case("one pooling is named", "sentence_mean", pooling={"embedding_dimension": 15, "pooling_mode": "max"})

    case("one of some poolings of words", "sparse_router", sparse=True, splade={"activation_function": "log1p_relu"})
    case("sum over words", "sparse_router", sparse=True, splade={"pooling_strategy": "sum", "word_embedding_dimension": 27})
    case("sum of two logarithms", "sparse_router", sparse=True,
         splade={"pooling_strategy": "sum", "activation_function": "log1p_relu", "embedding_dimension": 27})
    document = [{"name": "0", "path": "document_0_MLMTransformer", "type": "sentence_transformers.base.modules.transformer.Transformer"},
                {"name": "1", "path": "document_1_SpladePooling", "type": "sentence_transformers.sparse_encoder.models.SpladePooling.SpladePooling"}]
    case("no route, and words as a task", "sparse_router", sparse=True, modules=document,
         words={"transformer_task": "fill-mask", "max_seq_length": 5, "module_output_name": "token_embeddings",
                "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}})
    document[0]["type"] = "sentence_transformers.sparse_encoder.models.MLMTransformer"
    case("old names of modules of words", "sparse_router", sparse=True, modules=document, words={"max_seq_length": 4, "do_lower_case": False})
    routes = json.loads((ROOT / "sparse_router" / "router_config.json").read_text())
    case("another default route", "sparse_router", sparse=True, router=routes | {"parameters": {"default_route": "query"}})
    case("prompt of words", "sparse_router", sparse=True, prompts=prompted | {"model_type": "SparseEncoder"})
    case("vectors without a norm", "static_model2vec", modules=[
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"}],
         config=None)
    case("prompt of vectors", "static_model2vec", prompts=prompted)

    case("cross-encoder without modules", "bert_rank", rank=True)
    case("token types of the class", "bert_rank", rank=True, tokens=spoken | {"tokenizer_class": "BertTokenizer"})
    case("names of inputs with token types", "bert_rank", rank=True, tokens=spoken | {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]})
    case("names of inputs without token types", "bert_rank", rank=True,
         tokens=spoken | {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "attention_mask"]})
    case("capital letters", "bert_rank", rank=True, tokens=spoken | {"tokenizer_class": "BertTokenizer", "do_lower_case": False})
    case("files without modules", "bert_rank", rank=True, length=plain | {"max_seq_length": 8}, prompts=cross | prompted)
    case("length of pairs", "bert_rank", rank=True, modules=[TRANSFORMER], prompts=cross, length=plain | {"max_seq_length": 8})
    case("old name of the length of pairs", "bert_rank", rank=True, modules=[TRANSFORMER], prompts=cross, roberta=plain | {"max_seq_length": 8})
    case("length of calls with pairs", "bert_rank", rank=True, modules=[TRANSFORMER], prompts=cross, length=plain | calls(max_length=8, truncation=True))
    case("prompt of pairs", "bert_rank", rank=True, modules=[TRANSFORMER], prompts=cross | prompted, length=plain)
    case("classes of pairs", "bert_text", rank=True, modules=[TRANSFORMER], prompts=cross | prompted, length=plain | {"max_seq_length": 9})
    data = {"sentence_transformers": sentence_transformers.__version__, "transformers": transformers.__version__,
            "texts": TEXTS, "pairs": PAIRS, "cases": CASES}
    (ROOT / "pipelines.json").write_text(json.dumps(data, indent=1) + "\n")
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
