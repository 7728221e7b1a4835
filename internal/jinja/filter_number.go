package jinja

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/attn-go/attn/internal/quote"
)

// toInteger is the filter int. A text with a fraction becomes the integer part of its number.
func toInteger(r *run, v any, a args) any {
	usual := int64(a.int(0, 0))
	if s, ok := v.(string); ok {
		s = strings.TrimSpace(s)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		refuseDialect(s)
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return usual
		}
		v = x
	}
	switch n := numeric(v).(type) {
	case int64:
		return n
	case float64:
		if math.Abs(n) <= exact {
			return int64(n)
		}
		fail("int of %v is too large", n)
	}
	return usual
}

// toNumber is the filter float.
func toNumber(r *run, v any) any {
	if s, ok := v.(string); ok {
		s = strings.TrimSpace(s)
		refuseDialect(s)
		if x, err := strconv.ParseFloat(s, 64); err == nil || errors.Is(err, strconv.ErrRange) { // 1e400 is inf
			return x
		}
	}
	if n := numeric(v); n != nil {
		return toFloat(n)
	}
	return 0.0
}

// dialect returns an expression for numbers that Python and Go read differently: 1_000, 0x1p4 and digits outside of ASCII.
var dialect = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[+-]?[0-9.]*(?:[0-9.][_xX]|[^\P{Nd}0-9])`)
})

func refuseDialect(s string) {
	if dialect().MatchString(s) {
		fail("the number %s is not supported", quote.Text(s))
	}
}

func absolute(r *run, v any) any {
	switch n := numeric(v).(type) {
	case int64:
		if n < 0 {
			return integers("-", 0, n)
		}
		return n
	case float64:
		return math.Abs(n)
	}
	fail("abs of %s, want a number", typeName(v))
	return nil
}

func sum(r *run, v any) any {
	var total any = int64(0)
	for _, x := range iterate(r, v) {
		r.step()
		n := numeric(x)
		if n == nil {
			fail("sum of %s, want numbers", typeName(x))
		}
		total = arithmetic("+", total, n)
	}
	return total
}

// extreme is the filter max if sign is 1, and min if sign is -1.
func extreme(r *run, v any, sign int) any {
	all := iterate(r, v)
	if len(all) == 0 {
		return undefined{"the maximum or minimum of an empty list"}
	}
	best := all[0]
	for _, x := range all[1:] {
		if _, ok := x.(string); ok {
			fail("max and min of strings are not supported")
		}
		if r.order(x, best)*sign > 0 {
			best = x
		}
	}
	return best
}
