package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock is the time in the golden files.
var clock = time.Date(2025, 3, 2, 9, 5, 7, 0, time.UTC)

// TestGolden renders chats with every template in testdata and compares the texts with those of
// transformers.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []map[string]any
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	templates := map[string]*Template{}
	for _, c := range cases {
		name := c["template"].(string)
		if templates[name] == nil {
			src, err := os.ReadFile(filepath.Join("testdata", name+".jinja"))
			if err == nil {
				templates[name], err = Parse(string(src))
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		variables := map[string]any{"tools": nil, "documents": nil}
		for k, v := range c {
			if k != "template" && k != "chat" && k != "want" && k != "error" {
				variables[k] = v
			}
		}
		got, err := templates[name].Render(variables, clock)
		if want, ok := c["want"].(string); !ok {
			var raised *Raised
			if !errors.As(err, &raised) || raised.Message != c["error"] {
				t.Errorf("%s, chat %q: error %v, want %s", name, c["chat"], err, c["error"])
			}
		} else if err != nil || got != want {
			t.Errorf("%s, chat %q: error %v\n%q, want\n%q", name, c["chat"], err, got, want)
		}
	}
}

// TestRefuses has unsupported or impossible operations and their error messages.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"{% include 'x' %}", `line 1: statement "include" is not supported, want one of if, for, `},
		{"a\n{% import 'x' as y %}", `line 2: statement "import" is not supported`},
		{"{% for x in y recursive %}{% endfor %}", "recursive loops are not supported"},
		{"{{ x | sha }}", `filter "sha" is not supported`},
		{"{{ 1 is prime }}", `test "prime" is not supported`},
		{"{{ 'x'.swapcase() }}", "method swapcase is not supported"},
		{"{{ {}.update(x=1) }}", "method update is not supported"},
		{"{{ [].append(1) }}", "append of a list is not supported"},
		{"{{ ''.__class__.__mro__ }}", "__class__ of a string is not supported"},
		{"{{ cycler('a') }}", "cycler is not defined, or not supported"},
		{"{{ x.y }}", "x is undefined and has no attribute y"},
		{"{{ x + 1 }}", "x is undefined"},
		{"{{ 'a' + 1 }}", "+ is not defined for a string and an integer"},
		{"{{ 1 < 'a' }}", "an integer and a string cannot be compared"},
		{"{{ 'x' | tojson(sort_keys=true) }}", "tojson with ensure_ascii, separators or sort_keys is not supported"},
		{"{{ 'x' | trim(sep=' ') }}", "filter trim has the unknown argument sep"},
		{"{{ strftime_now('%Q') }}", "strftime_now with %Q is not supported"},
		{"{% set x = [1] | map('string') %}{{ x | list }}{{ x | list }}", "an iterator is used a second time"},
		{"{{ [1] | map('string') }}", "an iterator cannot be written as text"},
		{"{% for x in [1] %}{{ loop.depth }}{% endfor %}", "loop.depth is not supported"},
		{"{% set x = 1 %}{% set x.y = 2 %}", "x.y is set, but x is an integer, want a namespace"},
		{"{{ 1 / 0 }}", "division by zero"},
		{"{{ 9223372036854775807 + 1 }}", "9223372036854775807 + 1 is too large"},
		{"{{ -(-9223372036854775807 - 1) }}", "0 - -9223372036854775808 is too large"},
		{"{{ 9007199254740993 / 3 }}", "9007199254740993 / 3 is too large"},
		{"{{ 'nan' | float < 1 }}", "nan cannot be compared"},
		{"{{ '1_000' | int }}", `the number "1_000" is not supported`},
		{"{{ '1٣' | int }}", `the number "1٣" is not supported`},
		{"{{ '0x1p4' | float }}", `the number "0x1p4" is not supported`},
		{"{{ 'ff' | int(0, 16) }}", "filter int has 2 arguments, want at most 1"},
		{"{{ 'x' | tojson(true) }}", "tojson with ensure_ascii, separators or sort_keys is not supported"},
		{"{{ '²'.isdigit() }}", "isdigit of '²' is not supported"},
		{"{{ 7 is divisibleby 'x' }}", `test "divisibleby" of an integer and a string, want integers other than 0`},
		{"{{ range(3000000000) }}", "argument of range is an integer, want an integer of 32 bits"},
		{"x{% for a in [1] %}{% set y %}{% break %}{% endset %}{% endfor %}", "line 1: break outside of a loop"},
		{"{% for a in [1] %}{% macro m() %}\n{% continue %}{% endmacro %}{% endfor %}", "line 2: continue outside of a loop"},
		{"{% for a in [] %}{% else %}{% break %}{% endfor %}", "break outside of a loop"},
		{"{{ 10 ** 2 }}", `line 1: "**", want }}`},
		{"{{ (-9223372036854775807 - 1) * -1 }}", "-9223372036854775808 * -1 is too large"},
		{"{{ (-9223372036854775807 - 1) // -1 }}", "-9223372036854775808 // -1 is too large"},
		{"{{ 3037000500 * 3037000500 }}", "3037000500 * 3037000500 is too large"},
		{"{{ -2 - 9223372036854775807 }}", "-2 - 9223372036854775807 is too large"},
		{"{{ range(3) == range(3) }}", "comparing a range with another one is not supported"},
		{"{{ {}.keys() in [{}.keys()] }}", "comparing a view of a dict with another one is not supported"},
		{"{% set n = namespace() %}{{ n == n }}", "comparing a namespace is not supported"},
		{"{% if %}{% endif %}", `line 1: "%}", want an expression`},
		{"{% if true %}", `the template ends, want ["elif" "else" "endif"]`},
		{"{{ 'x }}", "a string does not end"},
		{"{# x", "a comment does not end"},
		{"{{ x", "a tag does not end"},
		{"{{ x ! y }}", "unexpected character '!' in an expression"},
		{"{% raw %}", "raw does not end"},
		{`{{ "\N{BULLET}" }}`, `escape \N is not supported`},
		{"{{ " + strings.Repeat("(", 500) + strings.Repeat(")", 500) + " }}", "nested more than 200 deep"},
		{strings.Repeat("{% if 1 %}", 500), "nested more than 200 deep"},
		{strings.Repeat(" ", 2<<20), "the template has 2097152 bytes"},
		{"{% for a in range(10000000) %}{% endfor %}", "a range has more than 100000 numbers"},
		{"{% set n = namespace(x=[1]) %}{% for i in range(600) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", "deep"},
	} {
		tpl, err := Parse(c.src)
		if err == nil {
			_, err = tpl.Render(nil, clock)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: error %v, want … %s", c.src, err, c.want)
		}
	}
}

