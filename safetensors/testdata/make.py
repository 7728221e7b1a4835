"""Writes interop.safetensors with the reference implementation of the format.

    python -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python make.py

The values are spelled out a second time in ../interop_test.go.
"""

import pathlib

import numpy as np
from safetensors import TensorSpec, serialize_file

inf, nan = np.inf, np.nan
f16 = [0.0, -0.0, 1.0, -2.5, 65504.0, 2.0**-14, 2.0**-24, 1023 * 2.0**-24, inf, -inf, nan]

# Raw bytes stand for the types that numpy does not have.
arrays = {
    "bool": ("bool", np.array([True, False, True], bool)),
    "u8": ("uint8", np.array([0, 1, 127, 128, 255], np.uint8)),
    "i8": ("int8", np.array([-128, -1, 0, 1, 127], np.int8)),
    "u16": ("uint16", np.array([0, 256, 65535], np.uint16)),
    "i16": ("int16", np.array([-32768, -2, 32767], np.int16)),
    "u32": ("uint32", np.array([0, 65536, 2**32 - 1], np.uint32)),
    "i32": ("int32", np.array([-(2**31), -3, 2**31 - 1], np.int32)),
    "u64": ("uint64", np.array([0, 2**32, 2**63 - 1], np.uint64)),
    "i64": ("int64", np.array([-(2**63), -5, 2**63 - 1], np.int64)),
    "u64.big": ("uint64", np.array([2**64 - 1], np.uint64)),
    "f16": ("float16", np.array(f16, np.float16)),
    "bf16": ("bfloat16", np.array([[0x3F80, 0xC020, 0x0001], [0x7F7F, 0x7F80, 0xFF80]], np.uint16)),
    "f32": ("float32", np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5) / 7),
    "f64": ("float64", np.arange(7, dtype=np.float64) / 3 - 1),
    "f8": ("float8_e4m3fn", np.array([[0, 1, 2], [0x7F, 0x80, 0xFF]], np.uint8)),
    "c64": ("complex64", np.array([1 + 2j, -3.5j], np.complex64)),
    "scalar": ("float32", np.array(0.1, np.float32)),
    "empty": ("float32", np.zeros((3, 0, 2), np.float32)),
    'größe/<"\\&>\n\u2028😀': ("uint8", np.array([42], np.uint8)),
}

specs = {
    name: TensorSpec(dtype=dtype, shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes)
    for name, (dtype, a) in arrays.items()
}
# One key of metadata only: with more their order would differ from run to run.
metadata = {"made by": "the reference, für <attn> & \"friends\""}
serialize_file(specs, pathlib.Path(__file__).with_name("interop.safetensors"), metadata)
