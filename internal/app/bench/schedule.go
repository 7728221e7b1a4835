package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/par"
)

// Planned is how the work of a call is cut for a number of threads, and how long they would take if waking and
// waiting took no time, with the fields of JSON. Times are milliseconds.
type Planned struct {
	Name    string  `json:"work"`
	Threads int     `json:"threads"`
	Loops   int     `json:"loops"`
	Few     int     `json:"loops_with_too_few_chunks"`
	Chunks  int     `json:"chunks"`
	Largest float64 `json:"largest_share"` // of a chunk in the time of its loop, weighted by the time of the loops
	Serial  float64 `json:"ms_serial"`     // outside of loops
	Share   float64 `json:"serial_share"`  // of Serial in Time
	One     float64 `json:"ms_one_thread"`
	Time    float64 `json:"ms"`
	Speedup float64 `json:"speedup"`
	Machine Machine `json:"machine"`
	loops   []par.Loop
}

// Plan calls f at least five times, for about the given time, with work cut for a number of threads.
func Plan(ctx context.Context, name string, threads int, d time.Duration, f func()) (Planned, error) {
	f()
	start := time.Now()
	f()
	times := min(max(5, int(d/max(time.Since(start), 1))), 1000)
	s := par.Trace(threads, times, f)
	p := Planned{
		Name: name, Threads: threads, Loops: len(s.Loops), Few: s.Few(), Serial: milliseconds(s.Serial),
		One: milliseconds(s.Time(1)), Time: milliseconds(s.Time(threads)), Speedup: s.Speedup(threads), loops: s.Loops,
	}
	p.Share = p.Serial / p.Time
	var total, longest time.Duration
	for _, l := range s.Loops {
		p.Chunks += len(l.Chunks)
		longest += slices.Max(l.Chunks)
		total += l.Span(1)
	}
	if total > 0 {
		p.Largest = float64(longest) / float64(total)
	}
	return p, ctx.Err()
}

// Call is work whose schedule is to be shown.
type Call struct {
	Name    string
	Prepare func() func() // returns a function that does the work once
}

// Schedules writes a table with a row for each call and number of threads. Below it are lines about some kinds of loops,
// those that lose most time first.
func Schedules(ctx context.Context, t *Table, calls []Call, threads []int, d time.Duration, loops int) error {
	t.Threads = 1
	width := 0
	for _, c := range calls {
		width = max(width, utf8.RuneCountInString(c.Name))
	}
	if err := t.Begin([]Column{
		{"work", -width, 0}, {"threads", 7, 0}, {"loops", 6, 1}, {"too few", 7, 4}, {"chunks", 7, 3}, {"largest", 7, 3},
		{"serial ms", 9, 5}, {"serial", 6, 1}, {"ms on one", 9, 2}, {"ms", 9, 2}, {"speed-up", 8, 0},
	}); err != nil {
		return err
	}
	for _, c := range calls {
		f := c.Prepare()
		for _, n := range threads {
			p, err := orInterrupted(ctx, func() (Planned, error) { return Plan(ctx, c.Name, n, d, f) })
			if err == nil {
				err = t.Add(p)
			}
			if err != nil {
				return err
			}
			for _, line := range p.worst(loops) {
				if _, err := fmt.Fprintln(t.Out, "  "+line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func (p Planned) cells() []string {
	return []string{
		p.Name, fmt.Sprint(p.Threads), fmt.Sprint(p.Loops), fmt.Sprint(p.Few), fmt.Sprint(p.Chunks), fmt.Sprintf("%.1f%%", 100*p.Largest),
		fmt.Sprintf("%.4g", p.Serial), fmt.Sprintf("%.1f%%", 100*p.Share), fmt.Sprintf("%.4g", p.One), fmt.Sprintf("%.4g", p.Time),
		fmt.Sprintf("%.1f", p.Speedup),
	}
}

func (p Planned) object(m Machine) any {
	p.Machine = m
	return p
}

// worst returns lines about the loops that lose most, those with the same caller and number of chunks together: how
// much longer they take than a division without remainder.
func (p Planned) worst(most int) []string {
	type kind struct {
		caller string
		chunks int
	}
	type figures struct {
		kind
		loops      int
		span, lost time.Duration
	}
	all := map[kind]*figures{}
	for _, l := range p.loops {
		k := kind{l.Caller[strings.LastIndexByte(l.Caller, '/')+1:], len(l.Chunks)}
		if all[k] == nil {
			all[k] = &figures{kind: k}
		}
		f, span := all[k], l.Span(p.Threads)
		f.loops++
		f.span += span
		f.lost += span - l.Span(1)/time.Duration(p.Threads)
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b *figures) int { return int(b.lost - a.lost) })
	var lines []string
	for _, f := range list[:min(most, len(list))] {
		lines = append(lines, fmt.Sprintf("%s: %d of %d chunks, %.4g ms, %.4g ms longer than shared evenly",
			f.caller, f.loops, f.chunks, milliseconds(f.span), milliseconds(f.lost)))
	}
	return lines
}
