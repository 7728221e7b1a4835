package jinja

import (
	"runtime"
	"strings"
	"testing"
)

// TestBounds has templates that would take unlimited time or memory, or overflow the stack, if some part of
// the work were not counted. It runs for a few seconds at most.
func TestBounds(t *testing.T) {
	big := strings.Repeat("xy", 1_000_000)
	variables := map[string]any{
		"big": big, "other": "x" + strings.Repeat("y", len(big)-1), "control": strings.Repeat("\x01", len(big)),
	}
	loops := func(body string) string {
		return "{% for a in range(100000) %}{% for b in range(100000) %}" + body + "{% endfor %}{% endfor %}"
	}
	var before, after runtime.MemStats
	for name, src := range map[string]string{
		"loops":            loops(""),
		"an element":       loops("{% set c = big[-1] %}"),
		"a slice":          loops("{% set c = big[:1] %}"),
		"a length":         loops("{% set c = big | length %}"),
		"a part of a text": loops("{% set c = 'q' in big %}"),
		"equal texts":      loops("{% set c = big == other %}"),
		"ordered texts":    loops("{% set c = big < big %}"),
		"a key":            "{% set d = {'a': 1} %}" + loops("{% set c = d[big] %}"),
		"lists":            "{% set r = range(100000) %}{% set n = namespace(k=[]) %}{% for a in r %}{% set n.k = n.k + [r | list] %}{% endfor %}",
		"a long list":      "{% set r = range(100000) %}" + loops("{% set c = r | list %}"),
		"a written list":   "{{ [" + strings.Repeat("big,", 100) + "] }}",
		"a written dict":   "{{ {big: big, 'a': big, 'b': big} }}",
		"JSON":             "{{ [control, control, control, control, control] | tojson }}",
		"indented JSON":    "{{ range(100000) | list | tojson(indent=10000) }}",
		"distinct texts":   "{% set n = namespace(s='') %}{% for i in range(100000) %}{% set n.s = n.s ~ i ~ ' ' %}{% endfor %}",
		"an expression":    "{% for a in range(100000) %}{% set c = 0" + strings.Repeat("+1", 1000) + " %}{% endfor %}",
		"a sum":            "{{ 1" + strings.Repeat("+1", 30_000) + " }}",
		"filters":          "{{ 1" + strings.Repeat("|d", 30_000) + " }}",
		"attributes":       "{{ a" + strings.Repeat("[0]", 30_000) + " }}",
		"calls":            "{{ a" + strings.Repeat("()", 30_000) + " }}",
		"conditions":       "{{ 1" + strings.Repeat(" if 1", 15_000) + " }}",
		"sums of sums":     "{% macro m() %}{{ " + strings.Repeat("(", 50) + "m()" + strings.Repeat(strings.Repeat("+''", 1000)+")", 50) + " }}{% endmacro %}{{ m() }}",
		"nested lists":     "{% set n = namespace(a=[], b=[]) %}{% for i in range(100000) %}{% set n.a = [n.a] %}{% set n.b = [n.b] %}{% endfor %}{{ n.a == n.b }}",
		"many scopes":      "{% macro m() %}{% endmacro %}" + loops("{{ m() }}"),
		"doubled texts":    "{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
		"doubled lists":    "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
		"calls of itself":  "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
	} {
		tpl, err := Parse(src)
		if err == nil {
			tpl.most = work{200_000, 1 << 23}
			runtime.ReadMemStats(&before)
			_, _, err = tpl.Render(variables, clock)
			runtime.ReadMemStats(&after)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 100<<20 {
			t.Errorf("%s: %d MB were made", name, made>>20)
		}
		if err == nil || err.Error() != errWork.Error() {
			t.Errorf("%s: error %v, want %v", name, err, errWork)
		}
	}
}

// The time to parse a long template is proportional to its number of tokens.
func TestLongTemplates(t *testing.T) {
	for name, src := range map[string]string{
		"tags":   strings.Repeat("{{1}}\n", longest/24),
		"tokens": "{{ [" + strings.Repeat("-1,\n", longest/16) + "] }}",
		"elifs":  "{% if 0 %}" + strings.Repeat("{%elif 0%}", longest/40) + "{%endif%}",
	} {
		tpl, err := Parse(src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, _, err := tpl.Render(nil, clock); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Parse("{{ 1 }}\n{# a\nb #}{{ 'c\nd' }}\n{% raw %}\n{% endraw %}\n{{ ! }}")
	if want := "line 7: unexpected character '!' in an expression"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
