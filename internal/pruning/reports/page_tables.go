package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// compareTable is the model before and after.
type compareTable struct {
	Pruned  bool // there is a column for the model without its fine-tuning
	Control bool // and one for the whole model with it
	Rows    []compareRow
}

type compareRow struct {
	Name, Before, Pruned, After, Change, Control string

	Interval string // of the change
	Main     bool
}

func (r *Report) compareTable() compareTable {
	res := &r.Result
	t := compareTable{Pruned: res.Pruned != nil, Control: res.Control != nil}
	pruned := Unknown()
	control := pruned
	if t.Pruned {
		pruned = *res.Pruned
	}
	if t.Control {
		control = *res.Control
	}
	add := func(name string, of func(Quality) Number, decimals int) {
		b, p, a := of(res.Before), of(pruned), of(res.After)
		if b.Known() || a.Known() {
			t.Rows = append(t.Rows, compareRow{Name: name, Before: fixed(b, decimals), Pruned: fixed(p, decimals), After: fixed(a, decimals), Change: signed(a-b, decimals), Control: fixed(of(control), decimals)})
		}
	}
	whole := func(name string, b, p, a, c int) {
		if b > 0 {
			t.Rows = append(t.Rows, compareRow{Name: name, Before: quote.Count(b), Pruned: quote.Count(p), After: quote.Count(a), Change: signed(Number(100*float64(a-b)/float64(b)), 0) + "%", Control: quote.Count(c)})
		}
	}
	unit := ""
	if r.Settings.Unit != "" {
		unit = ", " + r.Settings.Unit
	}
	main := r.metricName() + unit
	if r.Settings.Lower {
		main += ", " + r.lossUnit()
	}
	add(main, func(q Quality) Number { return q.Metric }, r.digits())
	if len(t.Rows) > 0 {
		t.Rows[0].Main = true
		if res.Low.Known() && res.High.Known() {
			t.Rows[0].Interval = between(res.Low, res.High, signed, r.digits())
		}
	}
	for _, n := range res.Before.Others {
		name := n.Name
		if n.Unit != "" {
			name += ", " + n.Unit
		}
		add(name, func(q Quality) Number { return q.other(n.Name) }, 1)
	}
	if !r.Settings.Lower {
		add("loss, "+r.lossUnit(), func(q Quality) Number { return q.Loss }, 3)
	}
	add("KL from the whole model", func(q Quality) Number { return q.KL }, 3)
	whole("heads", r.heads(), res.Left, res.Left, r.heads())
	whole("parameters", res.Before.Parameters, pruned.Parameters, res.After.Parameters, control.Parameters)
	return t
}

// kindRow says how many heads a kind of attention lost.
type kindRow struct {
	Kind                      string
	Layers, Heads, Lost, Left int
	Share                     string
	Bar                       int // of the heads that are left, in 24ths
}

const barSteps = 24

func (r *Report) kindRows() (rows []kindRow, emptied []string) {
	names, layers := r.kinds()
	total := kindRow{Kind: "all"}
	for _, kind := range names {
		row := kindRow{Kind: kind, Layers: len(layers[kind])}
		for _, i := range layers[kind] {
			l := &r.Layers[i]
			row.Heads += l.Heads
			row.Lost += l.lost()
			if l.Heads > 0 && l.lost() == l.Heads {
				emptied = append(emptied, l.Name)
			}
		}
		rows = append(rows, row)
		total.Layers, total.Heads, total.Lost = total.Layers+row.Layers, total.Heads+row.Heads, total.Lost+row.Lost
	}
	if len(rows) > 1 {
		rows = append(rows, total)
	}
	for i := range rows {
		row := &rows[i]
		row.Left = row.Heads - row.Lost
		if row.Heads > 0 {
			row.Share = fixed(Number(100*float64(row.Lost)/float64(row.Heads)), 0) + "%"
			row.Bar = (barSteps*row.Left + row.Heads/2) / row.Heads
		}
	}
	return rows, emptied
}

// methodTable compares methods.
type methodTable struct {
	At   string // what the last column holds; "" if there is none
	Rows []methodRow
}

