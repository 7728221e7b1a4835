// Package words finds phrases that are hard to read in documents, comments and messages. words.txt contains the phrases
// and replacements.
package words

import (
	_ "embed"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

//go:embed words.txt
var list string

// phrase is an entry of words.txt.
type phrase struct {
	*regexp.Regexp
	instead string
}

// TestWords reads all files of the repository.
func TestWords(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all files")
	}
	var phrases []phrase
	for line := range strings.Lines(list) {
		if pattern, instead, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			phrases = append(phrases, phrase{regexp.MustCompile(pattern), instead})
		}
	}
	t.Chdir("../../..")
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != "." && (e.Name() == "testdata" || e.Name()[0] == '.'):
			return filepath.SkipDir
		case e.IsDir():
			return nil
		}
		parts, err := partsOf(path)
		for _, p := range parts {
			for i, line := range strings.Split(p.text, "\n") {
				for _, f := range phrases {
					if at := f.FindString(line); at != "" {
						t.Errorf("%s:%d: %q: %s", path, p.line+i, at, f.instead)
					}
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// part is a text that begins at a line of a file.
type part struct {
	line int
	text string
}

// partsOf returns the texts of a file that are checked.
func partsOf(path string) ([]part, error) {
	switch filepath.Ext(path) {
	case ".go":
		return ofGo(path)
	case ".md", ".html", ".js", ".tmpl", ".css", ".py":
		text, err := os.ReadFile(path)
		return []part{{1, string(text)}}, err
	}
	return nil, nil
}

// ofGo returns the comments and strings of a Go file. For a test file it returns only the comments, and for a
// generated file nothing.
func ofGo(path string) (parts []part, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return parts, nil
		case tok == token.COMMENT && strings.HasPrefix(lit, "// Code generated"):
			return nil, nil
		case tok == token.COMMENT, tok == token.STRING && !strings.HasSuffix(path, "_test.go"):
			parts = append(parts, part{file.Line(pos), lit})
		}
	}
}
