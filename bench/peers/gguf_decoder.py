"""Writes a decoder of random_decoder.py for llama.cpp, without a vocabulary: float32.gguf and bfloat16.gguf beside its weights.

    python gguf_decoder.py SOURCES DIRECTORY

SOURCES has the converter of llama.cpp: vendor/llama.cpp of the source distribution of llama-cpp-python. It also needs the
packages sentencepiece and mistral-common.
"""

import pathlib
import sys

if len(sys.argv) != 3:
    sys.exit(__doc__)
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
import conversion
import gguf
from conversion.base import ModelBase


def without_vocabulary(self):
    self._set_vocab_none()
    self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])


def main():
    directory = pathlib.Path(sys.argv[2])
    kind = conversion.get_model_class(ModelBase.load_hparams(directory, False)["architectures"][0])
    kind.set_vocab = without_vocabulary
    kind.no_mtp, kind.mtp_only = True, False  # no layers that predict further tokens
    for name, of in (("float32", gguf.LlamaFileType.ALL_F32), ("bfloat16", gguf.LlamaFileType.MOSTLY_BF16)):
        kind(directory, of, directory / f"{name}.gguf", model_name="random").write()


main()
