// Package strictjson decodes JSON files that people may have edited: unknown fields
// and trailing text are errors, and every error says in plain words where it is and
// what is wanted there, on one line.
//
// Package json words its errors in another way from release to release, and its errors of
// syntax have other offsets. What this package says follows from what all releases have in
// common: the type of an error, how much of the text has been read when it comes, and behind
// which token a value does not fit.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// Unmarshal decodes the one JSON value in data into v, as package json does.
//
// Errors: text that is not JSON, a value of another type than its field, a field that
// v does not have, and anything behind the value. An error of an UnmarshalJSON method
// is returned as it is.
func Unmarshal(data []byte, v any) error { return unmarshal(data, v, true) }

// Lenient is Unmarshal that passes over fields that v does not have.
func Lenient(data []byte, v any) error { return unmarshal(data, v, false) }

func unmarshal(data []byte, v any, strict bool) error {
	value := bytes.TrimLeft(data, space) // from which some releases count, where others count from the start
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
	if mismatch, ok := err.(*json.UnmarshalTypeError); ok { // not a wrapped one, which may be about other text
		return explain(value, mismatch)
	}
	// Package json has no type for this one.
	if name, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field "); isUnknown {
		if text, err := strconv.Unquote(name); err == nil {
			name = quote.Text(text)
		}
		return fmt.Errorf("unknown field %s", name)
	}
	return err
}

// space is what may stand around a JSON value.
const space = " \t\r\n"

var errBehind = errors.New("something follows the JSON value")

// Syntax returns an error that says where data stops being JSON, nil if all of it is one
// value.
func Syntax(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	// The offset in an error of package json is sometimes that of a token, so what counts is
	// how much of the text it has read. One release reads a byte too many in one case.
	text := bytewise{data: data}
	at := len(data)
	if isSyntax(scan(&text)) {
		at = text.read - 1
	}
	for at > 0 && isSyntax(scan(bytes.NewReader(data[:at]))) {
		at--
	}
	switch err := scan(bytes.NewReader(data[:at])); {
	case err == nil:
		return errBehind
	case at < len(data):
		before := data[:at]
		line := bytes.Count(before, []byte("\n")) + 1
		column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
		found, _ := utf8.DecodeRune(data[at:])
		return fmt.Errorf("is not JSON at line %d, column %d: unexpected %q", line, column, found)
	case err == io.EOF:
		return errors.New("is empty, want JSON")
	}
	return errors.New("ends in the middle of its JSON")
}

// scan returns nil if a text begins with a JSON value, an error of package io if it could by
// more text, and otherwise a *json.SyntaxError.
func scan(text io.Reader) error {
	var value json.RawMessage
	return json.NewDecoder(text).Decode(&value)
}

func isSyntax(err error) bool { return errors.As(err, new(*json.SyntaxError)) }

// bytewise reads one byte after the other.
type bytewise struct {
	data []byte
	read int
}

func (b *bytewise) Read(p []byte) (int, error) {
	if b.read == len(b.data) {
		return 0, io.EOF
	}
	b.read++
	return copy(p[:1], b.data[b.read-1:]), nil
}

// explain says which value does not fit, and what is wanted in its place.
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

// find returns the path of the value in data whose first token ends at an offset, and that
// token.
func find(data []byte, offset int64) (string, json.Token) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	type level struct {
		key   string
		n     int // of values or, in an object, keys and values so far
		array bool
	}
	var open []level
	path := func() string {
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
	for {
		token, err := d.Token()
		if err != nil { // all of data has been decoded once
			return path(), nil
		}
		if d.InputOffset() >= offset {
			return path(), token
		}
		if token == json.Delim('{') || token == json.Delim('[') {
			open = append(open, level{array: token == json.Delim('[')})
			continue
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			in := &open[len(open)-1]
			if key, ok := token.(string); ok && !in.array && in.n%2 == 0 {
				in.key = key
			}
			in.n++
		}
	}
}

// described puts a token into words, where a value of type t is wanted.
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

// wanted says what JSON a Go type takes.
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
