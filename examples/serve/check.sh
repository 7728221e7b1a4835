#!/usr/bin/env bash
# Calls the service with the Python package openai: see check.py. It needs Go and Python 3.11 or later. VENV may name a
# virtual environment with the packages of requirements.txt.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${VENV:-}" ]; then
	VENV=$work/venv
	python3 -m venv "$VENV"
	"$VENV/bin/pip" install -q -r requirements.txt
fi
PYTHONDONTWRITEBYTECODE=1 SERVE_PYTHON=$(realpath -s "$VENV/bin/python") go test -count=1 -vet=off -v -run '^TestPython$' .
