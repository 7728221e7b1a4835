package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/bench"
)

// runRatios is Run for work that is held against other work.
func (cmd *benchCommand) runRatios(ctx context.Context, c console, list []bench.Work, threads int, machine bench.Machine, format tableFormat) error {
	pairs := bench.Features()
	if cmd.Op != nil {
		p, err := bench.Against(list[0])
		if err != nil {
			return usage("--ratios: %w", err)
		}
		pairs = []bench.Pair{p}
	}
	t := newTable(c.out, format, machine, threads, ratioColumns(pairs))
	if !cmd.JSON {
		if err := t.begin(); err != nil {
			return err
		}
	}
	for _, p := range pairs {
		r, err := bench.Compare(ctx, p, threads, cmd.Time)
		if err != nil {
			return err
		}
		if cmd.JSON {
			err = json.NewEncoder(c.out).Encode(newRatioResult(r, machine))
		} else {
			err = t.row(ratioCells(r))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ratioResult is a bench.Comparison in the form for programs.
type ratioResult struct {
	Work    string  `json:"work"`
	Against string  `json:"against"`
	Per     string  `json:"per"`
	Threads int     `json:"threads"`
	Rounds  int     `json:"rounds"`
	Time    float64 `json:"ms"`
	Base    float64 `json:"ms_against"`
	Ratio   float64 `json:"ratio"`
	Low     float64 `json:"ratio_low"`
	High    float64 `json:"ratio_high"`
	Speed   float64 `json:"speed"`
	Most    float64 `json:"ratio_most,omitempty"`
	Missed  bool    `json:"missed"`

	Machine bench.Machine `json:"machine"`
}

func newRatioResult(r bench.Comparison, machine bench.Machine) ratioResult {
	return ratioResult{
		Work: r.Work.Name(), Against: r.Base.Name(), Per: string(r.Per), Threads: r.Threads, Rounds: r.Rounds,
		Time: r.Time, Base: r.BaseTime, Ratio: r.Ratio, Low: r.Low, High: r.High, Speed: 1 / r.Ratio,
		Most: r.Most, Missed: r.Missed(), Machine: machine,
	}
}

// ratioColumns returns the head of the table.
func ratioColumns(pairs []bench.Pair) []tableColumn {
	work, base := 0, 0
	for _, p := range pairs {
		work = max(work, utf8.RuneCountInString(p.Work.Name()))
		base = max(base, utf8.RuneCountInString(p.Base.Name()))
	}
	return []tableColumn{
		{"work", -work, 0}, {"ms", 9, 4}, {"against", -base, 5}, {"ms", 9, 5}, {"per", -len(bench.PerTile), 6},
		{"ratio", 6, 0}, {"quartiles", 11, 2}, {"speed", 6, 3}, {"at most", 7, 1}, {"", -6, 1},
	}
}

// ratioCells returns a row of the table.
func ratioCells(r bench.Comparison) []string {
	most, missed := "", ""
	if r.Most > 0 {
		most = fmt.Sprintf("%.2f", r.Most)
	}
	if r.Missed() {
		missed = "missed"
	}
	return []string{
		r.Work.Name(), digits(r.Time), r.Base.Name(), digits(r.BaseTime), string(r.Per),
		fmt.Sprintf("%.2f", r.Ratio), fmt.Sprintf("%.2f to %.2f", r.Low, r.High), fmt.Sprintf("%.0f%%", 100/r.Ratio), most, missed,
	}
}

// digits returns x with three digits that mean something, and none behind these.
func digits(x float64) string {
	if !(x > 0) || math.IsInf(x, 0) {
		return fmt.Sprint(x)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(x)))), x)
}
