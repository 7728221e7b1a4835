package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// The vocabulary and the merges are nearly all of a file. Package json goes over them some
// six times before it is done; what is here once. Whatever is unusual makes it give up, and
// package strictjson reads the text again and says what is wrong.

// listReader reads a JSON text from its beginning.
type listReader struct {
	s  string
	at int
	ok bool // nothing unusual was met
}

func newListReader(raw []byte) *listReader {
	return &listReader{string(raw), 0, utf8.Valid(raw)}
}

// next returns the byte behind white space, 0 at the end, and stays in front of it.
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

// take goes over a byte that has to be there.
func (r *listReader) take(c byte) {
	if r.next() != c {
		r.ok = false
		return
	}
	r.at++
}

// more reports whether an array or an object goes on, and goes over what separates its
// elements. n is how many there were.
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

// done reports whether the text was read to its end, and nothing unusual met.
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

// digits goes over digits and returns how many there were.
func (r *listReader) digits() int {
	start := r.at
	for r.at < len(r.s) && '0' <= r.s[r.at] && r.s[r.at] <= '9' {
		r.at++
	}
	return r.at - start
}

// integer goes over a whole number and returns its text.
func (r *listReader) integer() string {
	r.next()
	start := r.at
	if r.at < len(r.s) && r.s[r.at] == '-' {
		r.at++
	}
	first := r.at
	n := r.digits()
	r.ok = r.ok && n > 0 && (n == 1 || r.s[first] != '0')
	return r.s[start:r.at]
}

// id reads a whole number.
func (r *listReader) id() int {
	text := r.integer()
	n, err := strconv.Atoi(text)
	r.ok = r.ok && err == nil && (r.at == len(r.s) || r.s[r.at] != '.' && r.s[r.at] != 'e' && r.s[r.at] != 'E')
	return n
}

// number reads a number, as readNumber does.
func (r *listReader) number() float64 {
	whole := r.integer()
	start := r.at - len(whole)
	if r.at < len(r.s) && r.s[r.at] == '.' {
		r.at++
		r.ok = r.ok && r.digits() > 0
	}
	if r.at < len(r.s) && r.s[r.at]|0x20 == 'e' {
		if r.at++; r.at < len(r.s) && (r.s[r.at] == '+' || r.s[r.at] == '-') {
			r.at++
		}
		r.ok = r.ok && r.digits() > 0
	}
	if !r.ok {
		return 0
	}
	var x float64
	x, r.ok = readNumber(r.s[start:r.at])
	return x
}

// skip goes over a value, and checks only where it ends: it is read later.
func (r *listReader) skip() {
	r.next()
	s, at, depth := r.s, r.at, 0
	for r.ok && at < len(s) {
		c := s[at]
		if c > ']' && c != '{' && c != '}' || '0' <= c && c <= '9' { // most of what stands between texts
			at++
			continue
		}
		switch c {
		case '"':
			for at++; at < len(s) && s[at] != '"'; at++ {
				if s[at] == '\\' {
					at++
				}
			}
			r.ok = at < len(s)
			if depth == 0 {
				r.at = at + 1
				return
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				r.at = at // behind a number or a word
				return
			}
			if depth--; depth == 0 {
				r.at = at + 1
				return
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				r.at = at
				return
			}
		}
		at++
	}
	r.at = at
	r.ok = r.ok && depth == 0
}

// readFields returns the fields of an object, which nobody has yet looked into.
func readFields(raw []byte) (map[string]json.RawMessage, bool) {
	r := newListReader(raw)
	fields := map[string]json.RawMessage{}
	r.take('{')
	for n := 0; r.more('}', n); n++ {
		name := r.text()
		r.take(':')
		r.next()
		start := r.at
		r.skip()
		if _, twice := fields[name]; twice || !r.ok || start == r.at {
			return nil, false
		}
		fields[name] = raw[start:r.at]
	}
	return fields, r.done()
}

// readIDs reads {"token": id, …}.
func readIDs(raw []byte) (map[string]int, error) {
	r := newListReader(raw)
	ids := make(map[string]int, len(raw)/16)
	r.take('{')
	for n := 0; r.more('}', n); n++ {
		token := r.text()
		r.take(':')
		ids[token] = r.id()
	}
	if !r.done() {
		ids = nil
		err := strictjson.Unmarshal(raw, &ids)
		return ids, err
	}
	return ids, nil
}

// readPairs reads [["a", "b"], …].
func readPairs(raw []byte) ([][2]string, bool) {
	r := newListReader(raw)
	pairs := make([][2]string, 0, len(raw)/16)
	r.take('[')
	for n := 0; r.more(']', n); n++ {
		r.take('[')
		a := r.text()
		r.take(',')
		pairs = append(pairs, [2]string{a, r.text()})
		r.take(']')
	}
	return pairs, r.done()
}

// readLines reads ["a b", …].
func readLines(raw []byte) ([]string, bool) {
	r := newListReader(raw)
	lines := make([]string, 0, len(raw)/16)
	r.take('[')
	for n := 0; r.more(']', n); n++ {
		lines = append(lines, r.text())
	}
	return lines, r.done()
}

// readScores reads [["token", score], …].
func readScores(raw []byte) (tokens []string, scores []float64, err error) {
	r := newListReader(raw)
	tokens, scores = make([]string, 0, len(raw)/24), make([]float64, 0, len(raw)/24)
	r.take('[')
	for n := 0; r.more(']', n); n++ {
		r.take('[')
		tokens = append(tokens, r.text())
		r.take(',')
		scores = append(scores, r.number())
		r.take(']')
	}
	if r.done() {
		return tokens, scores, nil
	}
	var entries []json.RawMessage
	if err := strictjson.Unmarshal(raw, &entries); err != nil {
		return nil, nil, fmt.Errorf("vocab: %w", err)
	}
	tokens, scores = make([]string, len(entries)), make([]float64, len(entries))
	for i, raw := range entries {
		var entry []json.RawMessage
		var score *float64 // nil is null
		ok := false
		if strictjson.Unmarshal(raw, &entry) == nil && len(entry) == 2 &&
			strictjson.Unmarshal(entry[0], &tokens[i]) == nil && strictjson.Unmarshal(entry[1], &score) == nil && score != nil {
			scores[i], ok = readNumber(string(entry[1]))
		}
		if !ok {
			return nil, nil, fmt.Errorf("entry %d of vocab is %s, want a token and its score", i, quote.JSON(raw))
		}
	}
	return tokens, scores, nil
}
