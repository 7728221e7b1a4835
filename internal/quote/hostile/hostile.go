// Package hostile provides texts and JSON files as an attacker would write them, and a check for messages about them.
// It is for tests.
package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text sets a terminal's title, rings the bell, moves to another line, clears the screen, writes from right to left
// and hides the text after it.
const Text = "\x1b]0;title\a\x1b[2J\r\nsecond line\u0085\u2028\u009b8m\u202eelif\u2066\u200b\x7f"

// Long is several pages of hostile text.
var Long = Text + strings.Repeat(" and so on", 300)

// Files returns JSON files that differ from data in one place: in turn, every key and every value becomes or contains
// text, and every object gets text as an additional key. The files are indented.
func Files(data []byte, text string) iter.Seq[[]byte] {
	values := []any{text, []any{text, []any{1, text}}, map[string]any{text: map[string]any{text: text}}}
	return func(yield func([]byte) bool) {
		var all any
		if err := json.Unmarshal(data, &all); err != nil {
			panic(err)
		}
		write := func() bool {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			if err := e.Encode(all); err != nil {
				panic(err)
			}
			return yield(b.Bytes())
		}
		var visit func(here any, set func(any)) bool
		visit = func(here any, set func(any)) bool {
			for _, v := range values {
				if set(v); !write() {
					return false
				}
			}
			set(here)
			switch here := here.(type) {
			case map[string]any:
				for _, key := range append(slices.Sorted(maps.Keys(here)), text) {
					v := here[key]
					delete(here, key)
					here[text] = v
					if !write() {
						return false
					}
					delete(here, text)
					if key == text {
						continue
					}
					if !visit(v, func(v any) { here[key] = v }) {
						return false
					}
				}
			case []any:
				for i, v := range here {
					if !visit(v, func(v any) { here[i] = v }) {
						return false
					}
				}
			}
			return true
		}
		visit(all, func(v any) { all = v })
	}
}

// Check returns an error unless a message is one line, contains no control characters and fits on a screen.
func Check(message string) error {
	for _, r := range message {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			return fmt.Errorf("%q is in the message %.1000q", r, message)
		}
	}
	if n := utf8.RuneCountInString(message); n > 2000 {
		return fmt.Errorf("a message of %d characters: %.300s", n, message)
	}
	return nil
}
