package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// RESULTS.md must match the history, with lines of at most 120 columns outside of tables.
func TestResults(t *testing.T) {
	t.Chdir("../..")
	history, err := readHistory("bench/history")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(renderResults(history)); string(got) != want {
		t.Error("bench/RESULTS.md is not what bench/history says: go run ./bench/compare --render")
	}
	if got, err = os.ReadFile(picture); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, pictured(history).chart()) {
		t.Error("docs/performance.svg is not what bench/history says: go run ./bench/compare --render")
	}
	for line := range strings.Lines(string(renderResults(history))) {
		if !strings.HasPrefix(line, "|") && utf8.RuneCountInString(line) > 121 {
			t.Errorf("line of %d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
}

// README's ratios are those of the table that its chart shows.
func TestReadmeRatios(t *testing.T) {
	history, err := readHistory("../history")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(readme)), " ")
	rows := pictured(history).Rows
	for work, sentence := range map[string]string{
		"sdpa B1 H12 L512 E64":                " %.3g × PyTorch for 12 heads of 512 tokens",
		"additive B8 H1 L512 E128 hidden 128": " %.2g × for additive attention",
		"sdpa B1 H12 L512 E64 dropout 0.1":    " %.3g × with dropout",
	} {
		at := slices.IndexFunc(rows, func(r row) bool { return r.Work == work })
		if at < 0 || len(rows[at].Peers) == 0 {
			t.Fatalf("the newest table has no %s", work)
		}
		if want := fmt.Sprintf(sentence, rows[at].Peers[0].Ratio); !strings.Contains(text, want) {
			t.Errorf("README lacks %q", want)
		}
	}
}

func TestKind(t *testing.T) {
	for cpu, want := range map[string]string{
		"Intel(R) Xeon(R) Processor":              "intel-xeon-avx2",
		"Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz": "intel-core-i7-8700-avx2",
		"AMD EPYC 9R14 96-Core Processor":         "amd-epyc-9r14-avx2",
		"amd64":                                   "amd64-avx2",
	} {
		r := record{}
		r.CPU, r.Kernels = cpu, "avx2"
		if got := r.kind(); got != want {
			t.Errorf("%s is %s, want %s", cpu, got, want)
		}
	}
}

// A saved record is read again, another run on the same day adds to it, and the gate compares with it.
func TestSaveAndGate(t *testing.T) {
	dir := t.TempDir()
	measured := func(title string, threads int, ratio float64) (*record, *table) {
		r := newRecord()
		r.Date = "2026-11-22"
		r.Tables = []*table{{
			Title: title, Threads: threads, How: "Once.", Peers: []version{{"PyTorch", "1.2.3"}},
			Rows: []row{{Work: "gemm", Median: 2, Peers: []figure{{Median: 2 * ratio, Ratio: ratio}}}},
		}}
		return r, r.Tables[0]
	}
	for title, ratio := range map[string]float64{"Operations": 1.5, "Loading": 2} {
		r, _ := measured(title, 2, ratio)
		if err := r.save(dir); err != nil {
			t.Fatal(err)
		}
	}
	history, err := readHistory(dir)
	if err != nil || len(history) != 1 || len(history[0].Tables) != 2 {
		t.Fatalf("%d records, %v", len(history), err)
	}
	for _, c := range []struct {
		title   string
		threads int
		ratio   float64
		message string
		err     string
	}{
		{title: "Operations", threads: 2, ratio: 1.36},
		{title: "Operations", threads: 2, ratio: 1.6},
		{"Operations", 2, 1.34, "gemm: 1.34× PyTorch, 1.50× on 2026-11-22\n", errSlower.Error()},
		{"Loading", 2, 1.5, "gemm: 1.50× PyTorch, 2.00× on 2026-11-22\n", errSlower.Error()},
		{"Operations", 1, 2, "", "no measurement of Operations on "},
		{"Generation", 2, 2, "", "no measurement of Generation on "},
	} {
		r, now := measured(c.title, c.threads, c.ratio)
		var messages strings.Builder
		err := r.gate(history, now, 10, &messages)
		if messages.String() != c.message || (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%v: %q, %v", c, &messages, err)
		}
		if errors.Is(err, errSlower) != (c.message != "") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestGateFails(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history")
	if err := os.Mkdir(history, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"--rounds", "1", "--threads", "1", "--only", "gemm 512", "--history", history}
	code, _, messages := compareWith(t, "works", append(args, "--gate", "10")...)
	if code != exitFailed || !strings.Contains(messages, "no measurement of Operations on ") {
		t.Errorf("exit code %d without a history: %s", code, messages)
	}
	r := newRecord()
	r.Tables = []*table{{
		Title: "Operations", Threads: 1, How: "Once.", Peers: []version{{"PyTorch", "1"}},
		Rows: []row{{Work: "gemm 512×512×512", Median: 1, Peers: []figure{{Median: 1e6, Ratio: 1e6}}}},
	}}
	if err := r.save(history); err != nil {
		t.Fatal(err)
	}
	var o, m strings.Builder
	code = run(t.Context(), append([]string{"--python", os.Args[0], "--time", "1ms", "--gate", "10", "--save"}, args...), &o, &m)
	if code != exitSlower || !strings.Contains(m.String(), "gemm 512×512×512: ") {
		t.Errorf("exit code %d: %s", code, &m)
	}
	saved, err := readHistory(history)
	if err != nil || len(saved) != 1 || len(saved[0].Tables) != 1 || len(saved[0].Tables[0].Peers) != 2 {
		t.Errorf("saved %+v, %v", saved, err)
	}
}

func TestReadRecordRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"2026-11-22-other.json":       `{"date": "2026-11-22", "cpu": "x", "kernels": "avx2"}`,
		"2026-11-22-x-avx2.json":      `{"date": "2026-11-22", "cpu": "x", "kernels": "avx2", "tables": [{"title": "t", "rows": [{"work": "w", "ms": 0, "peers": []}]}]}`,
		"2026-11-23-unknown-key.json": `{"day": "2026-11-23"}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readRecord(path); err == nil || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A later measurement of one row replaces that row, and neither the others nor what was written by hand.
func TestAddToTable(t *testing.T) {
	peers := []version{{"PyTorch", "2"}}
	measured := func(work string, ms float64) row { return row{Work: work, Median: ms, Peers: []figure{{Median: 1}}} }
	old := &table{Title: "Operations", About: "by hand", Threads: 2, Peers: peers, Rows: []row{measured("a", 1), measured("b", 2)}}
	old.add(&table{Title: "Operations", Threads: 2, How: "later", Peers: peers, Rows: []row{measured("a", 3), measured("c", 4)}})
	if got := []float64{old.Rows[0].Median, old.Rows[1].Median, old.Rows[2].Median}; !slices.Equal(got, []float64{3, 2, 4}) || old.About != "by hand" || old.How != "later" {
		t.Errorf("%v, %q, %q", got, old.About, old.How)
	}
	old.add(&table{Title: "Operations", Threads: 1, Peers: peers, Rows: []row{measured("a", 5)}})
	if len(old.Rows) != 1 || old.Threads != 1 {
		t.Errorf("%d rows with %d threads, want those of the last measurement alone", len(old.Rows), old.Threads)
	}
}
