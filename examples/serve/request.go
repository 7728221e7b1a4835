package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Package json replaces what is no text by U+FFFD: escapes of a half of a surrogate pair, and invalid UTF-8.
var (
	whole = regexp.MustCompile(`(?i)\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`) // a backslash, or both halves
	half  = regexp.MustCompile(`(?i)\\ud[89a-f][0-9a-f]{2}`)
)

// read decodes a body that is an object into the values of its keys. Unlike package json, it rejects keys that are
// unknown, in another case or there twice, and what is no text. A key that is null keeps its value.
func (c *call) read(b *batcher, fields map[string]any) error {
	body, err := c.body(b)
	if err != nil {
		return err
	}
	if !utf8.Valid(body) {
		return problemf(invalid, nil, "the body is invalid UTF-8")
	}
	if lone := half.Find(whole.ReplaceAll(body, []byte(" "))); lone != nil {
		return problemf(invalid, nil, "%s is half of a surrogate pair, want both halves", lone)
	}
	if err := json.Unmarshal(body, &struct{}{}); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return problemf(invalid, nil, "the body is not JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if open, _ := d.Token(); open != json.Delim('{') {
		return problemf(invalid, nil, "the body is not an object")
	}
	for seen := map[string]bool{}; d.More(); {
		t, _ := d.Token()
		key := t.(string)
		value, known := fields[key]
		if !known {
			return problemf(invalid, key, "%q is unknown, want %s", key, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if seen[key] {
			return problemf(invalid, key, "%q is there twice", key)
		}
		seen[key] = true
		err, wrong, large := d.Decode(value), new(json.UnmarshalTypeError), new(problem)
		switch {
		case errors.As(err, &wrong):
			return problemf(invalid, key, "%q is a %s, want a %s", key, wrong.Value, wrong.Type)
		case errors.As(err, &large):
			return problemf(large.kind, key, "%q %w", key, err)
		case err != nil:
			return problemf(invalid, key, "%q %w", key, err)
		}
	}
	return nil
}

// input is what the model runs on once: a text, a pair of texts, or tokens.
type input struct {
	texts  []string
	tokens []int
}

// inputs is a text, a list of tokens, or a list of either.
type inputs []input

var errInputs = errors.New("is not a string, a list of strings, a list of token ids, or a list of such lists")

// UnmarshalJSON decodes a value, without more memory than the allowed number of texts takes.
func (all *inputs) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	first, err := d.Token()
	if text, ok := first.(string); ok {
		*all = inputs{{texts: []string{text}}}
	}
	if first != json.Delim('[') {
		if *all == nil {
			return errInputs
		}
		return nil
	}
	var list []int // of tokens
	for d.More() && err == nil {
		if len(*all) == mostTexts {
			return problemf(tooLarge, nil, "has more than %d texts", mostTexts)
		}
		var x input
		t, _ := d.Token()
		switch t := t.(type) {
		case string:
			x.texts = []string{t}
		case json.Number:
			list, err = appendToken(list, t)
			continue
		case json.Delim:
			for x.tokens = []int{}; t == '[' && d.More() && err == nil; {
				id, _ := d.Token()
				x.tokens, err = appendToken(x.tokens, id)
			}
			if t != '[' {
				return errInputs
			}
			_, _ = d.Token() // ]
		default:
			return errInputs
		}
		if len(*all) > 0 && ((*all)[0].tokens == nil) != (x.tokens == nil) {
			return errInputs
		}
		*all = append(*all, x)
	}
	if list != nil && *all != nil {
		return errInputs
	}
	if list != nil {
		*all = inputs{{tokens: list}}
	}
	if *all == nil && err == nil {
		return errors.New("is empty, want 1 text or more")
	}
	return err
}

func appendToken(ids []int, t json.Token) ([]int, error) {
	number, ok := t.(json.Number)
	id, err := strconv.Atoi(number.String())
	if !ok || err != nil {
		return nil, fmt.Errorf("has %v where a token id should be", t)
	}
	return append(ids, id), nil
}

// texts is a list of texts.
type texts []string

func (list *texts) UnmarshalJSON(data []byte) error {
	var all inputs
	if err := all.UnmarshalJSON(data); err != nil {
		return err
	}
	for _, x := range all {
		if x.texts == nil || data[0] != '[' {
			return errors.New("is not a list of strings")
		}
		*list = append(*list, x.texts[0])
	}
	return nil
}
