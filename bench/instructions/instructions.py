"""Instructions per multiply-add of the kernels for NEON and AVX2, counted by qemu.

    apt install qemu-user gcc        # qemu 7.2 or newer, with plugins
    python bench/instructions/instructions.py

Nobody has to own an ARM processor for this, and nothing is timed. Each benchmark of internal/simd and internal/flash
runs twice with different numbers of iterations; the difference is what the iterations need. The least that is possible
is one instruction for as many multiply-adds as a register has numbers: 4 in NEON, 8 in AVX2 (bfloat16 and int8 have
more, where an instruction multiplies pairs or quads).
"""

import argparse
import os
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Name, package, benchmark without its kernel, multiply-adds, kernel after the name of the benchmark.
WORK = [
    ("product 512³, float32", "internal/simd", "BenchmarkMultiply/{}/^1x512x512x512/NN$", 512**3),
    ("96 products 64 × 64 × 16, float32", "internal/simd", "BenchmarkMultiply/{}/96x64x64x16/NN$", 96 * 64 * 64 * 16),
    ("layer 768 × 768, 128 rows, float32", "internal/simd", "BenchmarkPackedMultiply/{}/rows=128/format=1$", 128 * 768**2),
    ("the same, bfloat16", "internal/simd", "BenchmarkPackedMultiply/{}/rows=128/format=3$", 128 * 768**2),
    ("the same, int8", "internal/simd", "BenchmarkPackedMultiply/{}/rows=128/format=4$", 128 * 768**2),
    ("layer 768 × 768, one row, float32", "internal/simd", "BenchmarkPackedMultiply/{}/rows=1$/format=1$", 768**2),
    ("the same, int8", "internal/simd", "BenchmarkPackedMultiply/{}/rows=1$/format=4$", 768**2),
    ("attention, 12 heads of 512 tokens", "internal/flash", "BenchmarkForward/1_12_512_512_64", 2 * 12 * 512 * 512 * 64),
]
MACHINES = {"neon": ("arm64", "qemu-aarch64", ["-cpu", "max"]), "avx2": ("amd64", "qemu-x86_64", ["-cpu", "max"])}


def count(qemu, plugin, binary, kernel, pattern, times):
    run = subprocess.run(
        [*qemu, "-plugin", plugin, binary, "-test.run=^$", f"-test.bench=^{pattern}", f"-test.benchtime={times}x"],
        capture_output=True,
        text=True,
        env=os.environ | {"GOMAXPROCS": "1", "ATTN_SIMD": kernel},
    )
    if not re.search(r"^Benchmark\S+\s+\d+\s", run.stdout, re.M):
        raise SystemExit(f"{pattern}: no such benchmark\n{run.stdout}{run.stderr}")
    return int(re.search(r"instructions (\d+)", run.stderr)[1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--qemu", default="", help="folder of qemu-aarch64 and qemu-x86_64")
    folder = p.parse_args().qemu
    with tempfile.TemporaryDirectory() as scratch:
        plugin = os.path.join(scratch, "count.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", plugin, HERE / "count.c"], check=True)
        print("| work | NEON | AVX2 |\n|---|---|---|")
        binaries = {}
        for name, package, pattern, multiplied in WORK:
            cells = []
            for kernel, (arch, emulator, flags) in MACHINES.items():
                if (package, arch) not in binaries:
                    binaries[package, arch] = os.path.join(scratch, f"{package.replace('/', '_')}.{arch}")
                    build = ["go", "test", "-c", "-o", binaries[package, arch], "./" + package]
                    subprocess.run(build, check=True, cwd=ROOT, env=os.environ | {"GOARCH": arch, "CGO_ENABLED": "0"})
                qemu = [os.path.join(folder, emulator), *flags]
                times = max(4, 10**8 // multiplied)
                few, more = (
                    count(qemu, plugin, binaries[package, arch], kernel, pattern.format(kernel), n) for n in (2, 2 + times)
                )
                cells.append(f"{(more - few) / times / multiplied:.3f}")
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
