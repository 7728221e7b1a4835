package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/attn-go/attn/bench/history"
)

// RESULTS.md must match the history, with lines of at most 120 columns outside of tables.
func TestResults(t *testing.T) {
	t.Chdir("../..")
	records, err := history.Read("bench/history")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(renderResults(records)); string(got) != want {
		t.Error("bench/RESULTS.md is not what bench/history says: go run ./bench/compare --render")
	}
	if got, err = os.ReadFile(picture); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, chart(pictured(records))) {
		t.Error("docs/performance.svg is not what bench/history says: go run ./bench/compare --render")
	}
	for line := range strings.Lines(string(renderResults(records))) {
		if !strings.HasPrefix(line, "|") && utf8.RuneCountInString(line) > 121 {
			t.Errorf("line of %d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
}

// The ratios in README are the same as in the table of its chart.
func TestReadmeRatios(t *testing.T) {
	records, err := history.Read("../history")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(readme)), " ")
	_, table := pictured(records)
	rows := table.Rows
	for work, sentence := range map[string]string{
		"sdpa B1 H12 L512 E64":                " %.3g × PyTorch for 12 heads of 512 tokens",
		"additive B8 H1 L512 E128 hidden 128": " %.2g × for additive attention",
		"sdpa B1 H12 L512 E64 dropout 0.1":    " %.3g × with dropout",
	} {
		at := slices.IndexFunc(rows, func(r history.Row) bool { return r.Work == work })
		if at < 0 || len(rows[at].Peers) == 0 {
			t.Fatalf("the newest table has no %s", work)
		}
		if want := fmt.Sprintf(sentence, rows[at].Peers[0].Ratio); !strings.Contains(text, want) {
			t.Errorf("README lacks %q", want)
		}
	}
}

// A saved record is read again, another run on the same day adds to it, and the gate compares with it.
func TestSaveAndGate(t *testing.T) {
	dir := t.TempDir()
	measured := func(title string, threads int, ratio float64) (*history.Record, *history.Table) {
		r := history.New()
		r.Date = "2026-11-22"
		r.Tables = []*history.Table{{
			Title: title, Threads: threads, How: "Once.", Peers: []history.Version{{Name: "PyTorch", Version: "1.2.3"}},
			Rows: []history.Row{{Work: "gemm", Median: 2, Peers: []history.Figure{{Median: 2 * ratio, Ratio: ratio}}}},
		}}
		return r, r.Tables[0]
	}
	for title, ratio := range map[string]float64{"Operations": 1.5, "Loading": 2} {
		r, _ := measured(title, 2, ratio)
		if err := r.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	records, err := history.Read(dir)
	if err != nil || len(records) != 1 || len(records[0].Tables) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
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
		err := gate(records, r, now, 10, &messages)
		if messages.String() != c.message || (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%v: %q, %v", c, &messages, err)
		}
		if errors.Is(err, errSlower) != (c.message != "") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestGateFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"--rounds", "1", "--threads", "1", "--only", "gemm 512", "--history", dir}
	code, _, messages := compareWith(t, "works", append(args, "--gate", "10")...)
	if code != exitFailed || !strings.Contains(messages, "no measurement of Operations on ") {
		t.Errorf("exit code %d without a history: %s", code, messages)
	}
	r := history.New()
	r.Tables = []*history.Table{{
		Title: "Operations", Threads: 1, How: "Once.", Peers: []history.Version{{Name: "PyTorch", Version: "1"}},
		Rows: []history.Row{{Work: "gemm 512×512×512", Median: 1, Peers: []history.Figure{{Median: 1e6, Ratio: 1e6}}}},
	}}
	if err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	var o, m strings.Builder
	code = run(t.Context(), append([]string{"--python", os.Args[0], "--time", "1ms", "--gate", "10", "--save"}, args...), &o, &m)
	if code != exitSlower || !strings.Contains(m.String(), "gemm 512×512×512: ") {
		t.Errorf("exit code %d: %s", code, &m)
	}
	saved, err := history.Read(dir)
	if err != nil || len(saved) != 1 || len(saved[0].Tables) != 1 || len(saved[0].Tables[0].Peers) != 2 {
		t.Errorf("saved %+v, %v", saved, err)
	}
}

// A table is saved as soon as it is finished, so interrupting the next one loses nothing.
func TestSaveBeforeInterruption(t *testing.T) {
	dir := t.TempDir()
	t.Chdir("../..")
	t.Setenv("FAKE_PEER", "works")
	ctx, cancel := context.WithCancel(t.Context())
	code := run(ctx, []string{"--python", os.Args[0], "--rounds", "1", "--time", "1ms", "--threads", "1", "--history", dir, "--save",
		"--only", "gemm 512×512×512|encode MiniLM-L6 B1 L16$"}, io.Discard, writerFunc(func(line string) {
		if strings.HasPrefix(line, "2/2 encode") {
			cancel()
		}
	}))
	if code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	records, err := history.Read(dir)
	if err != nil || len(records) != 1 || len(records[0].Tables) != 1 || records[0].Tables[0].Title != "Operations" {
		t.Fatalf("saved are %d records, %v", len(records), err)
	}
}

// writerFunc is a writer that calls a function with each text.
type writerFunc func(text string)

func (f writerFunc) Write(b []byte) (int, error) {
	f(string(b))
	return len(b), nil
}

// The axis has room for every ratio.
func TestAxis(t *testing.T) {
	for _, c := range []struct {
		ratios      []float64
		least, most float64
	}{
		{nil, 1, 2}, {[]float64{0.5, 64}, 0.5, 64}, {[]float64{0.49, 64.1}, 0.25, 128}, {[]float64{3, 0}, 1, 4},
	} {
		table := &history.Table{}
		for _, x := range c.ratios {
			table.Rows = append(table.Rows, history.Row{Work: "w", Peers: []history.Figure{{Ratio: x}}})
		}
		if least, most := axis(table); least != c.least || most != c.most {
			t.Errorf("%v: %v to %v, want %v to %v", c.ratios, least, most, c.least, c.most)
		}
	}
}
