// Package docs tests the documentation: links, pictures and code.
package docs

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// pages returns the Markdown files of the repository, by their paths from its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	walk(t, ".md", func(path, text string) { all[path] = text })
	if len(all) < 15 {
		t.Fatalf("%d pages, want all", len(all))
	}
	return all
}

// walk reads the files of a kind, by their paths from the root of the repository.
func walk(t *testing.T, kind string, visit func(path, text string)) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != "." && (e.Name() == "testdata" || e.Name()[0] == '.'):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(path) != kind:
			return nil
		}
		text, err := fs.ReadFile(root, path)
		visit(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	block   = regexp.MustCompile("(?ms)^ *```go\n(.*?)^ *```$")
)

// TestLinks: what a page links to, or shows, is in the repository, headings included.
func TestLinks(t *testing.T) {
	all, links := pages(t), 0
	for page, text := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(target, "#")
			path := page
			if file != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
			}
			if anchor != "" && !slices.Contains(anchors(all[path]), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", page, target, path)
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links, want those of all pages", links)
	}
}

// anchors returns the names by which the headings of a page are linked to.
func anchors(page string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return names
}

// TestCode: each block of Go is part of a program or test of the repository, so that it
// compiles.
func TestCode(t *testing.T) {
	var files []string
	walk(t, ".go", func(_, text string) { files = append(files, flat(text)) })
	blocks := 0
	for page, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			blocks++
			code := flat(m[1])
			if !slices.ContainsFunc(files, func(file string) bool { return strings.Contains(file, code) }) {
				t.Errorf("%s has code that is in no Go file:\n%s", page, m[1])
			}
		}
	}
	if blocks < 10 {
		t.Errorf("%d blocks of Go, want those of all pages", blocks)
	}
}

// TestReadme: README can be read in minutes, and its code is whole programs.
func TestReadme(t *testing.T) {
	text := pages(t)["README.md"]
	if n := len(strings.Fields(text)); n > 900 {
		t.Errorf("README has %d words, want at most 900", n)
	}
	code := block.FindAllStringSubmatch(text, -1)
	if len(code) == 0 {
		t.Error("README has no Go")
	}
	for _, m := range code {
		if !strings.HasPrefix(m[1], "package main\n") {
			t.Errorf("README has Go that is not a whole program:\n%s", m[1])
		}
	}
	first, _, _ := strings.Cut(text, "\n## See")
	for _, want := range []string{"cross-attention", "grouped-query", "embed texts", "go get github.com/attn-go/attn "} {
		if !strings.Contains(first, want) {
			t.Errorf("the first screen of README lacks %q", want)
		}
	}
}

var comment = regexp.MustCompile(`(?m)\s*//.*$`)

// flat returns code without comments, and without the white space at the ends of lines.
func flat(code string) string {
	var lines []string
	for line := range strings.Lines(comment.ReplaceAllString(code, "")) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// TestNumbers: README counts what the packages have.
func TestNumbers(t *testing.T) {
	var stored []tensor.Format
	for _, f := range tensor.Formats() {
		if f.CheckStorage() == nil {
			stored = append(stored, f)
		}
	}
	want := fmt.Sprintf("%d scores, %d kinds of pretrained models, KV caches in %d number formats",
		len(score.Kinds()), len(pretrained()), len(stored))
	if !strings.Contains(pages(t)["README.md"], want) {
		t.Errorf("README does not say: %s", want)
	}
}

// pretrained returns the families of pretrained models by name.
func pretrained() map[string]models.Family {
	all := map[string]models.Family{}
	for _, f := range models.Families() {
		if !strings.HasPrefix(f.Type, "attn-") {
			all[f.Name] = f
		}
	}
	return all
}

// TestFamilies: models.md has a row for each family, and pruning.md each in the row of its way.
func TestFamilies(t *testing.T) {
	all := pages(t)
	for name, f := range pretrained() {
		if !strings.Contains(all["docs/models.md"], "`"+f.Type+"`") {
			t.Errorf("docs/models.md has no row for %s", name)
		}
	}
	for how, mark := range map[models.HeadPruning]string{
		models.PrunedHeads: "attn, transformers before version 5 |", models.HeadCounts: "| `num_attention_heads` |",
		models.NoPruning: "| nothing: the directory gets the masked form |",
	} {
		before, _, found := strings.Cut(all["docs/pruning.md"], mark)
		row := before[strings.LastIndex(before, "\n")+1:]
		row, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(row), "| "), " |")
		listed := map[string]bool{}
		for name := range strings.SplitSeq(row, ", ") {
			name, _, _ = strings.Cut(name, " (")
			listed[name] = true
		}
		for name, f := range pretrained() {
			if !found || listed[name] != (f.Pruning == how) {
				t.Errorf("docs/pruning.md: %s in the row %q: %v", name, mark, listed[name])
			}
		}
	}
}

// TestFirstCommand: every page of docs begins with a command.
func TestFirstCommand(t *testing.T) {
	for page, text := range pages(t) {
		if path.Dir(page) != "docs" || page == "docs/README.md" {
			continue
		}
		if first, _, _ := strings.Cut(text, "\n## "); !regexp.MustCompile(`(?m)^    \S+ `).MatchString(first) {
			t.Errorf("%s does not begin with a command", page)
		}
	}
}

// TestSizes: DESIGN's table of parts, and what webassembly.md says of its module, are about right.
func TestSizes(t *testing.T) {
	lines := map[string]int{}
	walk(t, ".go", func(file, text string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(text, "// Code generated") {
			return
		}
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			lines[dir] += strings.Count(text, "\n")
		}
	})
	all, rows := pages(t), 0
	near := func(what string, got float64, said string) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(said, ",", ""), 64)
		if rows++; err != nil || math.Abs(got-n) > n/8 {
			t.Errorf("%s: %s, but there are %.0f", what, said, got)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| ((?:`[\\w/]+`(?:, )?)+) \\| ([\\d,]+) \\|").FindAllStringSubmatch(all["DESIGN.md"], -1) {
		sum := 0
		for part := range strings.SplitSeq(m[1], ", ") {
			sum += lines[strings.Trim(part, "`")]
		}
		near("DESIGN.md, lines of "+m[1], float64(sum), m[2])
	}
	info, err := os.Stat("../internal/simd/wasm/kernels.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`kernels.wasm` \\((\\d+) kB").FindAllStringSubmatch(all["docs/webassembly.md"], -1) {
		near("docs/webassembly.md, kB of kernels.wasm", float64(info.Size())/1000, m[1])
	}
	if rows < 7 {
		t.Errorf("%d numbers, want those of both pages", rows)
	}
}

// TestWidth: lines have at most 120 columns, but for tables and the targets of links.
func TestWidth(t *testing.T) {
	for page, text := range pages(t) {
		for i, line := range strings.Split(text, "\n") {
			n := utf8.RuneCountInString(line)
			if n > 120 && !strings.HasPrefix(line, "|") && !strings.Contains(line, "]: ") {
				t.Errorf("%s:%d: %d columns, want at most 120", page, i+1, n)
			}
		}
	}
}
