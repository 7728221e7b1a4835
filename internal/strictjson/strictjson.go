// Package strictjson decodes JSON files that people may have edited: unknown fields
// and trailing text are errors, and every error says in plain words where it is and
// what is wanted there.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Unmarshal decodes the one JSON value in data into v, as package json does.
//
// Errors: text that is not JSON, a value of another type than its field, a field that
// v does not have, and anything behind the value. An error of an UnmarshalJSON method
// is returned as it is.
func Unmarshal(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return explain(data, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// explain puts an error of package json into words.
func explain(data []byte, err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("is empty, want JSON")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("ends in the middle of its JSON")
	case errors.As(err, &syntax):
		return syntaxError(data, syntax)
	case errors.As(err, &mismatch):
		got, isNumber := strings.CutPrefix(mismatch.Value, "number ")
		if !isNumber {
			got = article(mismatch.Value)
		}
		if mismatch.Field == "" {
			return fmt.Errorf("has %s where %s is wanted", got, wanted(mismatch.Type))
		}
		return fmt.Errorf("field %q has %s where %s is wanted", mismatch.Field, got, wanted(mismatch.Type))
	}
	if name, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field "); isUnknown {
		return fmt.Errorf("unknown field %s", name)
	}
	return err
}

// syntaxError says where the text stops being JSON.
func syntaxError(data []byte, err *json.SyntaxError) error {
	at := int(err.Offset) - 1 // of the byte that does not fit
	if at < 0 || at >= len(data) {
		return errors.New("ends in the middle of its JSON")
	}
	before := data[:at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:]))) + 1
	found := []rune(string(data[at:min(at+4, len(data))]))[0]
	return fmt.Errorf("is not JSON at line %d, column %d: unexpected %q", line, column, found)
}

// article puts a name of package json into words.
func article(kind string) string {
	switch kind {
	case "object", "array":
		return "an " + kind
	case "bool":
		return "true or false"
	}
	return "a " + kind
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
