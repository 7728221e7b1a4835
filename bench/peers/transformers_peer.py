"""Hugging Face transformers, with PyTorch: a decoder in a directory."""

import warnings

import torch
import transformers
from transformers import AutoModelForCausalLM

from peers import Unsupported

version = transformers.__version__
transformers.logging.set_verbosity_error()
warnings.filterwarnings("ignore")


def prepare(w):
    if torch.get_num_threads() != w.threads:
        torch.set_num_threads(w.threads)


def load(w):
    if w.storage not in ("float32", "bfloat16"):
        raise Unsupported(f"weights of type {w.storage}")
    return AutoModelForCausalLM.from_pretrained(w.file, dtype=getattr(torch, w.storage), attn_implementation="sdpa").eval()


def prompt(w):
    """lk tokens, and the logits of the last one."""
    model = load(w)

    @torch.inference_mode()
    def call():
        model(torch.randint(0, w.vocab, (1, w.lk)), use_cache=True, logits_to_keep=1)

    return {w.storage: call}


def generate(w):
    """The next token of a text that had lk tokens and grows."""
    model = load(w)
    with torch.inference_mode():
        state = [model(torch.randint(0, w.vocab, (1, w.lk)), use_cache=True)]

    @torch.inference_mode()
    def call():
        state[0] = model(torch.randint(0, w.vocab, (1, 1)), past_key_values=state[0].past_key_values, use_cache=True)

    return {w.storage: call}


operations = {"prompt": prompt, "generate": generate}
