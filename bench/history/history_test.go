package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestKind(t *testing.T) {
	for cpu, want := range map[string]string{
		"Intel(R) Xeon(R) Processor":              "intel-xeon-avx2",
		"Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz": "intel-core-i7-8700-avx2",
		"AMD EPYC 9R14 96-Core Processor":         "amd-epyc-9r14-avx2",
		"amd64":                                   "amd64-avx2",
	} {
		r := Record{}
		r.CPU, r.Kernels = cpu, "avx2"
		if got := r.Kind(); got != want {
			t.Errorf("%s is %s, want %s", cpu, got, want)
		}
	}
	var r Record
	r.CPU, r.Kernels, r.Reduced = "Intel(R) Xeon(R) Processor", "avx512", "AVX512-VNNI AMX"
	if kind, name := r.Kind(), r.Hardware(); kind != "intel-xeon-avx512-amx" || name != "Intel Xeon, AVX-512 and AMX" {
		t.Errorf("with tile units: kind %s, hardware %s", kind, name)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"2026-11-22-other.json":       `{"date": "2026-11-22", "cpu": "x", "kernels": "avx2"}`,
		"2026-11-22-x-avx2.json":      `{"date": "2026-11-22", "cpu": "x", "kernels": "avx2", "tables": [{"title": "t", "rows": [{"work": "w", "ms": 0, "peers": []}]}]}`,
		"2026-11-22-y-wasm.json":      `{"date": "2026-11-22", "cpu": "y", "kernels": "wasm", "tables": [{"title": "t", "peers": [{"name": "a"}], "rows": [{"work": "w", "ms": 1, "peers": []}]}]}`,
		"2026-11-23-unknown-key.json": `{"day": "2026-11-23"}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readFile(path); err == nil || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A later measurement of one row replaces only that row: other rows and handwritten text are unchanged.
func TestAddToTable(t *testing.T) {
	peers := []Version{{"PyTorch", "2"}}
	measured := func(work string, ms float64) Row { return Row{Work: work, Median: ms, Peers: []Figure{{Median: 1}}} }
	old := &Table{Title: "Operations", About: "by hand", Threads: 2, Peers: peers, Rows: []Row{measured("a", 1), measured("b", 2)}}
	old.add(&Table{Title: "Operations", Threads: 2, How: "later", Peers: peers, Rows: []Row{measured("a", 3), measured("c", 4)}})
	if got := []float64{old.Rows[0].Median, old.Rows[1].Median, old.Rows[2].Median}; !slices.Equal(got, []float64{3, 2, 4}) || old.About != "by hand" || old.How != "later" {
		t.Errorf("%v, %q, %q", got, old.About, old.How)
	}
	old.add(&Table{Title: "Operations", Threads: 1, Peers: peers, Rows: []Row{measured("a", 5)}})
	if len(old.Rows) != 1 || old.Threads != 1 {
		t.Errorf("%d rows with %d threads, want those of the last measurement alone", len(old.Rows), old.Threads)
	}
}
