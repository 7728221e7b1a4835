// Package strictjson decodes JSON files that people may have edited. Unknown fields and trailing text are errors, and
// every error is one line, in plain words, with its place and the expected value.
//
// The wording of errors of package json, and the offsets of its syntax errors, differ between Go releases. This
// package relies only on properties that all releases share: the type of an error, the amount of text read when it
// occurs, and the token after which a value has the wrong type.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// Unmarshal decodes data, a single JSON value, into v, as package json does.
//
// Errors: text that is not JSON in UTF-8, an escape of half of a surrogate pair, a value with another type than its
// field, a field that v does not have, and text after the value. An error of an UnmarshalJSON method is returned unchanged.
func Unmarshal(data []byte, v any) error { return unmarshal(data, v, true) }

// Lenient is Unmarshal, but ignores fields that v does not have.
func Lenient(data []byte, v any) error { return unmarshal(data, v, false) }

// Request is Unmarshal for text that a user sent. A field that is there twice, of which package json takes the last, is an
// error, as is null in an array, which package json takes for "" or 0.
func Request(data []byte, v any) error {
	if err := Unmarshal(data, v); err != nil {
		return err
	}
	var err error
	walk(data, func(open []level, token json.Token, isKey bool, _ int64) bool {
		if len(open) == 0 {
			return true
		}
		in := &open[len(open)-1]
		switch {
		case isKey:
			key := strings.ToLower(token.(string)) // package json ignores case
			if in.keys[key] {
				err = fmt.Errorf("has the field %s twice", quote.Text(token.(string)))
			}
			in.keys[key] = true
		case in.array && token == nil:
			err = fmt.Errorf("element %s is null", quote.Text(path(open)))
		}
		return err == nil
	})
	return err
}

func unmarshal(data []byte, v any, strict bool) error {
	if err := Characters(data); err != nil {
		return err
	}
	// Some releases count offsets from the start of the value, others from the start of the data.
	value := bytes.TrimLeft(data, space)
	d := json.NewDecoder(bytes.NewReader(value))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(v)
	if err == nil {
		if rest := bytes.TrimLeft(value[d.InputOffset():], space); len(rest) > 0 {
			return errBehind
		}
		return nil
	}
	if err := Syntax(data); err != nil {
		return err
	}
	if mismatch, ok := err.(*json.UnmarshalTypeError); ok { // a wrapped error may concern other text
		return explain(value, mismatch)
	}
	// Package json has no type for this error.
	if name, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field "); isUnknown {
		if text, err := strconv.Unquote(name); err == nil {
			name = quote.Text(text)
		}
		return fmt.Errorf("unknown field %s", name)
	}
	return err
}

// space is the white space allowed around a JSON value.
const space = " \t\r\n"

var errBehind = errors.New("something follows the JSON value")

// Syntax returns an error with the position of the first syntax error in data, or nil if data is one JSON value.
func Syntax(data []byte) error {
	if err := Characters(data); err != nil {
		return err
	}
	if json.Valid(data) {
		return nil
	}
	// The offset in an error of package json is sometimes the offset of a token. The error begins after the longest text
	// that more text could complete.
	at := sort.Search(len(data), func(n int) bool { return isSyntax(scan(data[:n+1])) })
	switch err := scan(data[:at]); {
	case err == nil:
		return errBehind
	case at < len(data):
		found, _ := utf8.DecodeRune(data[at:])
		return fmt.Errorf("is not JSON at %s: unexpected %q", position(data[:at]), found)
	case err == io.EOF:
		return errors.New("is empty, want JSON")
	}
	return errors.New("ends in the middle of its JSON")
}

// Characters returns an error with the position of the first byte that is not UTF-8, or of the first escape of half of
// a surrogate pair. Package json replaces both by U+FFFD.
func Characters(data []byte) error {
	if utf8.Valid(data) {
		if at := LoneSurrogate(data); at >= 0 {
			return fmt.Errorf("has half of a surrogate pair at %s", position(data[:at]))
		}
		return nil
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Errorf("is not UTF-8 at %s", position(data[:at]))
		}
		at += n
	}
}

