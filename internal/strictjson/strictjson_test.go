package strictjson

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

type inner struct {
	Width int      `json:"width"`
	Rate  *float64 `json:"rate"`
	Seed  uint64   `json:"seed"`
	Names []string `json:"names"`
}

type outer struct {
	Arch  string `json:"arch"`
	Train bool   `json:"train"`
	Inner inner  `json:"inner"`
	Own   own    `json:"own"`
	More  []inner
	By    map[string]inner
}

type own struct{}

var errOwn = errors.New("an error of its own")

func (*own) UnmarshalJSON([]byte) error { return errOwn }

func TestUnmarshal(t *testing.T) {
	var v outer
	if err := Unmarshal([]byte(" {\"arch\": \"gru\", \"inner\": {\"width\": 7, \"rate\": 0.5}} \n"), &v); err != nil {
		t.Fatal(err)
	}
	if v.Arch != "gru" || v.Inner.Width != 7 || *v.Inner.Rate != 0.5 {
		t.Errorf("got %+v", v)
	}
	if err := Unmarshal([]byte(`{"arch": "\ud83d\uDE42\\ud83d\u00e9"}`), &v); err != nil || v.Arch != `🙂\ud83dé` {
		t.Errorf("got %q, error %v", v.Arch, err)
	}
	if err := Unmarshal([]byte(`{"own": 1}`), &v); !errors.Is(err, errOwn) {
		t.Errorf("error %v, want that of the method", err)
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "is empty, want JSON",
		"  \n":                               "is empty, want JSON",
		`{"arch": "gru"`:                     "ends in the middle of its JSON",
		`{"arch": "gr`:                       "ends in the middle of its JSON",
		`{{`:                                 `is not JSON at line 1, column 2: unexpected '{'`,
		"{\n  \"arch\": \"gru\",\n  ü: 1\n}": `is not JSON at line 3, column 3: unexpected 'ü'`,
		"{\"arch\": \"ü\",}":                 `is not JSON at line 1, column 14: unexpected '}'`,
		" ,{}":                               `is not JSON at line 1, column 2: unexpected ','`,
		"not JSON":                           `is not JSON at line 1, column 2: unexpected 'o'`,
		`{} {}`:                              "something follows the JSON value",
		`{} x`:                               "something follows the JSON value",
		`7x`:                                 "something follows the JSON value",
		`{"arch": nulx}`:                     `is not JSON at line 1, column 13: unexpected 'x'`,
		`{"arch": "\x1b"}`:                   `is not JSON at line 1, column 12: unexpected 'x'`,
		"{\"arch\": \"\x1b\"}":               `is not JSON at line 1, column 11: unexpected '\x1b'`,
		"{\n\"ü\": \"a\xff\"}":               "is not UTF-8 at line 2, column 8",
		"\xef\xbf{}":                         "is not UTF-8 at line 1, column 1",
		"{\"arch\": \"\xed\xa0\x80\"}":       "is not UTF-8 at line 1, column 11", // a surrogate
		`{"arch": "\ud83d\u0041"}`:           "has half of a surrogate pair at line 1, column 11",
		"{\n\"\\\\\\uDE42\": 1}":             "has half of a surrogate pair at line 2, column 4",
		`{"arch": "\ud83d\ud83d\ude42"}`:     "has half of a surrogate pair at line 1, column 11",
		`{"arch": "\ud83d`:                   "has half of a surrogate pair at line 1, column 11",
		`{"arch": "\`:                        "ends in the middle of its JSON",
		"{\n\u202e}":                         `is not JSON at line 2, column 1: unexpected '\u202e'`,
		`{"merges": 1}`:                      `unknown field "merges"`,
		"\n 7":                               "has a number where an object is wanted",
		`[]`:                                 "has an array where an object is wanted",
		`7`:                                  "has a number where an object is wanted",
		`{"size": 1}`:                        `unknown field "size"`,
		`{"arch": 3}`:                        `field "arch" has a number where a string is wanted`,
		`{"train": "yes"}`:                   `field "train" has a string where true or false is wanted`,
		`{"inner": true}`:                    `field "inner" has true or false where an object is wanted`,
		`{"inner": {"width": "7"}}`:          `field "inner.width" has a string where a whole number is wanted`,
		`{"inner": {"width": 7.5}}`:          `field "inner.width" has 7.5 where a whole number is wanted`,
		`{"inner": {"width": 9e99}}`:         `field "inner.width" has 9e99 where a whole number is wanted`,
		`{"inner": {"seed": -1}}`:            `field "inner.seed" has -1 where a whole number, at least 0 is wanted`,
		`{"inner": {"rate": {}}}`:            `field "inner.rate" has an object where a number is wanted`,
		`{"inner": {"names": "x"}}`:          `field "inner.names" has a string where an array is wanted`,
		` {"inner": {"names": ["x", 7]}}`:    `field "inner.names[1]" has a number where a string is wanted`,
		`{"arch": "x", "more": [{}, {"width": 1, "names": ["x", [7]]}]}`: `field "more[1].names[1]" has an array where a string is wanted`,
		`{"by": {"a": {}, "b\u001b": {"width": false}}}`:                 `field "by.b\x1b.width" has true or false where a whole number is wanted`,
		`{"\u001b]0;\u0007": 1}`:                                         `unknown field "\x1b]0;\a"`,
		`{"inner": {"width": 7` + strings.Repeat("0", 200) + `}}`:        `field "inner.width" has 7` + strings.Repeat("0", 99) + `… where a whole number is wanted`,
		`{"` + strings.Repeat("k", 200) + `": 1}`:                        `unknown field "` + strings.Repeat("k", 100) + `"…`,
	} {
		if err := Unmarshal([]byte(text), new(outer)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

func TestLenient(t *testing.T) {
	var v outer
	if err := Lenient([]byte(`{"size": 1, "arch": "gru"}`), &v); err != nil || v.Arch != "gru" {
		t.Errorf("got %+v, error %v", v, err)
	}
	want := `field "arch" has a number where a string is wanted`
	if err := Lenient([]byte(`{"size": 1, "arch": 3}`), &v); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// For any damaged text, the error is one line with wording of this package.
func TestDamaged(t *testing.T) {
	const whole = ` {"arch": "ü\u0041\n", "train": true, "inner": {"width": -1, "rate": 0.5e+3, "names": ["x", null]}, "by": {"a": {}}} `
	words := []string{"is empty", "is not UTF-8 at line ", "is not JSON at line ", "ends in the middle", "something follows", "unknown field ", "field ", "has ", errOwn.Error()}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := []byte(whole)
		for range 1 + r.IntN(3) {
			i, j := r.IntN(len(text)+1), r.IntN(len(text)+1)
			switch i, j = min(i, j), max(i, j); r.IntN(4) {
			case 0:
				text = text[:i]
			case 1:
				text = append(text[:i:i], text[j:]...)
			case 2:
				text = append(text[:i:i], append([]byte(`"{}[],:0a-\. `)[r.IntN(13):][:1:1], text[i:]...)...)
			case 3:
				if i < len(text) {
					text[i] = byte(r.Uint32())
				}
			}
		}
		valid := json.Valid(text) && utf8.Valid(text)
		if err := Syntax(text); (err == nil) != valid {
			t.Fatalf("%q: %v, but valid: %v", text, err, valid)
		}
		err := Unmarshal(text, new(outer))
		if err == nil {
			continue
		}
		said := err.Error()
		known := false
		for _, w := range words {
			known = known || strings.HasPrefix(said, w)
		}
		if !known || strings.ContainsFunc(said, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Fatalf("%q: error %q", text, said)
		}
	}
}

