package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/quote"
)

// none is written for a value that was not measured.
const none = "–"

// functions are the functions that templates call, in addition to methods of a report.
var functions = map[string]any{
	"fixed": fixed, "signed": signed, "three": three, "between": between(fixed), "betweenSigned": between(signed),
	"faster": faster, "count": quote.Count, "counted": quote.Counted, "quoted": quote.Name,
	"less":    func(a, b Number) Number { return a - b },
	"capital": func(text string) string { return strings.ToUpper(text[:1]) + text[1:] },
}

// fixed writes a number with the given decimals and a true minus sign.
func fixed(v Number, decimals int) string {
	if !v.Known() {
		return none
	}
	text := strconv.FormatFloat(float64(v), 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return strings.ReplaceAll(text, "-", "−")
}

// signed is fixed with a sign for positive numbers too.
func signed(v Number, decimals int) string {
	text := fixed(v, decimals)
	if v > 0 && strings.Trim(text, "0.") != "" && v.Known() {
		return "+" + text
	}
	return text
}

// between returns a function that writes an interval if it is known.
func between(write func(v Number, decimals int) string) func(low, high Number, decimals int) string {
	return func(low, high Number, decimals int) string {
		if !low.Known() || !high.Known() {
			return none
		}
		return write(low, decimals) + " to " + write(high, decimals)
	}
}

// faster writes a ratio of speeds in words.
func faster(ratio float64) string {
	if ratio >= 2 {
		return fixed(Number(ratio), 2) + " × as fast"
	}
	percent, word := 100*math.Abs(ratio-1), "faster"
	if ratio < 1 {
		word = "slower"
	}
	if percent < 0.95 {
		return fixed(Number(percent), 1) + "% " + word
	}
	return fixed(Number(percent), 0) + "% " + word
}

// three writes a number with about three digits.
func three(v Number) string {
	switch size := math.Abs(float64(v)); {
	case !v.Known():
		return none
	case size >= 100:
		return quote.Count(int(math.Round(float64(v))))
	case size >= 10:
		return fixed(v, 1)
	case size >= 1:
		return fixed(v, 2)
	}
	return fixed(v, 3)
}

// summaryWidth is the width of an ordinary terminal.
const summaryWidth = 80

//go:embed report.txt
var reportTexts string

var texts = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("texts").Funcs(functions).Parse(reportTexts))
})

// say executes a template of report.txt.
func (r *Report) say(name string) (string, error) {
	var b bytes.Buffer
	err := texts().ExecuteTemplate(&b, name, r)
	return b.String(), err
}

// Verdict describes the result in one sentence, and in another if random orders are better.
func (r *Report) Verdict() (string, error) { return r.say("verdict") }

// Numbers returns the curve beside random orders, the speed, and the paths of all files.
func (r *Report) Numbers() (string, error) {
	text, err := r.say("numbers")
	return strings.Trim(trailing.ReplaceAllString(text, ""), "\n"), err
}

// Summary writes the verdict and the numbers.
func (r *Report) Summary(w io.Writer) error {
	verdict, err := r.Verdict()
	if err != nil {
		return err
	}
	lines := cells.Lines(strings.Fields(quote.Name(verdict)), " ", summaryWidth)
	numbers, err := r.Numbers()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n\n%s\n", strings.Join(lines, "\n"), numbers)
	return err
}

var trailing = regexp.MustCompile(`(?m) +$`)

// summaryRow is a row of the summary's table.
type summaryRow struct {
	Point
	Pruned     bool   // the pruned model
	Comparable bool   // with random orders of as many heads
	Above      string // a line above the row
}

// SummaryRows returns the points of the main curve. If the pruned model is not one of them, because it was made in
// another way, its row is above them.
func (r *Report) SummaryRows() (rows []summaryRow) {
	points, others := r.Main().Points, r.Simpler()
	if r.Made() != nil {
		if others = ""; r.Settings.FineTune > 0 {
			others = "without fine-tuning"
		}
	}
	on := others == "" && slices.ContainsFunc(points, func(p Point) bool { return p.Left == r.Result.Left })
	if p := r.Result; !on {
		after := Point{Left: p.Left, Metric: p.After.Metric, Loss: p.After.Loss, KL: p.After.KL, Low: p.Low, High: p.High}
		rows = append(rows, summaryRow{Point: after, Pruned: true})
	}
	for i, p := range points {
		row := summaryRow{Point: p, Pruned: on && p.Left == r.Result.Left, Comparable: p.Left != r.Model.Heads}
		if i == 0 && !on {
			row.Above = strings.TrimSpace("other models "+others) + ":"
		}
		rows = append(rows, row)
	}
	return rows
}

// Simpler describes how the models of the curves were made if they differ from the result: their
// heads were removed in one order, with mean outputs as the only compensation, and without training. Otherwise it is empty.
func (r *Report) Simpler() string {
	var how []string
	if r.Settings.Step > 0 {
		how = append(how, "with heads scored once")
	}
	if r.Settings.Compensate != "" {
		how = append(how, "with mean outputs for removed heads where layers have a bias")
	}
	if r.Settings.FineTune > 0 {
		how = append(how, "without fine-tuning")
	}
	return strings.Join(how, " and ")
}

// WorseThanChance says where the main curve is worse than the mean of random orders by more than the 95% interval of
// that mean: where the difference is largest. It is empty if the curve is never worse.
func (r *Report) WorseThanChance() string {
	c := r.Main()
	if c == nil || r.Random.Orders < 2 {
		return ""
	}
	most, worst := Number(0), Point{}
	for _, p := range c.Points {
		if by := r.loss(p); by > most {
			most, worst = by, p
		}
	}
	if most == 0 {
		return ""
	}
	where := fmt.Sprintf("with %s left", quote.Counted(worst.Left, "head", "heads"))
	if simpler := r.Simpler(); simpler != "" && c != r.Made() {
		where = simpler + ", " + where
	}
	return fmt.Sprintf("%s, %s is worse than random orders: %s against %s%s", where, c.Name,
		fixed(worst.Metric, r.Digits()), fixed(r.Random.At(worst.Left).Metric.Mean, r.Digits()), r.Unit())
}

// loss returns how much worse a point is than the mean of random orders. It is 0 within the 95%
// interval of that mean.
func (r *Report) loss(p Point) Number {
	at := r.Random.At(p.Left)
	if at == nil || !p.Metric.Known() || !at.Metric.Mean.Known() {
		return 0
	}
	by := at.Metric.Mean - p.Metric
	if r.Settings.Lower {
		by = -by
	}
	if uncertain := (at.Metric.High - at.Metric.Low) / 2 / Number(math.Sqrt(float64(r.Random.Orders))); !(by > uncertain) {
		return 0
	}
	return by
}
