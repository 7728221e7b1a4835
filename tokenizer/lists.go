package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// The vocabulary and the merges are most of a file. Package json reads them about six times, this reader once. If the
// reader finds anything unusual, it gives up, and package strictjson reads the text again and reports errors.

// listReader reads a JSON text from its beginning.
// It stops at the first byte that it does not expect and says nothing about it. So there is one place where errors
// of JSON are worded, and this reader cannot accept what package strictjson refuses.
type listReader struct {
	s  string
	at int
	ok bool // nothing unusual was found
}

// readFast reads a JSON text with a listReader, or with package strictjson if the listReader gives up.
func readFast[T any](raw []byte, fast func(r *listReader) T) (T, error) {
	r := &listReader{string(raw), 0, strictjson.Characters(raw) == nil}
	if v := fast(r); r.done() {
		return v, nil
	}
	var v T
	err := strictjson.Unmarshal(raw, &v)
	return v, err
}

// next skips white space and returns the next byte without consuming it; 0 at the end.
func (r *listReader) next() byte {
	for r.at < len(r.s) {
		switch c := r.s[r.at]; c {
		case ' ', '\n', '\t', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// take consumes a required byte.
func (r *listReader) take(c byte) {
	if r.next() != c {
		r.ok = false
		return
	}
	r.at++
}

// more reports whether an array or an object has another element, and consumes the comma before it. n is
// the number of elements read so far.
func (r *listReader) more(end byte, n int) bool {
	if !r.ok {
		return false
	}
	if r.next() == end {
		r.at++
		return false
	}
	if n > 0 {
		r.take(',')
	}
	return r.ok
}

// done reports whether the whole text was read without finding anything unusual.
func (r *listReader) done() bool { return r.ok && r.next() == 0 && r.at == len(r.s) }

// text reads a string, without copying it.
func (r *listReader) text() string {
	r.take('"')
	start := r.at
	for escaped := false; r.ok && r.at < len(r.s); r.at++ {
		switch c := r.s[r.at]; {
		case c == '"':
			r.at++
			if !escaped {
				return r.s[start : r.at-1]
			}
			var text string
			r.ok = json.Unmarshal([]byte(r.s[start-1:r.at]), &text) == nil
			return text
		case c == '\\':
			escaped = true
			r.at++
		case c < ' ':
			r.ok = false
		}
	}
	r.ok = false
	return ""
}

// word consumes a number, true, false or null, and returns its text.
func (r *listReader) word() string {
	r.next()
	start := r.at
	for ; r.at < len(r.s); r.at++ {
		switch r.s[r.at] {
		case ',', ':', ']', '}', ' ', '\n', '\t', '\r':
			return r.s[start:r.at]
		}
	}
	return r.s[start:]
}

// id reads an integer.
func (r *listReader) id() int {
	text := r.word()
	n, err := strconv.Atoi(text)
	// Atoi accepts more than JSON does.
	r.ok = r.ok && err == nil && text[0] != '+' && (text[0] != '0' || text == "0") && text[0] != '-'
	return n
}

// number reads a number in the same way as readNumber.
func (r *listReader) number() (x float64) {
	text := r.word()
	isNumber := text != "" && strings.IndexByte("-0123456789", text[0]) >= 0 && json.Valid([]byte(text))
	if r.ok = r.ok && isNumber; r.ok {
		x, r.ok = readNumber(text)
	}
	return x
}

// skip consumes a value and the white space after it. It only checks where the value ends, because the value is read
// later.
func (r *listReader) skip() {
	start, depth := r.at, 0
	for ; r.at < len(r.s); r.at++ {
		switch c := r.s[r.at]; c {
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				r.ok = r.ok && r.at > start
				return
			}
			if c != ',' {
				depth--
			}
		case '"':
			for r.at++; r.at < len(r.s) && r.s[r.at] != '"'; r.at++ {
				if r.s[r.at] == '\\' {
					r.at++
				}
			}
		}
	}
	r.ok = false
}

// object reads an object. It calls field after the name and the colon of each field.
func (r *listReader) object(field func(name string)) {
	r.take('{')
	for n := 0; r.more('}', n); n++ {
		name := r.text()
		r.take(':')
		r.next()
		field(name)
	}
}

// readFields returns the fields of an object without reading their values.
func readFields(raw []byte) (map[string]json.RawMessage, error) {
	return readFast(raw, func(r *listReader) map[string]json.RawMessage {
		fields := map[string]json.RawMessage{}
		r.object(func(name string) {
			start := r.at
			if r.skip(); r.ok {
				fields[name] = bytes.TrimRight(raw[start:r.at], " \n\t\r")
			}
		})
		return fields
	})
}

// readIDs reads {"token": id, …}.
func readIDs(raw []byte) (map[string]int, error) {
	return readFast(raw, func(r *listReader) map[string]int {
		ids := make(map[string]int, len(raw)/16)
		r.object(func(token string) { ids[token] = r.id() })
		return ids
	})
}

// mergeList has the merges of BPE: ["a b", …] or [["a", "b"], …].
type mergeList []mergePair

type mergePair [2]string

// UnmarshalJSON is used when a listReader gives up.
func (p *mergePair) UnmarshalJSON(data []byte) error {
	var list []string
	if err := strictjson.Unmarshal(data, &list); err != nil || len(list) != 2 {
		return fmt.Errorf("has %s, want two tokens", quote.JSON(data))
	}
	*p = mergePair(list)
	return nil
}

func (m *mergeList) read(raw json.RawMessage) (err error) {
	first := &listReader{string(raw), 0, true}
	if first.take('['); first.next() == '"' {
		lines, err := readFast(raw, func(r *listReader) []string {
			return readList(r, len(raw)/16, (*listReader).text)
		})
		if err != nil {
			return err
		}
		*m, err = splitMerges(lines)
		return err
	}
	*m, err = readFast(raw, func(r *listReader) mergeList {
		return readList(r, len(raw)/16, func(r *listReader) mergePair {
			r.take('[')
			a := r.text()
			r.take(',')
			b := r.text()
			r.take(']')
			return mergePair{a, b}
		})
	})
	return err
}

// readList reads an array.
func readList[T any](r *listReader, size int, element func(r *listReader) T) []T {
	list := make([]T, 0, size)
	r.take('[')
	for n := 0; r.more(']', n); n++ {
		list = append(list, element(r))
	}
	return list
}

// scoredToken is ["token", score].
type scoredToken struct {
	token string
	score float64
}

// readScored reads a scoredToken for readFast.
func readScored(r *listReader) (t scoredToken) {
	r.take('[')
	t.token = r.text()
	r.take(',')
	t.score = r.number()
	r.take(']')
	return t
}

// UnmarshalJSON is used when a listReader gives up.
func (t *scoredToken) UnmarshalJSON(data []byte) (err error) {
	r := &listReader{string(data), 0, true}
	if *t = readScored(r); !r.done() {
		return fmt.Errorf("has %s, want a token and its score", quote.JSON(data))
	}
	return nil
}

// scoredTokens are the tokens of Unigram.
type scoredTokens []scoredToken

func (t *scoredTokens) read(raw json.RawMessage) (err error) {
	*t, err = readFast(raw, func(r *listReader) scoredTokens { return readList(r, len(raw)/24, readScored) })
	return err
}
