"""Writes node tests of ONNX as files that internal/conformance reads.

    python onnx_cases.py                        # internal/conformance/testdata/onnx-linear-attention
    python onnx_cases.py DIR OPERATOR...        # those of some operators, such as Attention, to DIR

The numbers and the expected outputs are those that onnx generates. onnx_requirements.txt pins what it runs on.
"""

import importlib
import json
import pathlib
import re
import struct
import sys

import onnx
from onnx.backend.test.case import node

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "internal" / "conformance" / "testdata" / "onnx-linear-attention"
OPERATORS = ["LinearAttention", "CausalConvWithState"]


DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int64": "I64", "uint8": "U8", "bool": "BOOL"}


def encode(tensors, metadata):
    """The safetensors format. The library's writer does not guarantee the order of metadata."""
    header, body = {"__metadata__": metadata}, b""
    for name, array in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        span = [len(body), len(body) + array.nbytes]
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": span}
        body += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def write(case, folder):
    n = case.model.graph.node[0]
    tensors = {}
    for kind, names, arrays in zip(("in", "out"), (n.input, n.output), case.data_sets[0], strict=True):
        given = [name for name in names if name]
        assert len(given) == len(arrays), case.name
        # The names of the operator, which the names of the node are only by custom.
        schema = onnx.defs.get_schema(n.op_type, case.model.opset_import[0].version)
        formal = [f.name for f, name in zip(schema.inputs if kind == "in" else schema.outputs, names) if name]
        tensors |= {f"{kind}.{name}": array for name, array in zip(formal, arrays, strict=True)}
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
    attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
    metadata = {
        "name": case.name,
        "op": n.op_type,
        "opset": str(case.model.opset_import[0].version),
        "attributes": json.dumps(attributes),
    }
    (folder / f"{case.name}.safetensors").write_bytes(encode(tensors, metadata))


def main(folder, operators):
    folder.mkdir(parents=True, exist_ok=True)
    for operator in operators:
        module = re.sub(r"(?<!^)([A-Z])", r"_\1", operator).lower()
        importlib.import_module(f"{node.__name__}.{module}")  # adds its tests to the list
    for case in node._NodeTestCases:
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in operators:
            write(case, folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]), sys.argv[2:])
    else:
        main(TARGET, OPERATORS)
