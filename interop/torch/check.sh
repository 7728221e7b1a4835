#!/usr/bin/env bash
# Compares attn with its PyTorch counterparts; see check.py. It needs Go, Python 3.11 or later, and a gigabyte or more
# for PyTorch, unless VENV names a virtual environment with the packages of requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${VENV:-}" ]; then
	VENV=$work/venv
	python3 -m venv "$VENV"
	"$VENV/bin/pip" install -q -r interop/torch/requirements.txt
fi
go build -o "$work/attn" ./cmd/attn
ATTN_TORCH_CASES=$work/cases go test -count=1 -run TestTorchCases ./models
export PYTHONDONTWRITEBYTECODE=1
"$VENV/bin/python" interop/torch/golden.py "$work/cases" --check
"$VENV/bin/python" interop/torch/check.py "$work/cases" "$work/attn"
