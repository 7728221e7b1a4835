package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// entry is a tensor of the header. Its data are bytes begin to end after the header.
type entry struct {
	Info
	begin, end int
}

// parseHeader parses the JSON header of a file. Every returned entry is valid on its own; checkLayout checks them
// together.
//
// It reads token by token: decoding into structs and maps would silently keep the last of two equal keys, take
// "DType" for "dtype", and skip unknown fields.
func parseHeader(text []byte) (map[string]string, []entry, error) {
	if !utf8.Valid(text) {
		return nil, nil, errors.New("header is not UTF-8")
	}
	if text[0] != '{' {
		return nil, nil, fmt.Errorf("header begins with %q, want '{'", text[:1])
	}
	h := newHeader("header", text)
	var metadata map[string]string
	var tensors []entry
	err := h.object("header", func(name string) error {
		if name == metadataKey {
			var err error
			metadata, err = h.metadata()
			return err
		}
		if len(tensors) == maxTensors {
			return fmt.Errorf("header has more than %d tensors", maxTensors)
		}
		t, err := h.tensor(name)
		if err != nil {
			return inTensor(name, err)
		}
		tensors = append(tensors, t)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	// The format pads with spaces. Any other bytes there could hide a second file.
	if rest := bytes.Trim(text[h.dec.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, fmt.Errorf("header continues with %q after the end of its JSON, want spaces", rest[:1])
	}
	return metadata, tensors, nil
}

// checkLayout sorts the tensors by the position of their data, and checks that these cover the size bytes after the
// header without gaps or overlaps.
func checkLayout(tensors []entry, size int) error {
	// Stable, so that empty tensors stay in the order of the header.
	slices.SortStableFunc(tensors, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	end := 0
	for i, t := range tensors {
		if t.begin != end {
			after := ""
			if i > 0 {
				after = fmt.Sprintf(", where tensor %s ends", quote.Text(tensors[i-1].Name))
			}
			return inTensor(t.Name, fmt.Errorf("data_offsets %v begin at %d, want %d%s", []int{t.begin, t.end}, t.begin, end, after))
		}
		end = t.end
	}
	if end != size {
		return fmt.Errorf("file contains %d bytes of data, want %d for its tensors", size, end)
	}
	return nil
}

// header parses the JSON of a header, whose fields are all required, or of an index.
type header struct {
	what string // "header" or "index"
	text []byte
	dec  *json.Decoder
}

func newHeader(what string, text []byte) *header {
	h := &header{what, text, json.NewDecoder(bytes.NewReader(text))}
	h.dec.UseNumber()
	return h
}

func (h *header) metadata() (map[string]string, error) {
	var m map[string]string // stays nil if empty, as if it were absent
	err := h.object(metadataKey, func(key string) error {
		value, err := h.string("its value")
		if err != nil {
			return fmt.Errorf("%s %s: %w", metadataKey, quote.Text(key), err)
		}
		if len(m) == maxMetadata {
			return fmt.Errorf("%s has more than %d keys", metadataKey, maxMetadata)
		}
		if m == nil {
			m = map[string]string{}
		}
		m[key] = value
		return nil
	})
	return m, err
}

func (h *header) tensor(name string) (entry, error) {
	t := entry{Info: Info{Name: name}}
	if err := checkName(name); err != nil {
		return t, err
	}
	offsets := []int(nil)
	has := map[string]bool{}
	err := h.object("entry", func(field string) (err error) {
		has[field] = true
		switch field {
		case "dtype":
			var s string
			s, err = h.string(field)
			t.DType = DType(s)
		case "shape":
			t.Shape, err = h.integers(field, maxRank)
		case "data_offsets":
			offsets, err = h.integers(field, 2)
		default:
			err = fmt.Errorf("unknown field %s", quote.Text(field))
		}
		return err
	})
	if err != nil {
		return t, err
	}
	for _, field := range []string{"dtype", "shape", "data_offsets"} {
		if !has[field] {
			return t, fmt.Errorf("has no %s", field)
		}
	}
	if len(offsets) != 2 {
		return t, fmt.Errorf("data_offsets are %v, want 2 numbers", offsets)
	}
	t.begin, t.end = offsets[0], offsets[1]
	if t.end < t.begin {
		return t, fmt.Errorf("data_offsets %v end before they begin", offsets)
	}
	want, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return t, err
	}
	if got := t.end - t.begin; got != want {
		return t, fmt.Errorf("data_offsets %v span %d bytes, want %d for %s %v", offsets, got, want, t.DType, t.Shape)
	}
	return t, nil
}

// object reads an object, and calls value to read the value of each key.
func (h *header) object(what string, value func(key string) error) error {
	token, err := h.token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return fmt.Errorf("%s is %s, want an object", what, describe(token))
	}
	seen := map[string]bool{}
	for h.dec.More() {
		key, err := h.string("a key")
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%s has the key %s twice", what, quote.Text(key))
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	_, err = h.token() // the closing brace, or an error
	return err
}

// integers reads an array of at most `most` non-negative integers.
func (h *header) integers(what string, most int) ([]int, error) {
	token, err := h.token()
	if err != nil {
		return nil, err
	}
	if token != json.Delim('[') {
		return nil, fmt.Errorf("%s is %s, want an array", what, describe(token))
	}
	list := []int{}
	for h.dec.More() {
		if len(list) == most {
			return nil, fmt.Errorf("%s has more than %d numbers", what, most)
		}
		token, err := h.token()
		if err != nil {
			return nil, err
		}
		number, ok := token.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%s[%d] is %s, want a number", what, len(list), describe(token))
		}
		n, err := strconv.ParseUint(number.String(), 10, strconv.IntSize-1)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, fmt.Errorf("%s[%d] is %s, which overflows", what, len(list), quote.JSON([]byte(number)))
		case err != nil:
			return nil, fmt.Errorf("%s[%d] is %s, want a non-negative integer", what, len(list), quote.JSON([]byte(number)))
		}
		list = append(list, int(n))
	}
	_, err = h.token() // the closing bracket, or an error
	return list, err
}

func (h *header) string(what string) (string, error) {
	start := h.dec.InputOffset()
	token, err := h.token()
	if err != nil {
		return "", err
	}
	s, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("%s is %s, want a string", what, describe(token))
	}
	// Package json turns half of a surrogate pair into U+FFFD, which would give different names the same text.
	if strictjson.LoneSurrogate(h.text[start:h.dec.InputOffset()]) >= 0 {
		return "", fmt.Errorf("%s %s has half of a surrogate pair", what, quote.Text(s))
	}
	return s, nil
}

func (h *header) token() (json.Token, error) {
	token, err := h.dec.Token()
	if err != nil {
		return nil, h.notJSON(err)
	}
	return token, nil
}

// notJSON returns an error with the position of the syntax error.
func (h *header) notJSON(err error) error {
	return fmt.Errorf("%s %w", h.what, cmp.Or(strictjson.Syntax(h.text), err))
}
