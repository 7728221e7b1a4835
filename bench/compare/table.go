package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/bench"
	"github.com/attn-go/attn/internal/simd"
)

// row is a task with what has come out.
type row struct {
	task
	ours   bench.Result // Median is that of all rounds
	peers  []theirs
	steady bool
}

// theirs is what came out for a peer.
type theirs struct {
	median  float64 // milliseconds
	form    string  // what it ran
	missing string  // why there is no figure
}

// cells returns the row in Markdown. The ratio is how many times longer a peer
// takes.
func (r row) cells() string {
	cells := []string{r.name, ms(r.ours.Median), r.share(r.ours)}
	for _, p := range r.peers {
		if p.missing != "" {
			cells = append(cells, "–", "–")
			continue
		}
		cells = append(cells, ms(p.median), fmt.Sprintf("%.2f×", p.median/r.ours.Median))
	}
	return "| " + strings.Join(append(cells, r.goal), " | ") + " |"
}

// ms returns milliseconds with three digits that mean something.
func ms(t float64) string {
	switch {
	case t >= 100:
		return fmt.Sprintf("%.0f", t)
	case t >= 10:
		return fmt.Sprintf("%.1f", t)
	case t >= 1:
		return fmt.Sprintf("%.2f", t)
	}
	return fmt.Sprintf("%.3f", t)
}

// writeHead writes where and how the figures are made, and the table's head.
func writeHead(w io.Writer, s settings, peers []*peer) error {
	var versions []string
	columns := []string{"work", "attn ms", "share of peak"}
	for _, p := range peers {
		versions = append(versions, p.name+" "+p.version)
		columns = append(columns, p.name+" ms", "ratio")
	}
	columns = append(columns, "target")
	_, err := fmt.Fprintf(w, `%s, %s, %s/%s with %s kernels, %d of %d processors. %s, %s.
Medians over %d rounds, in each of which every side measures for %v after the other.

| %s |
|%s
`, time.Now().Format(time.DateOnly), bench.ThisMachine().CPU, runtime.GOOS, runtime.GOARCH, simd.Implementation(), s.threads, runtime.NumCPU(),
		strings.Replace(runtime.Version(), "go", "Go ", 1), strings.Join(versions, ", "), s.rounds, s.time,
		strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	return err
}

// writeNotes writes what the peers have run, and why some figures are missing.
func writeNotes(w io.Writer, rows []row, peers []*peer) error {
	var notes strings.Builder
	notes.WriteString("\nA ratio above 1 means that attn takes less time. What the others ran:\n\n")
	if variables := held[simd.Implementation()]; variables != nil {
		fmt.Fprintf(&notes, "- with %s, which ONNX Runtime and llama.cpp do not heed\n", strings.Join(variables, ", "))
	}
	for i, p := range peers {
		work := map[string][]string{}
		var order []string
		for _, r := range rows {
			what := r.peers[i].form
			if missing := r.peers[i].missing; missing != "" {
				what = "nothing (" + missing + ")"
			}
			if work[what] == nil {
				order = append(order, what)
			}
			work[what] = append(work[what], r.name)
		}
		for _, what := range order {
			fmt.Fprintf(&notes, "- %s, %s: %s\n", p.name, what, strings.Join(work[what], "; "))
		}
	}
	var unsteady []string
	for _, r := range rows {
		if !r.steady {
			unsteady = append(unsteady, r.name)
		}
	}
	if len(unsteady) > 0 {
		fmt.Fprintf(&notes, "\nRounds of one side differed by more than a quarter, so something else ran on this machine: %s\n", strings.Join(unsteady, "; "))
	}
	_, err := io.WriteString(w, notes.String())
	return err
}
