package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"unicode/utf8"
)

const (
	mostBytes = 1 << 20 // of a request
	mostTexts = 256     // in a request
)

// readTexts reads a body that is an array of texts.
func readTexts(w http.ResponseWriter, r *http.Request) (texts []string, err error) {
	body, err := read(w, r)
	if err != nil {
		return nil, err
	}
	var list []*string
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	return notNull(list)
}

// readQuery reads a body that is an object with a query and texts.
func readQuery(w http.ResponseWriter, r *http.Request) (query string, texts []string, err error) {
	body, err := read(w, r)
	if err != nil {
		return "", nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return "", nil, err
	}
	var q *string
	var list []*string
	d := json.NewDecoder(bytes.NewReader(body))
	_, _ = d.Token() // {
	for seen := map[any]bool{}; d.More(); {
		key, _ := d.Token()
		switch {
		case seen[key]: // a map has the last of equal keys
			err = errors.New("is there twice")
		case key == "query":
			err = d.Decode(&q)
		case key == "texts":
			err = d.Decode(&list)
		default:
			err = errors.New("is unknown, want query and texts")
		}
		if err != nil {
			return "", nil, fmt.Errorf("key %q: %w", key, err)
		}
		seen[key] = true
	}
	if q == nil {
		return "", nil, errors.New("no query, want a string")
	}
	texts, err = notNull(list)
	return *q, texts, err
}

// Package json replaces what is no text by U+FFFD: escapes of a half of a surrogate pair, and invalid UTF-8.
var (
	whole = regexp.MustCompile(`(?i)\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`) // a backslash, or both halves
	half  = regexp.MustCompile(`(?i)\\ud[89a-f][0-9a-f]{2}`)
)

// read reads a body, without what package json would replace.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(body) {
		return nil, errors.New("the body is invalid UTF-8")
	}
	if lone := half.Find(whole.ReplaceAll(body, []byte(" "))); lone != nil {
		return nil, fmt.Errorf("%s is half of a surrogate pair, want both halves", lone)
	}
	return body, nil
}

// notNull returns the texts of a list, of which none may be null.
func notNull(list []*string) (texts []string, err error) {
	if len(list) == 0 || len(list) > mostTexts {
		return nil, fmt.Errorf("%d texts, want 1 to %d", len(list), mostTexts)
	}
	for i, text := range list {
		if text == nil {
			return nil, fmt.Errorf("text %d is null, want a string", i)
		}
		texts = append(texts, *text)
	}
	return texts, nil
}
