package tokenizer

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn/internal/strictjson"
)

// The fast reader of large lists gives the same results as package strictjson.
func TestLists(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { } `, `{"a": 1}`, `{"a":1,"b":2}`, "{\n\t\"a\" : 10 ,\r\n \"é\\u00e9\\n\\\"\" : -0 }", `{"a": 1, "a": 2}`,
		`{"\ud83d\ude42": 7}`, `{"\ud83d\ude42": 7, "\ud83d": 8}`, "{\"\xff\": 1}", `{"a": 01}`, `{"a": 1.0}`, `{"a": 1e3}`, `{"a": 12345678901234567890}`,
		`{"a": 1,}`, `{"a": 1} x`, `{"a" 1}`, `{"a": }`, `{"a": -}`, `{"a": "b"}`, `{"a": null}`, `{a: 1}`, "{\"a\nb\": 1}",
		`{"a\x": 1}`, `{"a": 1`, `{"a`, `{`, ``, `[]`, `null`, `"a"`,
	} {
		var want map[string]int
		wantErr := strictjson.Unmarshal([]byte(text), &want)
		got, err := readIDs([]byte(text))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v and error %v, want %v and %v", text, got, err, want, wantErr)
		}
	}
	for text, want := range map[string]string{
		`[["a", -1.5], ["b\n", 2e-3], ["c", 0]]`: "[{a -1.5} {b\n 0.002} {c 0}]",
		`[]`:                                     "[]",
		`[["a", -1.5, 3]]`:                       `has ["a",-1.5,3], want a token and its score`,
		`[["a", 1], ["b", .5]]`:                  `is not JSON at line 1, column 18: unexpected '.'`,
		`[["a", 1], ["b", "c"]]`:                 `has ["b","c"], want a token and its score`,
		`[["a", 1e999]]`:                         `has ["a",1e999], want a token and its score`,
		`[["\ud83d\ude42", 1], ["\ud83d", 2]]`:   `has half of a surrogate pair at line 1, column 25`,
		`[["a", null]]`:                          `has ["a",null], want a token and its score`,
	} {
		var list scoredTokens
		got := ""
		if err := list.read([]byte(text)); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(list)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		`{"a": {"b": [1, "]}\""]}, "c": tru, "d": "x"}`: true, // the reader of the field rejects tru
		`{"a": 1, "a": 2}`: true, `{"a": }`: false, `{"a": [1}`: false, `{"a": "b`: false, `{"a": [`: false, `[]`: false,
	} {
		if _, err := readFields([]byte(text)); (err == nil) != want {
			t.Errorf("%s: error %v, want one: %t", text, err, !want)
		}
	}
}
