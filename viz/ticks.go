package viz

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// span is an interval of numbers.
type span struct{ low, high float64 }

// newSpan returns an empty interval.
func newSpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) add(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }

func (s span) empty() bool { return s.low > s.high }

// opened returns the span with a positive width and a margin at both ends. room is the margin
// as a fraction of the width; the margin does not cross 0. A span that is no wider than
// rounding errors counts as a single number, because its ticks would be equal.
func (s span) opened(room float64) span {
	if s.empty() {
		return span{0, 1}
	}
	size := max(math.Abs(s.low), math.Abs(s.high))
	if s.high-s.low <= 1e-9*size {
		size = cmp.Or(size, 10)
		return span{s.low - size/10, s.high + size/10}
	}
	room *= s.high - s.low
	o := span{s.low - room, s.high + room}
	if s.low >= 0 && o.low < 0 {
		o.low = 0
	}
	return o
}

// at returns the position of a number in the span, from 0 to 1.
func (s span) at(v float64) float64 { return (v - s.low) / (s.high - s.low) }

// ticks returns about n round numbers in the span and their labels.
func (s span) ticks(n int) (values []float64, texts []string) {
	rough := (s.high - s.low) / float64(n)
	exponent := int(math.Floor(math.Log10(rough)))
	power := math.Pow(10, float64(exponent))
	times := 10.
	for _, t := range []float64{1, 2, 5} {
		if t*power >= rough*(1-1e-9) {
			times = t
			break
		}
	}
	if times == 10 {
		times, exponent = 1, exponent+1
		power = math.Pow(10, float64(exponent))
	}
	step := times * power
	last := math.Floor(s.high/step + 1e-6)
	for k := math.Ceil(s.low/step - 1e-6); k <= last && len(values) <= 2*n; k++ {
		v := k * step
		if exponent < 0 {
			v = k * times / math.Pow(10, float64(-exponent)) // 0.3 instead of 0.30000000000000004
		}
		values = append(values, v+0) // -0 becomes 0
		texts = append(texts, tickText(v, max(-exponent, 0)))
	}
	return values, texts
}

// tickText writes a number with the given number of decimals, or with a power of ten if it would be long.
func tickText(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if size := math.Abs(v); decimals > 5 || size >= 1e6 {
		text = strconv.FormatFloat(v, 'g', 4, 64)
	}
	if v == 0 {
		text = "0"
	}
	return strings.ReplaceAll(grouped(text), "-", "−")
}

// plain writes a number with up to six significant digits.
func plain(v float64) string {
	return strings.ReplaceAll(grouped(strconv.FormatFloat(v, 'g', 6, 64)), "-", "−")
}

// grouped writes a whole number in groups of three digits.
func grouped(text string) string {
	if strings.ContainsAny(text, ".e") {
		return text
	}
	return quote.Grouped(text)
}