// LoneSurrogate returns the index of the first escape in a JSON text of half of a surrogate pair, which is not a
// character, or -1.
func LoneSurrogate(data []byte) int {
	for at := 0; ; {
		next := bytes.IndexByte(data[at:], '\\')
		if next < 0 {
			return -1
		}
		at += next
		r := escaped(data[at:])
		switch {
		case r < 0:
			at = min(at+2, len(data)) // \n, \\ and the like
		case !utf16.IsSurrogate(r):
			at += 6
		case utf16.DecodeRune(r, escaped(data[at+6:])) == utf8.RuneError:
			return at
		default:
			at += 12
		}
	}
}

// escaped returns the code unit of the escape at the beginning of text, \u and four hex digits, or -1.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// position returns the line and the column after a text.
func position(before []byte) string {
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}

// scan returns nil if a text begins with a JSON value, an error of package io if more text could complete it, and
// otherwise a *json.SyntaxError.
func scan(text []byte) error {
	var value json.RawMessage
	return json.NewDecoder(bytes.NewReader(text)).Decode(&value)
}

func isSyntax(err error) bool { return errors.As(err, new(*json.SyntaxError)) }

// explain says which value has the wrong type, and what is expected in its place.
func explain(data []byte, err *json.UnmarshalTypeError) error {
	path, token := find(data, err.Offset)
	what := "has"
	switch {
	case strings.HasPrefix(path, "["):
		what = "element " + quote.Text(path) + " has"
	case path != "":
		what = "field " + quote.Text(path) + " has"
	}
	return fmt.Errorf("%s %s where %s is wanted", what, described(token, err.Type), wanted(err.Type))
}

// level is an array or an object that a token is in.
type level struct {
	key   string // of the current value of an object
	keys  map[string]bool
	n     int // number of values or, in an object, of keys and values so far
	array bool
}

// path returns the path of the current value of the innermost level.
func path(open []level) string {
	var b strings.Builder
	for _, l := range open {
		switch {
		case l.array:
			fmt.Fprintf(&b, "[%d]", l.n)
		case b.Len() > 0:
			b.WriteString("." + l.key)
		default:
			b.WriteString(l.key)
		}
	}
	return b.String()
}

// walk calls a function with each token of a JSON value, the levels that it is in, whether it is a key, and the offset of
// its end, until the function returns false.
func walk(data []byte, visit func(open []level, token json.Token, isKey bool, end int64) bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var open []level
	for {
		token, err := d.Token()
		if err != nil { // the end: all of data has been decoded before
			return
		}
		closes := token == json.Delim('}') || token == json.Delim(']')
		key, isKey := token.(string)
		isKey = isKey && len(open) > 0 && !open[len(open)-1].array && open[len(open)-1].n%2 == 0
		if !visit(open, token, isKey, d.InputOffset()) {
			return
		}
		if token == json.Delim('{') || token == json.Delim('[') {
			open = append(open, level{array: token == json.Delim('['), keys: map[string]bool{}})
			continue
		}
		if closes {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			in := &open[len(open)-1]
			if isKey {
				in.key = key
			}
			in.n++
		}
	}
}

// find returns the path of the value in data whose first token ends at an offset, and that token.
func find(data []byte, offset int64) (at string, found json.Token) {
	walk(data, func(open []level, token json.Token, _ bool, end int64) bool {
		at, found = path(open), token
		return end < offset
	})
	return at, found
}

// described describes a token found in place of a value of type t.
func described(token json.Token, t reflect.Type) string {
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return "an array"
		}
		return "an object"
	case bool:
		return "true or false"
	case string:
		return "a string"
	case json.Number:
		if k := t.Kind(); reflect.Int <= k && k <= reflect.Float64 {
			return quote.JSON([]byte(token))
		}
		return "a number"
	}
	return "null"
}

// wanted describes the JSON that a Go type accepts.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, at least 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "an object"
}