// The line end after raw belongs to the text, unlike after other blocks. Jinja 3.1.6 gives the same texts.
func TestRaw(t *testing.T) {
	for src, want := range map[string]string{
		"a {% raw %}\n{{ b }}\n {% endraw %}\nc":     "a \n{{ b }}\nc",
		"a\n  {% raw %}  {% endraw %}\n  c":          "a\n    c",
		"a {%- raw -%}\n\n {% if {%- endraw -%}\n c": "a{% ifc",
		"{% raw %}\n  {% endraw %}c":                 "\nc",
		"{% raw -%}\n  {% endraw %}c":                "c",
	} {
		tpl, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tpl.Render(nil, clock); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", src, got, err, want)
		}
	}
}

// Unsupported features have no effect in parts of a template that do not run.
func TestUnknownUnused(t *testing.T) {
	tpl, err := Parse("{% if tools %}{{ tools | sha }}{{ tools.fetch() is prime }}{% endif %}x")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tpl.Render(map[string]any{"tools": nil}, clock); got != "x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzTemplate passes any text to Parse and Render, which may return errors but must not panic.
func FuzzTemplate(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.jinja")
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	chat := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "q"}}, "bos_token": "<s>", "add_generation_prompt": true}
	f.Fuzz(func(t *testing.T, src string) {
		if tpl, err := Parse(src); err == nil {
			tpl.Render(chat, clock)
		}
	})
}

// TestExpressions renders one template per line and compares the result with Jinja's: a text or an error.
func TestExpressions(t *testing.T) {
	data, err := os.ReadFile("testdata/expressions.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Template string
		Want     *string
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 100 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		got := ""
		tpl, err := Parse(c.Template)
		if err == nil {
			got, err = tpl.Render(nil, clock)
		}
		switch {
		case c.Want == nil && err == nil:
			t.Errorf("%s: %q, want an error", c.Template, got)
		case c.Want != nil && (err != nil || got != *c.Want):
			t.Errorf("%s: error %v\n%q, want\n%q", c.Template, err, got, *c.Want)
		}
	}
}
