//go:build !js

// Command wasm compares the vector kernels of WebAssembly with portable Go. It builds a program
// twice, runs both in turns, in Node or a browser, and prints medians and ratios as a Markdown table. Run it in the
// root of the repository:
//
//	go run ./bench/wasm
//	go run ./bench/wasm --browser chromium
//
// With --save, it adds them to the history, from which bench/compare writes its tables.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/bench/history"
	"github.com/attn-go/attn/internal/app/bench"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 3, "number of runs of each program")
	only := flag.String("only", ".", "regular expression that selects rows by their names")
	node := flag.String("node", "node", "command that runs Node")
	browser := flag.String("browser", "", "command that runs a browser, in whose worker to measure instead of in Node")
	dir := flag.String("history", "bench/history", "directory of earlier measurements")
	save := flag.Bool("save", false, "save the measurements there")
	flag.Parse()
	var err error
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("unexpected argument %s", flag.Arg(0))
	case *rounds < 1:
		err = fmt.Errorf("rounds %d, want at least 1", *rounds)
	default:
		var table *history.Table
		if table, err = measured(*node, *browser, *only, *rounds); err != nil {
			break
		}
		r := history.New()
		r.Kernels, r.Tables = "wasm", []*history.Table{table}
		fmt.Print(r.Markdown(table))
		if *save {
			err = r.Save(*dir)
		}
	}
	if err != nil {
		log.Fatal("wasm: ", err)
	}
}

// kernels is the directory of the vector kernels, relative to the root of the repository.
const kernels = "internal/simd/wasm"

// The tags of the two programs, portable Go and vectors.
var programs = []string{"", "wasmsimd"}

// measured runs both programs in turns.
func measured(node, browser, only string, rounds int) (*history.Table, error) {
	command, title, engine := node, "WebAssembly in Node", "Node "
	if browser != "" {
		command, title, engine = browser, "WebAssembly in a browser", ""
	}
	version, err := exec.Command(command, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", command, err)
	}
	engine += strings.TrimSpace(string(version))
	dir, err := os.MkdirTemp("", "attn-wasm")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for i, tags := range programs {
		build := exec.Command("go", "build", "-tags", tags, "-o", filepath.Join(dir, fmt.Sprint(i)),
			"github.com/attn-go/attn/bench/wasm")
		build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("go build -tags %q: %w", tags, err)
		}
	}
	measure := func(program int) (r result, err error) {
		binary := filepath.Join(dir, fmt.Sprint(program))
		if browser != "" {
			return inBrowser(browser, binary, dir, only)
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
	for i := range values {
		values[i] = map[string][]float64{}
	}
	for range rounds {
		for i := range programs {
			r, err := measure(i)
			if err != nil {
				return nil, err
			}
			for name, v := range r.Values {
				values[i][name] = append(values[i][name], v)
			}
		}
	}
	return tableOf(values, title, engine, rounds), nil
}

// tableOf returns the medians of the times of both programs.
func tableOf(values []map[string][]float64, title, engine string, rounds int) *history.Table {
	t := &history.Table{
		Title: title, Threads: 1, How: fmt.Sprintf("Medians of %d runs in turns.", rounds),
		Peers: []history.Version{{Name: "portable Go", Version: "in " + engine}},
	}
	for _, row := range rows {
		if len(values[0][row.name]) == 0 {
			continue
		}
		before, after := bench.Median(values[0][row.name]), bench.Median(values[1][row.name])
		r := history.Row{Work: row.name, Median: after, Peers: []history.Figure{{Median: before, Ratio: before / after}}}
		if row.unit != "" {
			r.Share = fmt.Sprintf("%.1f %s", row.amount/after, row.unit)
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}
