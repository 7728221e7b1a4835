"""Writes models/testdata/*_pruned/: tiny models without some heads, and the results of transformers for them.

Only versions of transformers before 5 apply `pruned_heads` in config.json, so this needs one of them besides the other
requirements. The files and the options are the same as in models.py.

    pip install -r testdata/models_pruned_requirements.txt
    python testdata/models_pruned.py [--check] [CASE …]
"""

import sys

import models

WHOLE = set(models.CASES)


def prune(heads):
    """Removes heads from a model; they are given by layer."""
    return lambda _, model: model.prune_heads(heads)


HEADS = {0: [1], 1: [2, 0]}
DISTIL = dict(models.DISTIL, dim=25, n_heads=5)
ROBERTA = dict(models.ROBERTA, hidden_size=20, num_attention_heads=4)
GPT2 = dict(n_embd=12, n_layer=3, n_head=3, n_positions=64, vocab_size=43, scale_attn_by_inverse_layer_idx=True)

models.case("bert_pruned", "BertForMaskedLM", models.BERT, models.TYPED, run=prune(HEADS))
models.case("distilbert_pruned", "DistilBertForMaskedLM", DISTIL, models.TWO, run=prune({1: [4, 1, 2]}))
models.case("roberta_pruned", "RobertaForSequenceClassification", ROBERTA | models.LABELS, models.PADDED, run=prune({0: [0, 3]}))
models.case("gpt2_pruned", "GPT2LMHeadModel", GPT2, models.TWO, run=prune({0: [0, 2], 2: [1]}))

if __name__ == "__main__":
    for name in WHOLE:
        del models.CASES[name]
    sys.exit(models.main(sys.argv[1:]))
