package jinja

import (
	"bytes"
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
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || len(raw) == 0 {
		t.Fatalf("%d cases: %v", len(raw), err)
	}
	var cases []map[string]any
	for _, r := range raw {
		c := map[string]any{}
		for name, v := range r {
			c[name] = ordered(t, v)
		}
		cases = append(cases, c)
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
		got, _, err := templates[name].Render(variables, clock)
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

// ordered decodes JSON, with its objects as Maps.
func ordered(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value func() any
	next := func() json.Token {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	value = func() any {
		switch v := next().(type) {
		case json.Number:
			n, err := v.Int64()
			if err != nil {
				t.Fatal(err)
			}
			return n
		case json.Delim:
			var list []any
			object := Map{}
			for d.More() {
				if v == '[' {
					list = append(list, value())
					continue
				}
				key := next().(string)
				object = append(object, Entry{key, value()})
			}
			if next(); v == '[' {
				return list
			}
			return object
		default:
			return v
		}
	}
	return value()
}

// TestRefuses has unsupported or impossible operations and their error messages.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"{% include 'x' %}", `line 1: statement "include" is not supported, want one of if, for, `},
		{"a\n{% import 'x' as y %}", `line 2: statement "import" is not supported`},
		{"{% for x in y recursive %}{% endfor %}", "recursive loops are not supported"},
		{"{{ x | sha }}", `filter "sha" is not supported`},
		{"{{ 1 is prime }}", `test "prime" is not supported`},
		{"{{ 'x'.swapcase() }}", "swapcase of a string is not supported"},
		{"{{ {}.update(x=1) }}", "update of a dict is not supported"},
		{"{{ [].append(1) }}", "append of a list is not supported"},
		{"{{ ''.__class__.__mro__ }}", "__class__ of a string is not supported"},
		{"{{ (5).real }}", "real of an integer is not supported"},
		{"{{ true['numerator'] }}", "numerator of a truth value is not supported"},
		{"{{ (1, 2).count is defined }}", "count of a tuple is not supported"},
		{"{{ range(3).stop }}", "stop of a range is not supported"},
		{"{{ {}.items().mapping }}", "mapping of a view of a dict is not supported"},
		{"{% macro m() %}{% endmacro %}{{ m.name }}", "name of a function is not supported"},
		{"{{ 'a' is string if x }}", "line 1: if follows the test string, want parentheses around the test"},
		{"{{ x is defined not in y }}", "line 1: not follows the test defined, want parentheses around the test"},
		{"{{ x is not eq is defined }}", "line 1: is follows the test eq, want parentheses around the test"},
		{"{{ 7 is divisibleby 7 }}", `test "divisibleby" is not supported`},
		{"{{ 7 is divisibleby(7) }}", `test "divisibleby" is not supported`},
		{"{{ 1 is eq }}", "test eq has 0 arguments, want 1"},
		{"{{ 1 is not lessthan() }}", "test lessthan has 0 arguments, want 1"},
		{"{{ 1 is ge(1, 2) }}", "test ge has 2 arguments, want 1"},
		{"{{ 1 is ne(other=1) }}", "test ne has the unknown argument other"},
		{"{{ [1] | select('in') | list }}", "test in has 0 arguments, want 1"},
		{"{{ 1 is lt('a') }}", "an integer and a string cannot be compared"},
		{"{{ 1 is string(2) }}", "test string has 1 arguments, want at most 0"},
		{"{{ 1 is defined 2 }}", "test defined has 1 arguments, want at most 0"},
		{"{{ [{}] | selectattr | list }}", "filter selectattr needs an attribute"},
		{"{{ [{}] | rejectattr('a', x=1) | list }}", "filter rejectattr has the unknown argument x"},
		{"{{ [1] | reject(x=1) | list }}", "filter reject has the unknown argument x"},
		{"{{ [1] | map | list }}", "filter map needs a filter or an attribute"},
		{"{{ [1] | map(name='a') | list }}", "filter map has the unknown argument name"},
		{"{{ 'a' | replace('a') }}", "filter replace needs the argument new"},
		{"{{ 'a' | replace('a', old='b') }}", "filter replace has the argument old twice"},
		{"{{ 'a' | replace(1, 'b') }}", "argument old of filter replace is an integer, want a string"},
		{"{{ 'a' | upper(1) }}", "filter upper has 1 arguments, want at most 0"},
		{"{{ [1] | join(1) }}", "argument d of filter join is an integer, want a string"},
		{"{{ [1] | tojson(indent='a') }}", "argument indent of filter tojson is a string, want an integer"},
		{"{{ 'a'.startswith() }}", "startswith needs the argument prefix"},
		{"{{ 'a'.endswith(1) }}", "argument suffix of endswith is an integer, want a string or a tuple of strings"},
		{"{{ 'a'.split(1) }}", "argument sep of split is an integer, want a string"},
		{"{{ {}.get() }}", "get needs the argument key"},
		{"{{ {}.items(1) }}", "items has 1 arguments, want at most 0"},
		{"{{ raise_exception() }}", "raise_exception needs the argument message"},
		{"{{ strftime_now() }}", "strftime_now needs the argument format"},
		{"{{ range(1, 2, 3, 4) }}", "range has 4 arguments, want at most 3"},
		{"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "m has 2 arguments, want at most 1"},
		{"{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "m has the argument a twice"},
		{"{{ [1] | select | last }}", "last of an iterator, want the filter list before"},
		{"{{ cycler('a') }}", "cycler is not defined, or not supported"},
		{"{{ x.y }}", "x is undefined and has no attribute y"},
		{"{{ x + 1 }}", "x is undefined"},
		{"{{ 'a' + 1 }}", "+ is not supported for a string and an integer"},
		{"{{ 1 < 'a' }}", "an integer and a string cannot be compared"},
		{"{{ 'x' | tojson(sort_keys=true) }}", "filter tojson has the unknown argument sort_keys"},
		{"{{ 'x' | trim(sep=' ') }}", "filter trim has the unknown argument sep"},
		{"{{ strftime_now('%Q') }}", "strftime_now with %Q is not supported"},
		{"{% set x = [1] | map('string') %}{{ x | list }}{{ x | list }}", "an iterator is used a second time"},
		{"{{ [1] | map('string') }}", "an iterator cannot be written as text"},
		{"{% for x in [1] %}{{ loop.depth }}{% endfor %}", "loop.depth is not supported"},
		{"{% set x = 1 %}{% set x.y = 2 %}", "x.y is set, but x is an integer, want a namespace"},
		{"{{ 1 % 0 }}", "division by zero"},
		{"{{ '1_000' | int }}", "int of a string that is no integer is not supported"},
		{"{{ '1٣' | int }}", "int of a string that is no integer is not supported"},
		{"{{ 'x' | tojson(true) }}", "tojson with ensure_ascii is not supported"},
		{"{{ range('3') }}", "range of a string, want integers"},
		{"x{% for a in [1] %}{% set y %}{% break %}{% endset %}{% endfor %}", "line 1: break outside of a loop"},
		{"{% for a in [1] %}{% macro m() %}\n{% continue %}{% endmacro %}{% endfor %}", "line 2: continue outside of a loop"},
		{"{{ 10 ** 2 }}", `line 1: "**", want }}`},
		{"{{ 2147483648 }}", "number 2147483648 is too large"},
		{"{{ 99999999999999999999 }}", "number 99999999999999999999 is too large"},
		{"{{ 2147483647 + 1 }}", "integer 2147483648 is too large"},
		{"{{ -2147483647 - 2 }}", "integer -2147483649 is too large"},
		{"{{ -(-2147483647 - 1) }}", "integer 2147483648 is too large"},
		{"{{ 46341 * 46341 }}", "integer 2147488281 is too large"},
		{"{{ '2147483648' | int }}", "integer 2147483648 is too large"},
		{"{{ range(3) == range(3) }}", "comparing a range with another one is not supported"},
		{"{{ {}.items() in [{}.items()] }}", "comparing a view of a dict with another one is not supported"},
		{"{% set n = namespace() %}{{ n == n }}", "comparing a namespace is not supported"},
		{"{% if %}{% endif %}", `line 1: "%}", want an expression`},
		{"{% if true %}", `the template ends, want ["elif" "else" "endif"]`},
		{"{{ 'x }}", "a string does not end"},
		{"{# x", "a comment does not end"},
		{"{{ x", "a tag does not end"},
		{"{{ x ! y }}", "unexpected character '!' in an expression"},
		{`{{ "\N{BULLET}" }}`, `an escape with 'N' is not supported`},
		{"{{ " + strings.Repeat("(", 500) + strings.Repeat(")", 500) + " }}", "nested more than 200 deep"},
		{strings.Repeat("{% if 1 %}", 500), "nested more than 200 deep"},
		{strings.Repeat(" ", 2<<20), "the template has 2097152 bytes"},
		{"{% for a in range(10000000) %}{% endfor %}", "a range has more than 100000 numbers"},
		{"{% set n = namespace(x=[1]) %}{% for i in range(600) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", "deep"},
	} {
		tpl, err := Parse(c.src)
		if err == nil {
			_, _, err = tpl.Render(nil, clock)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: error %v, want … %s", c.src, err, c.want)
		}
	}
}

// TestLeftOut has what Jinja supports and no chat template of a model needs. It must be an error, never another text.
func TestLeftOut(t *testing.T) {
	for _, src := range []string{
		"{% raw %}x{% endraw %}",
		"{% for a in [] %}{% else %}x{% endfor %}",
		"{% set a, b = (1, 2) %}",
		"{% set a = 1, 2 %}",
		"{{ 1, 2 }}",
		"{{ +1 }}",
		"{{ 1 +}}",
		"{{ 7 / 2 }}",
		"{{ 7 // 2 }}",
		"{{ 1.5 }}",
		"{{ 1e3 }}",
		"{{ 1.0 == 1 }}",
		"{{ 2 * 'a' }}",
		"{{ 'a' * 2 }}",
		"{{ '%s' % 1 }}",
		"{{ 1 < 2 < 3 }}",
		"{{ [1] < [2] }}",
		"{{ 1_000 }}",
		"{{ 00 }}",
		`{{ "\x41" }}`,
		`{{ "\u0041" }}`,
		`{{ "\d" }}`,
		"{{ [1, 2, 3][::2] }}",
		"{{ [1, 2, 3][2:0:-1] }}",
		"{{ [1, 2][true] }}",
		"{{ [1, 2][none] }}",
		"{{ {true: 2} }}",
		"{{ {1: 2}[true] }}",
		"{{ {none: 2} }}",
		"{{ true in {1: 2} }}",
		"{{ 7 is odd }}",
		"{{ 7 is divisibleby 7 }}",
		"{{ [1] | map(attribute='x') is callable }}",
		"{{ 'ß' | upper }}",
		"{{ 'É' | capitalize }}",
		"{{ 'Σ' | lower }}",
		"{{ 'İ'.lower() }}",
		"{{ 'a b' | title }}",
		"{{ 'x' | int }}",
		"{{ '' | int }}",
		"{{ '1.5' | int }}",
		"{{ none | int }}",
		"{{ '1' | int(2) }}",
		"{{ '1.5' | float }}",
		"{{ 'aa' | replace('a', 'b', 1) }}",
		"{{ [1] | join(attribute='x') }}",
		"{{ 'a' | tojson(separators=(',', ':')) }}",
		// What is marked as safe escapes texts that are joined with it.
		"{{ ('<' | safe) + '<' }}",
		"{% for a in [1] %}{{ loop.revindex }}{% endfor %}",
		"{{ namespace({'a': 1}) }}",
		"{{ dict(a=1) }}",
	} {
		tpl, err := Parse(src)
		text := ""
		if err == nil {
			text, _, err = tpl.Render(nil, clock)
		}
		if err == nil {
			t.Errorf("%s: %q, want an error", src, text)
		}
	}
	for _, filter := range []string{
		"abs", "batch", "e", "float", "format", "indent", "max", "min", "pprint", "reverse", "round", "safe", "slice", "sort",
		"sum", "title", "truncate", "unique", "wordcount",
	} {
		tpl, err := Parse("{{ x | " + filter + " }}")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = tpl.Render(map[string]any{"x": []any{1, 2}}, clock)
		if want := `filter "` + filter + `" is not supported`; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, method := range []string{
		"count", "find", "format", "index", "isdigit", "join", "removeprefix", "removesuffix", "rfind", "splitlines", "title", "zfill",
	} {
		tpl, err := Parse("{{ x." + method + " }}")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = tpl.Render(map[string]any{"x": "text"}, clock)
		if want := method + " of a string is not supported"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	tpl, err := Parse("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{1.5, int64(1 << 31), int64(-1<<31 - 1), uint8(1)} {
		if _, _, err := tpl.Render(map[string]any{"v": v}, clock); err == nil {
			t.Errorf("no error for the variable %v", v)
		}
	}
}

// Unsupported features have no effect in parts of a template that do not run.
func TestUnknownUnused(t *testing.T) {
	tpl, err := Parse("{% if tools %}{{ tools | sha }}{{ tools.fetch() is prime }}{% endif %}x")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := tpl.Render(map[string]any{"tools": nil}, clock); got != "x" || err != nil {
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
	chat := map[string]any{"messages": []any{Map{{"role", "user"}, {"content", "q"}}}, "bos_token": "<s>", "add_generation_prompt": true}
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
			got, _, err = tpl.Render(nil, clock)
		}
		switch {
		case c.Want == nil && err == nil:
			t.Errorf("%s: %q, want an error", c.Template, got)
		case c.Want != nil && (err != nil || got != *c.Want):
			t.Errorf("%s: error %v\n%q, want\n%q", c.Template, err, got, *c.Want)
		}
	}
}
