//go:build !js

// Command wasm compares the vector kernels of WebAssembly with portable Go. It builds a program
// twice, runs both in turns, in Node or a browser, and prints medians and ratios as a Markdown table:
//
//	go run ./bench/wasm
//	go run ./bench/wasm --browser chromium
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 3, "number of runs of each program")
	only := flag.String("only", ".", "regular expression that selects rows by their names")
	node := flag.String("node", "node", "command that runs Node")
	browser := flag.String("browser", "", "command that runs a browser, in whose worker to measure instead of in Node")
	flag.Parse()
	if err := run(*node, *browser, *only, *rounds); err != nil {
		log.Fatal(err)
	}
}

// The two programs, in the order of their columns.
var programs = []struct{ name, tags string }{{"portable Go", ""}, {"vectors", "wasmsimd"}}

func run(node, browser, only string, rounds int) error {
	simd, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/attn-go/attn/internal/simd").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	kernels := filepath.Join(strings.TrimSpace(string(simd)), "wasm")
	dir, err := os.MkdirTemp("", "attn-wasm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, p := range programs {
		build := exec.Command("go", "build", "-tags", p.tags, "-o", filepath.Join(dir, fmt.Sprint(i)),
			"github.com/attn-go/attn/bench/wasm")
		build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build -tags %q: %w", p.tags, err)
		}
	}
	measure := func(program int) (r result, err error) {
		binary := filepath.Join(dir, fmt.Sprint(program))
		if browser != "" {
			return inBrowser(browser, kernels, binary, dir, only)
		}
		cmd := exec.Command(node, filepath.Join(kernels, "run.js"), binary, only)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return r, fmt.Errorf("%s: %w", cmd, err)
		}
		return r, json.Unmarshal(out, &r)
	}
	values := make([]map[string][]float64, len(programs))
	names := make([]string, len(programs))
	for i := range values {
		values[i] = map[string][]float64{}
	}
	for range rounds {
		for i := range programs {
			r, err := measure(i)
			if err != nil {
				return err
			}
			names[i] = r.Implementation
			for name, v := range r.Values {
				values[i][name] = append(values[i][name], v)
			}
		}
	}
	fmt.Printf("| | unit | %s (%s) | %s (%s) | ratio |\n|---|---|---|---|---|\n",
		programs[0].name, names[0], programs[1].name, names[1])
	for _, row := range rows {
		if len(values[0][row.name]) == 0 {
			continue
		}
		before, after := median(values[0][row.name]), median(values[1][row.name])
		ratio := after / before
		if row.time {
			ratio = 1 / ratio
		}
		fmt.Printf("| %s | %s | %.3g | %.3g | %.1f × |\n", row.name, row.unit, before, after, ratio)
	}
	return nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
