#!/usr/bin/env bash
# Measures the service with a model: measure.sh DIR. It prints the rows of the table in docs/serve.md, for float32 and
# int8. Use an idle machine; hey is downloaded. A text has 20 words.
set -euo pipefail
model=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
service=
trap 'kill $service 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/serve" ./examples/serve
GOBIN="$work" go install github.com/rakyll/hey@v0.1.5

text='"the small cat of the old house sat on the mat and saw that a dog ran over the wet road"'
list() { printf '{"input": [%s' "$text" && for ((i = 1; i < $1; i++)); do printf ',%s' "$text"; done && printf ']}'; }

echo '| format | clients | texts in a request | texts per second | p50 | p99 | peak memory so far |'
echo '|---|---|---|---|---|---|---|'
for format in float32 int8; do
	"$work/serve" -address 127.0.0.1:0 -format $format "$model" 2>"$work/log" &
	service=$!
	until grep -q 'listening on' "$work/log"; do
		kill -0 $service || { cat "$work/log"; exit 1; }
		sleep 0.1
	done
	address=$(sed -n 's/.*listening on //p' "$work/log")
	for row in '1 1' '4 1' '16 1' '64 1' '16 16'; do
		read -r clients texts <<<"$row"
		list "$texts" >"$work/texts.json"
		for round in 1 2 3; do
			"$work/hey" -z 10s -c "$clients" -m POST -T application/json -D "$work/texts.json" "$address/v1/embeddings" >"$work/hey.$round"
			grep -q '\[200\]' "$work/hey.$round" || { cat "$work/hey.$round"; exit 1; }
		done
		memory=$(awk '/VmHWM/ {printf "%.0f MB", $2 / 1000}' "/proc/$service/status")
		value() { cat "$work"/hey.? | awk "$1" | sort -n | sed -n 2p; } # the median of three rounds
		rate=$(value "/Requests\/sec/ {print \$2 * $texts}")
		p50=$(value '/50%+ in/ {print $3 * 1000}')
		p99=$(value '/99%+ in/ {print $3 * 1000}')
		printf '| %s | %d | %d | %.0f | %.1f ms | %.1f ms | %s |\n' $format "$clients" "$texts" "$rate" "$p50" "$p99" "$memory"
	done
	kill $service
	wait $service || true
done
