"""Writes testdata/npy/*.npy, files written by NumPy, which the Go tests read. The tests also contain the expected elements.

    python testdata/npy.py           write the files
    python testdata/npy.py --check   compare the files with what would be written; exit 1 on a difference
"""

import io
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent / "npy"


def count(shape, dtype, order="C", first=0):
    """Returns an array with first, first+1, … in row-major order of its indices, for any memory layout."""
    size = int(np.prod(shape))
    return np.asarray(np.arange(first, first + size).reshape(shape), dtype=dtype, order=order)


def special(dtype):
    info = np.finfo(np.dtype(dtype).newbyteorder("="))
    return np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, info.smallest_subnormal, info.tiny, info.max], dtype=dtype)


ARRAYS = {
    "scalar": np.array(2.5, dtype="<f4"),
    "empty": np.zeros((0,), dtype="<f4"),
    "no_rows": np.zeros((0, 3), dtype="<f4"),
    "no_columns": np.zeros((3, 0), dtype="<f4"),
    "no_cubes": np.zeros((0, 3, 2), dtype="<f4", order="F"),
    "vector": count((7,), "<f4"),
    "matrix": count((3, 5), "<f4"),
    "single": special("<f4"),
    "double": np.array([0.1, -1 / 3, 1e-60, 16777217, np.inf, np.nan], dtype="<f8"),
    # Arrays that are refused.
    "fortran": count((3, 5), "<f4", "F"),
    "huge_double": np.array([0, 1e300], dtype="<f8"),
    "single_big": special(">f4"),
    "half": special("<f2"),
    "bool": np.array([[True, False, True], [False, False, True]]),
    "i4": count((5,), "<i4", first=-2),
    "complex": np.array([1j], dtype="<c8"),
    "text": np.array(["a", "bc"]),
    "fields": np.array([(1, 2)], dtype=[("a", "<f4"), ("b", "<i4")]),
    "time": np.array(["2026-01-02"], dtype="<M8[D]"),
}


def save(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def main(check):
    files = {f"{name}.npy": save(array) for name, array in ARRAYS.items()}
    files["version2.npy"] = save(ARRAYS["matrix"], (2, 0))
    files["version3.npy"] = save(ARRAYS["matrix"], (3, 0))
    files["two.npy"] = save(ARRAYS["vector"]) + save(ARRAYS["matrix"])
    FOLDER.mkdir(exist_ok=True)
    there = {p.name: p.read_bytes() for p in FOLDER.glob("*.npy")}
    if check:
        differ = sorted(name for name in files.keys() | there.keys() if files.get(name) != there.get(name))
        for name in differ:
            print(f"{name} differs", file=sys.stderr)
        return 1 if differ else 0
    for name in there.keys() - files.keys():
        (FOLDER / name).unlink()
    for name, data in files.items():
        (FOLDER / name).write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
