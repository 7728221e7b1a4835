"""attn's translators in PyTorch: from a directory of attn, and back. See docs/scale-training.md."""

from .files import Run, load, save
from .recurrent import attn_name

__all__ = ["Run", "attn_name", "load", "save"]
