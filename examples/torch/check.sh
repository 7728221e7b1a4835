#!/usr/bin/env bash
# Runs the lessons in PyTorch, compares them with attn, and runs the exercises; see check.py. It needs Go, Python 3.11
# or later, and five gigabytes for PyTorch, unless VENV names a virtual environment with the packages of
# interop/torch/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${VENV:-}" ]; then
	VENV=$work/venv
	python3 -m venv "$VENV"
	"$VENV/bin/pip" install -q -r interop/torch/requirements.txt
fi
ATTN_LESSONS=$work go test -count=1 -vet=off ./examples/torch
ATTN_PIECES=$work go test -count=1 -vet=off -run '^TestAlone$' ./site
export PYTHONDONTWRITEBYTECODE=1
"$VENV/bin/python" examples/torch/check.py "$work"
"$VENV/bin/python" examples/exercises/check.py --mistakes
