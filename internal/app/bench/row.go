package bench

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/attn-go/attn/tensor"
)

// Columns returns the columns for results of work.
func Columns(list []Work) []Column {
	width, besides, rank := 0, len("besides"), 1 // extra values of all rows are important columns
	for _, w := range list {
		width = max(width, utf8.RuneCountInString(w.Name()))
		switch {
		case w.CacheBytes() > 0:
			besides = max(besides, len("00.0 GB/s of 00.0 GB/s, 00.0%"))
		case w.Triples() > 0:
			besides = max(besides, len("00.00 G triples/s"))
		default:
			rank = 5
		}
	}
	return []Column{
		{"work", -width, 0}, {"ms median", 9, 0}, {"min", 9, 2}, {"max", 9, 2},
		{"GFLOP/s", 7, 1}, {"peak", 7, 4}, {"share", 6, 1}, {"bytes", 9, 3}, {"besides", -besides, rank},
	}
}

func (r Result) cells() []string {
	besides := ""
	switch {
	case r.GTriples() > 0:
		besides = fmt.Sprintf("%.2f G triples/s", r.GTriples())
	case r.PeakReadGBps > 0:
		besides = fmt.Sprintf("%.1f GB/s of %.1f GB/s, %.1f%%", r.ReadGBps(), r.PeakReadGBps, 100*r.ReadShare())
	case r.ReadGBps() > 0:
		besides = fmt.Sprintf("%.1f GB/s", r.ReadGBps())
	}
	number := func(format string, x float64) string { return fmt.Sprintf(format, x) }
	return []string{
		r.Work.Name(), number("%.4g", r.Median), number("%.4g", r.Min), number("%.4g", r.Max), number("%.1f", r.GFLOPS()),
		number("%.1f", r.PeakGFLOPS), number("%.1f%%", 100*r.PeakShare()), number("%.0f", r.Bytes), besides,
	}
}

// object returns the JSON object. Fields declared here replace fields of the work, to omit those that do not apply.
func (r Result) object(m Machine) any {
	o := struct {
		Work
		Causal       *bool          `json:"causal,omitempty"`
		Mask         *string        `json:"mask,omitempty"`
		Dropout      *float64       `json:"dropout,omitempty"`
		Weights      *bool          `json:"weights,omitempty"`
		Storage      *tensor.Format `json:"storage,omitempty"`
		Threads      int            `json:"threads"`
		Median       float64        `json:"ms_median"`
		Min          float64        `json:"ms_min"`
		Max          float64        `json:"ms_max"`
		GFLOPS       float64        `json:"gflops"`
		PeakGFLOPS   float64        `json:"peak_gflops"`
		PeakShare    float64        `json:"peak_share"`
		Bytes        float64        `json:"bytes_per_op"`
		GTriples     float64        `json:"gtriples,omitempty"`
		ReadGBps     float64        `json:"read_gbps,omitempty"`
		PeakReadGBps float64        `json:"peak_read_gbps,omitempty"`
		ReadShare    float64        `json:"read_share,omitempty"`
		Machine      Machine        `json:"machine"`
	}{
		Work: r.Work, Threads: r.Threads, Machine: m, Median: r.Median, Min: r.Min, Max: r.Max, Bytes: r.Bytes,
		GFLOPS: r.GFLOPS(), PeakGFLOPS: r.PeakGFLOPS, PeakShare: r.PeakShare(), GTriples: r.GTriples(),
		ReadGBps: r.ReadGBps(), PeakReadGBps: r.PeakReadGBps,
	}
	if r.Work.Takes("causal") {
		o.Causal, o.Mask, o.Weights = &r.Work.Causal, &r.Work.Mask, &r.Work.Weights
	}
	if r.Work.Takes("dropout") {
		o.Dropout = &r.Work.Dropout
	}
	if r.Work.Takes("storage") {
		o.Storage = &r.Work.Storage
	}
	if r.PeakReadGBps > 0 {
		o.ReadShare = r.ReadShare()
	}
	return o
}

// PairColumns returns the columns for comparisons.
func PairColumns(pairs []Pair) []Column {
	work, base := 0, 0
	for _, p := range pairs {
		work = max(work, utf8.RuneCountInString(p.Work.Name()))
		base = max(base, utf8.RuneCountInString(p.Base.Name()))
	}
	return []Column{
		{"work", -work, 0}, {"ms", 9, 4}, {"against", -base, 5}, {"ms", 9, 5}, {"per", -len(PerTile), 6},
		{"ratio", 6, 0}, {"quartiles", 11, 2}, {"speed", 6, 3}, {"at most", 7, 1}, {"", -6, 1},
	}
}

func (c Comparison) cells() []string {
	most, missed := "", ""
	if c.Most > 0 {
		most = fmt.Sprintf("%.2f", c.Most)
	}
	if c.Missed {
		missed = "missed"
	}
	return []string{
		c.Work, digits(c.Time), c.Against, digits(c.BaseTime), string(c.Per),
		fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.2f to %.2f", c.Low, c.High), fmt.Sprintf("%.0f%%", 100/c.Ratio),
		most, missed,
	}
}

func (c Comparison) object(m Machine) any {
	c.Machine = m
	return c
}

// digits returns x with three significant digits, without decimals after these.
func digits(x float64) string {
	if !(x > 0) || math.IsInf(x, 0) {
		return fmt.Sprint(x)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(x)))), x)
}
