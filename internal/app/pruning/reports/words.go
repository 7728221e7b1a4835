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
	"time"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/quote"
)

// none is written for a value that was not measured.
const none = "–"

// functions are the functions that templates call, in addition to methods of a report.
var functions = map[string]any{
	"fixed": fixed, "signed": signed, "three": three, "between": between(fixed), "betweenSigned": between(signed),
	"lasted": lasted, "faster": faster, "moment": moment, "count": quote.Count, "counted": quote.Counted, "quoted": quote.Name,
	"minus":    func(text string) string { return strings.ReplaceAll(text, "-", "−") },
	"add":      func(a, b int) int { return a + b },
	"less":     func(a, b Number) Number { return a - b },
	"passes":   func(n float64) string { return strings.TrimSuffix(fixed(Number(n), 1), ".0") },
	"join":     strings.Join,
	"singular": func(name string) string { return strings.TrimSuffix(name, "s") },
	"capital":  func(text string) string { return strings.ToUpper(text[:1]) + text[1:] },
	"facts":    newFacts,
	"choose": func(which bool, yes, no string) string {
		if which {
			return yes
		}
		return no
	},
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

// lasted writes a duration.
func lasted(seconds float64) string {
	switch {
	case !Number(seconds).Known():
		return none
	case seconds < 1:
		return fixed(Number(seconds), 2) + " s"
	case seconds < 10:
		return fixed(Number(seconds), 1) + " s"
	case seconds < 60:
		return fixed(Number(seconds), 0) + " s"
	case seconds < 3600:
		whole := int(math.Round(seconds))
		return fmt.Sprintf("%d min %d s", whole/60, whole%60)
	}
	whole := int(min(math.Round(seconds/60), 1e9))
	return fmt.Sprintf("%d h %d min", whole/60, whole%60)
}

// moment writes a time of RFC 3339 for people. It does not change other texts.
func moment(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.Format("2 January 2006, 15:04 MST")
}

// superscript writes an exponent.
func superscript(n int) string {
	digits := []rune("⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
	return strings.Map(func(c rune) rune { return digits[strings.IndexRune("-0123456789", c)] }, strconv.Itoa(n))
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

// VerdictLines returns the verdict as lines for a terminal.
func (r *Report) VerdictLines() ([]string, error) {
	text, err := r.Verdict()
	return cells.Lines(strings.Fields(quote.Name(text)), " ", summaryWidth), err
}

// Summary writes the main results: the verdict, some points of the curve beside those of random
// orders, the speed, and the paths of all files.
func (r *Report) Summary(w io.Writer) error {
	text, err := r.say("summary")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, trailing.ReplaceAllString(text, ""))
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

// SummaryRows returns some points of the main curve. If the pruned model is not one of them, because it was made in
// another way, its row is above them.
func (r *Report) SummaryRows(points []Point) (rows []summaryRow) {
	few, others := r.FewPoints(points), r.Simpler()
	if r.Made() != nil {
		if others = ""; r.Settings.FineTune > 0 {
			others = "without fine-tuning"
		}
	}
	on := others == "" && slices.ContainsFunc(few, func(p Point) bool { return p.Left == r.Result.Left })
	if p := r.Result; !on {
		after := Point{Left: p.Left, Metric: p.After.Metric, Loss: p.After.Loss, KL: p.After.KL, Low: p.Low, High: p.High}
		rows = append(rows, summaryRow{Point: after, Pruned: true})
	}
	for i, p := range few {
		row := summaryRow{Point: p, Pruned: on && p.Left == r.Result.Left, Comparable: p.Left != r.Heads()}
		if i == 0 && !on {
			row.Above = strings.TrimSpace("other models "+others) + ":"
		}
		rows = append(rows, row)
	}
	return rows
}

// FewPoints returns five points of a curve in their order: the first, the last, the one whose
// number of heads is nearest to the result's, and points that fill the largest gaps.
func (r *Report) FewPoints(points []Point) []Point {
	const n = 5
	if len(points) <= n {
		return points
	}
	near := 0
	far := func(i int) int { return max(points[i].Left-r.Result.Left, r.Result.Left-points[i].Left) }
	for i := range points {
		if far(i) < far(near) {
			near = i
		}
	}
	chosen := []int{0, near, len(points) - 1}
	for slices.Sort(chosen); ; slices.Sort(chosen) {
		chosen = slices.Compact(chosen)
		if len(chosen) >= n {
			break
		}
		widest := 1
		for i := 2; i < len(chosen); i++ {
			if chosen[i]-chosen[i-1] > chosen[widest]-chosen[widest-1] {
				widest = i
			}
		}
		chosen = append(chosen, (chosen[widest]+chosen[widest-1])/2)
	}
	few := make([]Point, len(chosen))
	for i, at := range chosen {
		few[i] = points[at]
	}
	return few
}

// Use returns how to load a model: a command and a line of Go.
func (r *Report) Use(dir string) string {
	command := "translate"
	if r.Model.Task != "" && r.Model.Task != "translation" {
		command = "view"
	}
	return fmt.Sprintf("attn %s --model %s \"…\"\nm, err := models.Load(%q, models.Options{})", command, quote.Shell(dir), dir)
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

// Repaired describes what was done to the model after heads had been removed.
func (r *Report) Repaired() string {
	switch s := r.Settings; {
	case s.Compensate == "":
		return "fine-tuned"
	case s.FineTune == 0:
		return "compensated"
	}
	return "compensated, fine-tuned"
}

// WorseThanChance says where a curve is worse than the mean of random orders, by
// more than the 95% interval of that mean. It is empty if the curve is never worse. Of several
// ranges it names the one with the largest loss.
func (r *Report) WorseThanChance(curve string) string {
	c := r.Curve(curve)
	if c == nil || r.Random.Orders < 2 {
		return ""
	}
	d, most, worst := r.Digits(), Number(0), ""
	for i := 0; i < len(c.Points); i++ {
		from, largest := i, Number(0)
		for ; i < len(c.Points); i++ {
			by := r.loss(c.Points[i])
			if by == 0 {
				break
			}
			largest = max(largest, by)
		}
		if largest <= most {
			continue
		}
		first := c.Points[from]
		where := fmt.Sprintf("with %d to %d heads left", first.Left, c.Points[i-1].Left)
		switch {
		case i == from+1:
			where = fmt.Sprintf("with %s left", quote.Counted(first.Left, "head", "heads"))
		case i == len(c.Points) && c != r.Made(): // that one ends at the result
			where = fmt.Sprintf("with %d or fewer heads left", first.Left)
		}
		if simpler := r.Simpler(); simpler != "" && c != r.Made() {
			where = simpler + ", " + where
		}
		most, worst = largest, fmt.Sprintf("%s, %s is worse than random orders: %s against %s%s",
			where, curve, fixed(first.Metric, d), fixed(r.Random.At(first.Left).Metric.Mean, d), r.Unit())
	}
	return worst
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

// WorseMethods returns WorseThanChance of the curves other than the main one.
func (r *Report) WorseMethods() (list []string) {
	for i := range r.Curves {
		if name, reversed := r.Curves[i].ordered(); !reversed && &r.Curves[i] != r.Main() {
			if worse := r.WorseThanChance(name); worse != "" {
				list = append(list, worse)
			}
		}
	}
	return list
}
