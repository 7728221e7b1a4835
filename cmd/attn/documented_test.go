package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/flags"
)

// TestDocumentedCommands parses every command line in the documentation.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, page := range append(pages, "../../README.md", "../../bench/README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range documented(string(text)) {
			count++
			args := shellWords(line)
			var parsed commands
			parser := kong.Must(&parsed, append(options(console{out: new(bytes.Buffer), err: new(bytes.Buffer)}), kong.Exit(func(int) {}))...)
			if _, err := parser.Parse(flags.JoinNegative(args[1:])); err != nil {
				t.Errorf("%s: %s\n%v", filepath.Base(page), line, err)
			}
		}
	}
	if count < 50 {
		t.Errorf("%d command lines, want those of all pages", count)
	}
}

// documented returns the command lines of a page: the lines of indented blocks that begin with the
// name of the command.
func documented(page string) (lines []string) {
	page = strings.ReplaceAll(page, "\\\n", " ")
	for line := range strings.Lines(page) {
		command, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		command = strings.TrimPrefix(strings.TrimPrefix(command, "go run ./cmd/"), "!")
		if indented && strings.HasPrefix(command, "attn ") && !strings.Contains(command, "…") && !strings.Contains(command, "COMMAND") {
			lines = append(lines, command)
		}
	}
	return lines
}

// shellWords splits a line as a shell does, with quotes. It drops comments and redirections.
func shellWords(line string) (list []string) {
	var word strings.Builder
	begun, quote := false, rune(0)
	end := func() {
		if begun {
			list = append(list, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && (c == '#' && !begun || c == '<' || c == '>' || c == '|'):
			end()
			return list
		case quote == 0 && c == ' ':
			end()
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	end()
	return list
}
