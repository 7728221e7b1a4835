// Command words finds phrases that are hard to read in documents, comments and messages.
//
//	go run ./internal/tools/words          # all files below the current folder
//	go run ./internal/tools/words nn docs  # some folders or files
//
// words.txt contains the phrases and replacements. The exit code is 1 if any phrase is found.
package main

import (
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed words.txt
var list string

// phrase is an entry of words.txt.
type phrase struct {
	*regexp.Regexp
	instead string
}

func main() {
	roots := os.Args[1:]
	if len(roots) == 0 {
		roots = []string{"."}
	}
	found := 0
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && path != root && (e.Name() == "testdata" || e.Name()[0] == '.'):
				return filepath.SkipDir
			case e.IsDir():
				return nil
			}
			n, err := check(path)
			found += n
			return err
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "words:", err)
			os.Exit(1)
		}
	}
	if found > 0 {
		fmt.Printf("%d phrases to rewrite\n", found)
		os.Exit(1)
	}
}

var phrases = parse(list)

func parse(list string) (all []phrase) {
	for line := range strings.Lines(list) {
		if pattern, instead, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			all = append(all, phrase{regexp.MustCompile(pattern), instead})
		}
	}
	return all
}

// check prints the phrases in a file and returns their number.
func check(path string) (found int, err error) {
	var parts []part
	switch filepath.Ext(path) {
	case ".go":
		parts, err = ofGo(path)
	case ".md", ".html", ".js", ".tmpl", ".css", ".py":
		var text []byte
		text, err = os.ReadFile(path)
		parts = []part{{1, string(text)}}
	}
	for _, p := range parts {
		for i, line := range strings.Split(p.text, "\n") {
			for _, f := range phrases {
				if at := f.FindString(line); at != "" {
					fmt.Printf("%s:%d: %q: %s\n", path, p.line+i, at, f.instead)
					found++
				}
			}
		}
	}
	return found, err
}

// part is a text that begins at a line of a file.
type part struct {
	line int
	text string
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