// A request has no field twice, and no null in a list, both of which package json accepts.
func TestRequest(t *testing.T) {
	for text, want := range map[string]string{
		`{"inner": {"width": 1, "names": ["a", ""]}, "arch": "b", "more": [{"width": 1}, {"width": 2}]}`: "",
		`{"inner": {"rate": null}}`:                                 "",
		`{"arch": "a", "arch": "b"}`:                                `has the field "arch" twice`,
		`{"arch": "a", "Arch": "b"}`:                                `has the field "Arch" twice`,
		`{"inner": {"width": 1, "seed": 2, "width": 1}}`:            `has the field "width" twice`,
		`{"more": [{"width": 1}, {"width": 2, "width": 3}]}`:        `has the field "width" twice`,
		`{"inner": {"names": ["a", null]}}`:                         `element "inner.names[1]" is null`,
		`{"more": [null]}`:                                          `element "more[0]" is null`,
		`{"arch": "\ud83d"}`:                                        "has half of a surrogate pair at line 1, column 11",
		`{"arch": 1}`:                                               `field "arch" has a number where a string is wanted`,
		`{"note": 1}`:                                               `unknown field "note"`,
		`{"by": {"x": {"width": 1}, "y": {"width": 1, "seed": 1}}}`: "",
	} {
		err := Request([]byte(text), new(outer))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	var list []string
	if err := Request([]byte(`["a", null]`), &list); err == nil || err.Error() != `element "[1]" is null` {
		t.Errorf("error %v", err)
	}
	if err := Request([]byte(`null`), &list); err != nil {
		t.Errorf("error %v", err)
	}
}
