package main

import (
	"os"
	"strings"
	"testing"
)

// The example runs, and draws what docs show.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir); err != nil {
		t.Fatal(err)
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
	if text, err := os.ReadFile(dir + "/regression-weights.svg"); err != nil || !strings.Contains(string(text), ">40</text>") {
		t.Errorf("regression-weights.svg lacks %s: %v", ">40</text>", err) // the axes have numbers
	}
	if err := run(dir + "/absent"); err == nil {
		t.Error("pictures are drawn into a directory that is not there")
	}
}
