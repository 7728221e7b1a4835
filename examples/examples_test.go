// Package examples_test runs each example like a reader, with a directory for its pictures.
package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	// The same imports as in the examples: go test caches a result until an import or an opened file changes.
	_ "github.com/attn-go/attn"
	_ "github.com/attn-go/attn/examples/factor"
	_ "github.com/attn-go/attn/heads"
	_ "github.com/attn-go/attn/nn"
	_ "github.com/attn-go/attn/seq2seq"
	_ "github.com/attn-go/attn/tensor"
	_ "github.com/attn-go/attn/viz"
)

func TestExamples(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1") // the models are tiny: more threads wait for each other
	examples := []struct{ name, picture, text string }{
		{"lengths", "lengths.svg", ">masked</text>"},           // masked cells are hatched
		{"linear", "linear.svg", ">from the state</text>"},     // the curve that is read from the state has a name
		{"prune", "prune-importance.svg", ">1.0</text>"},       // no score is below 0, so the scale begins at 0
		{"regression", "regression-weights.svg", ">40</text>"}, // the axes have numbers
		{"reverse", "", ""},
		{"scores", "", ""},
		{"sequencefirst", "sequencefirst.svg", ">masked</text>"},
	}
	if testing.Short() {
		examples = examples[:1] // one program is enough: some train for seconds
	}
	programs := t.TempDir()
	build := []string{"build", "-o", programs + string(filepath.Separator)}
	for _, c := range examples {
		build = append(build, "./"+c.name)
	}
	if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range examples {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(c.name, "main.go")); err != nil {
				t.Fatal(err)
			}
			dir, program := t.TempDir(), filepath.Join(programs, c.name)
			if out, err := exec.Command(program, dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			files, err := os.ReadDir(dir)
			if err != nil || len(files) == 0 {
				t.Fatalf("%d pictures, %v", len(files), err)
			}
			for _, f := range files {
				if info, err := f.Info(); err != nil || info.Size() < 2000 {
					t.Errorf("%s: %v, %v", f.Name(), info, err)
				}
			}
			if c.text != "" {
				if svg, err := os.ReadFile(filepath.Join(dir, c.picture)); err != nil || !strings.Contains(string(svg), c.text) {
					t.Errorf("%s lacks %s: %v", c.picture, c.text, err)
				}
			}
			if err := exec.Command(program, filepath.Join(dir, "absent")).Run(); err == nil {
				t.Error("pictures are drawn into a directory that does not exist")
			}
		})
	}
}
