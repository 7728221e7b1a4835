package reports

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/quote"
)

// none is written for what was not measured.
const none = "–"

// fixed writes a number with so many decimals, and a true minus.
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

// signed is fixed with a sign, + too.
func signed(v Number, decimals int) string {
	text := fixed(v, decimals)
	if v > 0 && strings.Trim(text, "0.") != "" && v.Known() {
		return "+" + text
	}
	return text
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

// lasted writes a time.
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

// moment writes a time of RFC 3339 for people; what is none stays as it is.
func moment(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.Format("2 January 2006, 15:04 MST")
}

// superscript writes an exponent.
func superscript(n int) string {
	var text string
	for _, c := range fmt.Sprint(n) {
		if c == '-' {
			text += "⁻"
		} else {
			text += string([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[c-'0'])
		}
	}
	return text
}

// heads returns how many heads the whole model has.
func (r *Report) heads() int {
	if r.Model.Heads > 0 {
		return r.Model.Heads
	}
	n := 0
	for _, l := range r.Layers {
		n += l.Heads
	}
	return n
}

func (r *Report) metricName() string { return cmp.Or(r.Settings.Metric, "metric") }

// unit follows metrics where no head of a table names it.
func (r *Report) unit() string {
	if r.Settings.Unit == "%" {
		return "%"
	}
	return ""
}

// digits is how many decimals the metric has: hundredths of a loss matter.
func (r *Report) digits() int {
	if r.Settings.Lower {
		return 3
	}
	return 1
}

// possible holds a number within what the metric can be: the interval of a difference may
// reach beyond.
func (r *Report) possible(n Number) Number {
	n = max(n, Number(r.Settings.Least))
	if r.Settings.Lower {
		return n
	}
	return min(n, 100)
}

func (r *Report) lossUnit() string { return cmp.Or(r.Settings.LossUnit, "nats per token") }

// divergenceUnit is that of the KL divergence, of the same things as the loss.
func (r *Report) divergenceUnit() string {
	if strings.HasPrefix(r.lossUnit(), "nats") {
		return "KL, " + r.lossUnit()
	}
	return "KL, nats"
}

// items returns a number of what the data are counted in.
func (r *Report) items(n int) string {
	name := r.itemsName()
	return quote.Counted(n, strings.TrimSuffix(name, "s"), name)
}

func (r *Report) itemsName() string { return cmp.Or(r.Data.Items, "sources") }

// harm returns how much worse the model may be by its interval: 0 or less if it is better.
func (r *Report) harm() Number {
	if r.Settings.Lower {
		return r.Result.High
	}
	return -r.Result.Low
}

// verdict says in one sentence what came of it, and in another where chance does better.
func (r *Report) verdict() string {
	parts := []string{r.verdictQuality()}
	if len(r.Result.Removed) > 0 {
		if s := r.verdictSpeed(); s != "" {
			parts = append(parts, s)
		}
		before, after := r.Result.Before.Parameters, r.Result.After.Parameters
		if before > 0 && after > 0 && after < before {
			parts = append(parts, fixed(Number(100*float64(before-after)/float64(before)), 0)+"% fewer parameters")
		}
	}
	text := strings.Join(parts, ", ")
	if worse := r.worseThanChance(r.Result.Method); worse != "" {
		text += ". " + strings.ToUpper(worse[:1]) + worse[1:]
	}
	return text
}

// worseThanChance says where the curve of a method is worse than the mean of random orders, by
// more than the 95% interval of that mean; empty where it is nowhere. Of several stretches
// it is that of the largest loss.
func (r *Report) worseThanChance(method string) string {
	c := r.curve(method)
	if c == nil || r.Random.Orders < 2 {
		return ""
	}
	loses := func(p Point) (by, mean Number) {
		at := r.Random.at(p.Left)
		if at == nil || !p.Metric.Known() || !at.Metric.Mean.Known() {
			return 0, 0
		}
		by, mean = at.Metric.Mean-p.Metric, at.Metric.Mean
		if r.Settings.Lower {
			by = -by
		}
		if uncertain := (at.Metric.High - at.Metric.Low) / 2 / Number(math.Sqrt(float64(r.Random.Orders))); !(by > uncertain) {
			return 0, 0
		}
		return by, mean
	}
	d, most, worst := r.digits(), Number(0), ""
	for i := 0; i < len(c.Points); i++ {
		from, largest := i, Number(0)
		for ; i < len(c.Points); i++ {
			by, _ := loses(c.Points[i])
			if by == 0 {
				break
			}
			largest = max(largest, by)
		}
		if largest <= most {
			continue
		}
		where := fmt.Sprintf("with %d to %d heads left", c.Points[from].Left, c.Points[i-1].Left)
		switch {
		case i == from+1:
			where = fmt.Sprintf("with %s left", quote.Counted(c.Points[from].Left, "head", "heads"))
		case i == len(c.Points):
			where = fmt.Sprintf("from %d heads left on", c.Points[from].Left)
		}
		if simpler := r.simpler(); simpler != "" {
			where = simpler + ", " + where
		}
		_, mean := loses(c.Points[from])
		most, worst = largest, fmt.Sprintf("%s, %s is worse than random orders: %s against %s%s", where, method, fixed(c.Points[from].Metric, d), fixed(mean, d), r.unit())
	}
	return worst
}

func (r *Report) verdictQuality() string {
	removed := len(r.Result.Removed)
	if removed == 0 {
		return fmt.Sprintf("None of the %d heads was removed: %s stays %s%s", r.heads(), r.metricName(), fixed(r.Result.Before.Metric, r.digits()), r.unit())
	}
	by := ""
	if r.Result.Method != "" {
		by = " by " + r.Result.Method
	}
	if r.Settings.FineTune > 0 {
		by += " and fine-tuned"
	}
	text := fmt.Sprintf("%d of %d heads removed%s", removed, r.heads(), by)
	before, after := r.Result.Before.Metric, r.Result.After.Metric
	if !before.Known() || !after.Known() {
		return text
	}
	d := r.digits()
	text += fmt.Sprintf(": %s %s → %s%s (%s", r.metricName(), fixed(before, d), fixed(after, d), r.unit(), signed(after-before, d))
	if r.Result.Low.Known() && r.Result.High.Known() {
		text += fmt.Sprintf(", 95%% interval %s to %s: %s", signed(r.Result.Low, d), signed(r.Result.High, d), r.significance())
	}
	return text + ")"
}

// simpler says how the models of the curves were made, if not as the result was: they
// lost their heads in one order, and nothing was trained. Else it is empty.
func (r *Report) simpler() string {
	switch s := r.Settings; {
	case s.Step > 0 && s.FineTune > 0:
		return "with heads scored once and without fine-tuning"
	case s.Step > 0:
		return "with heads scored once"
	case s.FineTune > 0:
		return "without fine-tuning"
	}
	return ""
}

// significance says whether the interval holds 0.
func (r *Report) significance() string {
	if r.Result.Low <= 0 && r.Result.High >= 0 {
		return "not significant"
	}
	return "significant"
}

// wholeWork is what a model does as a whole, by the names of works.
var wholeWork = map[string]string{"translate": "translation", "encode": "encoding", "read": "reading"}

// verdictSpeed tells the time of the whole model, or else of what was measured first.
func (r *Report) verdictSpeed() string {
	for _, s := range r.Speed {
		if what := wholeWork[s.Work]; what != "" && s.Ratio.Known() {
			text := s.verdict(fmt.Sprintf("%s (batch %d)", what, s.Batch))
			if goal := r.Settings.Speed; float64(s.Ratio) < goal {
				text += fmt.Sprintf(", measured again, for a goal of %g ×", goal)
			}
			return text
		}
	}
	for _, s := range r.Speed {
		if s.Ratio.Known() {
			return s.verdict(quote.Name(s.Work))
		}
	}
	return ""
}

func (s Speed) verdict(work string) string {
	times := fixed(s.Ratio, 2) + " ×"
	switch {
	case !s.Low.Known() || !s.High.Known():
		return fmt.Sprintf("no result on the speed of %s (%s, without an interval)", work, times)
	case !s.result():
		return fmt.Sprintf("no result on the speed of %s (%s, 95%% interval %s)", work, times, between(s.Low, s.High, fixed, 2))
	case s.Ratio < 1:
		return fmt.Sprintf("%s slower (%s)", work, times)
	}
	return times + " faster " + work
}

// result reports whether the ratio is one: whether its interval excludes 1.
func (s Speed) result() bool {
	return s.Low.Known() && s.High.Known() && (s.Low > 1 || s.High < 1)
}

// gained is the share of the possible gain in speed that was reached, in per
// cent: all of it is 100, none is 0. It is unknown where the ratio is no result.
func (s Speed) gained() Number {
	if !s.result() || !(s.Bound > 1.005) { // nothing to gain, or unknown
		return Number(math.NaN())
	}
	return 100 * (s.Ratio - 1) / (s.Bound - 1)
}
