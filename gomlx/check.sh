#!/usr/bin/env bash
# Trains with XLA's CPU backend as the test does with GoMLX's own: on one device, then on two. It also tests which
# precision the programs for GPUs request. It needs cgo, and a folder with the plugin pjrt_c_api_cpu_plugin.so in
# PJRT_PLUGIN_LIBRARY_PATH. Without that variable, it uses xla-cpu-pjrt from PyPI.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${PJRT_PLUGIN_LIBRARY_PATH:-}" ]; then
	python3 -m venv "$work/venv"
	"$work/venv/bin/pip" install -q xla-cpu-pjrt==0.0.1
	mkdir "$work/plugins"
	ln -s "$("$work/venv/bin/python" -c 'import xla_plugins.xla_cpu_pjrt as p; print(list(p.__path__)[0])')/xla_cpu_pjrt.so" \
		"$work/plugins/pjrt_c_api_cpu_plugin.so"
	export PJRT_PLUGIN_LIBRARY_PATH=$work/plugins
fi
export ATTN_GOMLX_BACKEND=xla:cpu
go vet -tags xla .
go test -tags xla -c -o "$work/gomlx.test" .
"$work/gomlx.test" -test.v
XLA_FLAGS=--xla_force_host_platform_device_count=2 ATTN_GOMLX_DEVICES=2 \
	"$work/gomlx.test" -test.v -test.run 'TestTenSteps/(scaled$|from|dropout)'