type methodRow struct {
	Name, Rank, Passes, Time string
	At, Interval             string
	Chosen                   bool
}

func (r *Report) methodTable() (t methodTable) {
	left := r.Result.Left
	at := fmt.Sprintf("%s with %s left", r.metricName(), quote.Counted(left, "head", "heads"))
	if simpler := r.simpler(); simpler != "" {
		at += ", " + simpler
	}
	for i := range r.Scores {
		s := &r.Scores[i]
		row := methodRow{Name: s.Method, Rank: fixed(s.Rank, 2), Passes: strings.TrimSuffix(fixed(Number(s.Passes), 1), ".0"), Time: lasted(s.Seconds), At: none, Chosen: s.Method == r.Result.Method}
		if p := r.curve(s.Method).at(left); p != nil {
			row.At = fixed(p.Metric, r.digits())
			t.At = at
		}
		t.Rows = append(t.Rows, row)
	}
	if p := r.Random.at(left); p != nil && p.Metric.Mean.Known() && len(t.Rows) > 0 {
		t.At = at
		t.Rows = append(t.Rows, methodRow{Name: "random, mean and 95%", Rank: none, Passes: "0", Time: none,
			At: fixed(p.Metric.Mean, r.digits()), Interval: between(p.Metric.Low, p.Metric.High, fixed, r.digits())})
	}
	return t
}

type speedRow struct {
	Work                                          string
	Batch, Length                                 int
	Before, After, Ratio, Interval, Bound, Gained string
	Result                                        bool // the interval excludes 1
}

func (r *Report) speedRows() (rows []speedRow) {
	for _, s := range r.Speed {
		row := speedRow{Work: s.Work, Batch: s.Batch, Length: s.Length, Before: three(s.Before), After: three(s.After),
			Ratio: fixed(s.Ratio, 2), Interval: between(s.Low, s.High, fixed, 2), Bound: fixed(s.Bound, 2), Gained: fixed(s.gained(), 0), Result: s.result()}
		if row.Gained != none {
			row.Gained += "%"
		}
		rows = append(rows, row)
	}
	return rows
}

// curveTable is all points of a curve.
type curveTable struct {
	Name string
	Head []string
	Rows [][]string
}

func (r *Report) curveTables() (list []curveTable) {
	metric, d := r.metricName(), r.digits()
	add := func(t curveTable, lossAt []int) {
		if r.Settings.Lower { // the metric is the loss
			for i := len(lossAt) - 1; i >= 0; i-- {
				t.Head = slices.Delete(t.Head, lossAt[i], lossAt[i]+1)
				for j := range t.Rows {
					t.Rows[j] = slices.Delete(t.Rows[j], lossAt[i], lossAt[i]+1)
				}
			}
		}
		if t.Rows != nil {
			list = append(list, t)
		}
	}
	for _, c := range r.Curves {
		t := curveTable{Name: c.Name, Head: []string{"heads left", metric, "difference, 95%", "loss", "KL"}}
		for _, p := range c.Points {
			t.Rows = append(t.Rows, []string{quote.Count(p.Left), fixed(p.Metric, d+1), between(p.Low, p.High, signed, d), fixed(p.Loss, 4), fixed(p.KL, 4)})
		}
		add(t, []int{3})
	}
	t := curveTable{
		Name: quote.Counted(r.Random.Orders, "random order", "random orders"),
		Head: []string{"heads left", metric, "95%", "all", "loss", "95%", "KL", "95%"},
	}
	for _, p := range r.Random.Points {
		m, l, k := p.Metric, p.Loss, p.KL
		t.Rows = append(t.Rows, []string{quote.Count(p.Left),
			fixed(m.Mean, d), between(m.Low, m.High, fixed, d), between(m.Min, m.Max, fixed, d),
			fixed(l.Mean, 3), between(l.Low, l.High, fixed, 3), fixed(k.Mean, 3), between(k.Low, k.High, fixed, 3)})
	}
	add(t, []int{4, 5})
	return list
}

// between writes an interval, as far as it is known.
func between(low, high Number, write func(Number, int) string, decimals int) string {
	if !low.Known() || !high.Known() {
		return none
	}
	return write(low, decimals) + " to " + write(high, decimals)
}
