//go:build xla

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
)

// Every product of a program for a GPU requests float32, or with -tf32 nothing. The programs are compiled by the CPU's
// plugin: go-xla takes it for CUDA's by its name.
func TestPrecision(t *testing.T) {
	attn := attnCommand(t)
	dir := t.TempDir()
	pairs, run, command := filepath.Join(dir, "pairs.tsv"), filepath.Join(dir, "run"), filepath.Join(dir, "attn-gomlx")
	if err := os.WriteFile(pairs, []byte("1\t2\n3\t4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	attn("train", "--data", pairs, "--valid", pairs, "--units", "char", "--score", "bilinear", "--width", "8",
		"--heads", "2", "--layers", "1", "--prepare", "--out", run)
	if out, err := exec.Command("go", "build", "-tags", "xla", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	plugin := filepath.Join(dir, "pjrt_c_api_cuda_plugin.so")
	if err := os.Symlink(pjrt.AvailablePlugins()["cpu"], plugin); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"-tf32"}} {
		dump := t.TempDir()
		c := exec.Command(command, append(flags, "-backend", "xla:"+plugin, "-steps", "1", run)...)
		c.Env = append(os.Environ(), "GOPJRT_CUDA_CHECKS=0", "XLA_FLAGS=--xla_dump_hlo_as_text --xla_dump_to="+dump)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		products, precise := 0, 0
		programs, _ := filepath.Glob(filepath.Join(dump, "*.before_optimizations.txt"))
		for _, path := range programs {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, " dot(") {
					products++
					if strings.Contains(line, "operand_precision={highest,highest}") {
						precise++
					}
				}
			}
		}
		want := products
		if flags != nil {
			want = 0
		}
		if products < 50 || precise != want {
			t.Errorf("flags %q: %d of %d products request float32, want %d of at least 50", flags, precise, products, want)
		}
	}
}

func TestXLAErrors(t *testing.T) {
	for config, want := range map[string]string{
		"xla:tpu":            `backend "xla:tpu" may multiply in less than float32, want xla:cpu or xla:cuda`,
		"xla":                `backend "xla" may multiply in less than float32`,
		"xla:cuda,tf32=true": `backend "xla:cuda,tf32=true" sets tf32; use -tf32`,
		"xla:cuda,notf32":    "use -tf32",
		"xla:cpu,nonsense=1": "unknown plugin options [nonsense]",
	} {
		if _, err := newBackend(options{backend: config, devices: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}
