"""Interventions in plain transformers, for golden.py: every part of a model is changed or read in a function of attention and a few hooks.

A part is a name and a layer, with the tensor of one text:

    head      [H T d]   what a head computes, before the output projection
    query     [H T d]   after the rotation of positions
    key       [K T d]   K heads of keys as they are
    value     [K T d]
    pattern   [H T T]   weights after the softmax
    residual  [T D]     the state that enters a layer; of layer L (one behind the last) the state before the final norm
    mlp       [T D]     the output of the feed-forward network, before it is added to the residual

An edit is a function of that tensor. Layers of an encoder-decoder are 0 … E-1 (encoder), E … E+D-1 (decoder, its own
tokens) and E+D … E+2D-1 (decoder, the encoder's states).
"""

import contextlib
import os
import warnings
from unittest.mock import patch

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.filterwarnings("ignore")

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask
from transformers.utils import logging

logging.disable_progress_bar()
torch.set_num_threads(1)


@contextlib.contextmanager
def precise():
    """What a model casts to float32 (norms and angles) is cast to float64 instead."""
    with patch.object(torch, "float32", torch.float64), patch.object(torch, "float", torch.float64), \
            patch.object(torch.Tensor, "float", torch.Tensor.double):
        yield


current = None  # the Taps whose model runs


def attention(module, query, key, value, mask, scaling=None, **_):
    layer, taps = current.attentions.index(module), current
    query, key, value = (taps.visit(n, layer, x) for n, x in (("query", query), ("key", key), ("value", value)))
    repeat = lambda x: x.repeat_interleave(query.shape[1] // x.shape[1], 1)
    scores = query @ repeat(key).transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    pattern = taps.visit("pattern", layer, torch.softmax(scores if mask is None else scores + mask, -1))
    return taps.visit("head", layer, pattern @ repeat(value)).transpose(1, 2).contiguous(), pattern


AttentionInterface.register("taps", attention)
AttentionMaskInterface.register("taps", eager_mask)


class Taps:
    """attentions: the modules that call attention, by layer. residuals: (module, "in" or "out") by layer. mlps: modules."""

    def __init__(self, model, attentions, residuals, mlps):
        self.model, self.attentions = model.eval(), attentions
        for p in model.parameters():
            p.requires_grad_(False)
        for layer, (module, side) in enumerate(residuals):
            if side == "in":
                def before(m, args, kwargs, layer=layer):
                    if args:
                        return (self.visit("residual", layer, args[0]), *args[1:]), kwargs
                    return args, {**kwargs, "hidden_states": self.visit("residual", layer, kwargs["hidden_states"])}
                module.register_forward_pre_hook(before, with_kwargs=True)
            else:
                module.register_forward_hook(lambda m, args, out, layer=layer: self.visit("residual", layer, out))
        for layer, module in enumerate(mlps):
            module.register_forward_hook(lambda m, args, out, layer=layer: self.visit("mlp", layer, out))

    def visit(self, part, layer, x):
        edit = self.edits.get((part, layer))
        if edit is not None:
            x = edit(x[0])[None]
        if self.keep is not None:
            if self.grad:
                x = x if x.requires_grad else x.detach().requires_grad_(True)
                x.retain_grad()
            self.keep[part, layer] = x
        return x

    def run(self, ids, edits=None, keep=False, grad=False, **more):
        """The model's output; with keep, also every part by (name, layer): after backward, `.grad` is its gradient."""
        global current
        current, self.edits, self.keep, self.grad = self, edits or {}, {} if keep else None, grad
        with precise(), torch.enable_grad() if grad else torch.no_grad():
            out = self.model(torch.tensor([ids]), **more)
        return (out, self.keep) if keep else out


def gpt2(model):
    blocks = model.transformer.h
    return Taps(model, [b.attn for b in blocks], [(b, "in") for b in blocks] + [(model.transformer.ln_f, "in")], [b.mlp for b in blocks])


def llama(model):
    blocks = model.model.layers
    return Taps(model, [b.self_attn for b in blocks], [(b, "in") for b in blocks] + [(model.model.norm, "in")], [b.mlp for b in blocks])


def bert(model):
    blocks = model.encoder.layer
    return Taps(model, [b.attention.self for b in blocks], [(b, "in") for b in blocks] + [(blocks[-1], "out")], [b.output.dense for b in blocks])


def bart(model):
    e, d = model.model.encoder.layers, model.model.decoder.layers
    attentions = [b.self_attn for b in e] + [b.self_attn for b in d] + [b.encoder_attn for b in d]
    return Taps(model, attentions, [(b, "in") for b in [*e, *d]], [b.fc2 for b in [*e, *d]])
