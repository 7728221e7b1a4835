package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The Python package openai understands the answers and the errors. check.sh sets SERVE_PYTHON.
func TestPython(t *testing.T) {
	python := os.Getenv("SERVE_PYTHON")
	if python == "" {
		t.Skip("SERVE_PYTHON names no Python with the package openai: run check.sh")
	}
	e, _, _ := load(t)
	texts := []string{"the cat sat.", "who?"}
	var tokens [][]int
	var vectors [][]float32
	for _, text := range texts {
		x, _, err := e.Encode(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		y, err := e.Embed(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		tokens, vectors = append(tokens, x.IDs), append(vectors, y.Data())
	}
	path := filepath.Join(t.TempDir(), "case.json")
	data, err := json.Marshal(map[string]any{"texts": texts, "tokens": tokens, "vectors": vectors, "width": 4})
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, "check.py", serve(t, settings{lengths: []int{4}}), path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// The curl commands of docs/serve.md have the answers that the page shows.
func TestCurl(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err == nil {
		_, err = exec.LookPath("curl")
	}
	if err != nil {
		t.Skip(err)
	}
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, settings{name: "all-MiniLM-L6-v2", lengths: []int{4}, truncate: true})
	commands := regexp.MustCompile(`(?m)^    (curl (?:.*\\\n    )*.*)\n\n`).FindAllStringSubmatch(string(page), -1)
	if len(commands) < 6 {
		t.Errorf("%d commands, want those of all endpoints", len(commands))
	}
	for _, c := range commands {
		command := strings.ReplaceAll(c[1], "http://127.0.0.1:8080", address)
		out, err := exec.CommandContext(t.Context(), bash, "-c", command).Output()
		var answer any
		if err != nil || json.Unmarshal(out, &answer) != nil || strings.Contains(string(out), `"error"`) {
			t.Errorf("%s\n%v: %s", command, err, out)
		}
	}
}
