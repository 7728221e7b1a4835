package main

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// lesson is a page with live figures. Its text, formulas, code and still pictures are a section of
// docs/lessons.md; its figures are the templates of pages/NAME.html.
type lesson struct {
	Number            int
	Name, Title, Idea string
}

// program returns the program that the lesson's worker runs.
func (l lesson) program() string {
	switch l.Name {
	case "reverse", "dates":
		return translator
	case "minilm":
		return ""
	}
	return "lesson"
}

// budget returns the limit on the compressed bytes of the lesson's page.
func (l lesson) budget() int {
	for _, p := range programs {
		if p.name == l.program() {
			return p.budget
		}
	}
	return programs[0].budget
}

// Path returns the path of the lesson's page.
func (l lesson) Path() string { return l.Name + ".html" }

// lessonPages are the lessons in the order of docs/lessons.md. Adding a lesson begins here.
var lessonPages = []lesson{
	{1, "regression", "Kernel regression",
		"Attention without a network: a weighted mean. Drag points, choose a width, then learn it."},
	{2, "scores", "Scores and the masked softmax",
		"Seven ways to compare a query with keys, padding, and why scores are scaled."},
	{3, "reverse", "Encoder and decoder",
		"A small translator learns to write strings backwards while you watch its heads form."},
	{4, "shapes", "Shapes of multi-head attention",
		"Every array from input to output, its axes and its numbers. Choose sizes, and colour an axis."},
	{5, "dates", "Heads of a translator",
		"Type a date in any of ten languages, see every head, and remove the heads that do not matter."},
	{6, "masks", "Masks, layouts and positions",
		"Which keys a query may attend to, where numbers are in memory, and what a cache saves."},
	{7, "minilm", "A real model, opened",
		"All 72 heads of a pretrained model, and three patterns to find in them."},
}

const lessonsFile = "docs/lessons.md"

var (
	lessonHeading = regexp.MustCompile(`(?m)^## \d+\. (.*)\n`)
	anyHeading    = regexp.MustCompile(`(?m)^## `)
	liveComment   = regexp.MustCompile(`(?m)^<!-- live: ([\w.-]+) -->\n(\n!\[[^\]]*\]\([^)]*\)\n)?`)
	codeComment   = regexp.MustCompile("(?m)^<!-- code: (\\S+) (\\S+) -->\n\n```go\n((?s:.*?))^```\n")
)

// lessons renders the sections of docs/lessons.md, one page each.
func (b *build) lessons() error {
	text, err := os.ReadFile(filepath.Join(b.root, lessonsFile))
	if err != nil {
		return err
	}
	if updated, err := filledCode(b.root, text); err != nil {
		return err
	} else if !bytes.Equal(updated, text) {
		return fmt.Errorf("%s differs from the examples: go run ./site --update", lessonsFile)
	}
	heads := lessonHeading.FindAllSubmatchIndex(text, -1)
	if len(heads) != len(lessonPages) {
		return fmt.Errorf("%s has %d lessons, want %d", lessonsFile, len(heads), len(lessonPages))
	}
	for i, at := range heads {
		l, end := lessonPages[i], len(text)
		if next := anyHeading.FindIndex(text[at[1]:]); next != nil {
			end = at[1] + next[0]
		}
		if title := string(text[at[2]:at[3]]); title != l.Title {
			return fmt.Errorf("%s: lesson %d is called %q, want %q", lessonsFile, l.Number, title, l.Title)
		}
		body, err := b.lessonBody(l, text[at[1]:end])
		if err != nil {
			return err
		}
		p := page{Path: l.Path(), Title: l.Title, Name: l.Name, Lesson: true, Body: body, Lessons: lessonPages,
			Description: l.Idea, Program: l.program(), Scripts: []string{"page.js", l.Name + ".js"}}
		if i > 0 {
			p.Previous = &lessonPages[i-1]
		}
		if i+1 < len(lessonPages) {
			p.Next = &lessonPages[i+1]
		}
		if err := b.render(p); err != nil {
			return fmt.Errorf("lesson %s: %w", l.Name, err)
		}
	}
	install, err := b.install()
	if err != nil {
		return err
	}
	return b.render(page{Path: "index.html", Title: "attn", Lessons: lessonPages, Body: install, Scripts: []string{"page.js"},
		Description: "Attention for Go: lessons that compute in the browser, and documentation."})
}

// install renders the section of README that says how to install attn.
func (b *build) install() (template.HTML, error) {
	text, err := os.ReadFile(filepath.Join(b.root, "README.md"))
	if err != nil {
		return "", err
	}
	_, section, found := strings.Cut(string(text), "\n## Install\n")
	if !found {
		return "", fmt.Errorf("README.md has no section Install")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	r, err := b.markdown([]byte("## Install\n"+section), "README.md", "index.html")
	return template.HTML(r.html), err
}

// lessonBody renders a section with its live figures. The picture after a live comment is the still
// version for readers of Markdown, and for browsers without scripts.
func (b *build) lessonBody(l lesson, text []byte) (template.HTML, error) {
	blocks, err := template.ParseFS(pages, "pages/"+l.Name+".html")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	prose := func(text []byte) error {
		if len(bytes.TrimSpace(text)) == 0 {
			return nil
		}
		part, err := b.markdown(text, lessonsFile, l.Path())
		if err != nil {
			return err
		}
		for i, s := range part.sections {
			part.sections[i].Title = strings.TrimSuffix(l.Title+" › "+s.Title, " › ")
		}
		b.search = append(b.search, part.sections...)
		fmt.Fprintf(&out, "<div class=\"text\">\n%s</div>\n", part.html)
		return nil
	}
	for {
		m := liveComment.FindSubmatchIndex(text)
		if m == nil {
			err := prose(text)
			return template.HTML(out.String()), err
		}
		if err := prose(text[:m[0]]); err != nil {
			return "", err
		}
		if err := blocks.ExecuteTemplate(&out, string(text[m[2]:m[3]]), l); err != nil {
			return "", err
		}
		if m[4] >= 0 {
			out.WriteString("<noscript>\n")
			if err := prose(text[m[4]:m[5]]); err != nil {
				return "", err
			}
			out.WriteString("</noscript>\n")
		}
		text = text[m[1]:]
	}
}

// updateLessons copies the marked regions of the examples into docs/lessons.md.
func updateLessons(root string) error {
	path := filepath.Join(root, lessonsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = filledCode(root, text); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// filledCode returns a text in which each block of code is the region that the comment before it
// names.
func filledCode(root string, text []byte) ([]byte, error) {
	var failed error
	text = codeComment.ReplaceAllFunc(text, func(block []byte) []byte {
		m := codeComment.FindSubmatch(block)
		code, err := region(filepath.Join(root, filepath.FromSlash(string(m[1]))), string(m[2]))
		if err != nil {
			failed = err
		}
		return fmt.Appendf(nil, "<!-- code: %s %s -->\n\n```go\n%s```\n", m[1], m[2], code)
	})
	return text, failed
}

// region returns the lines of a file between "// lesson: NAME" and "// lesson end", or the body of
// the example function NAME without its output, without their common indentation.
func region(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	first, last := "// lesson: "+name, []string{"// lesson end"}
	if strings.HasPrefix(name, "Example") {
		first, last = "func "+name+"() {", []string{"// Output:", "}"}
	}
	var lines []string
	inside, found := false, false
	for line := range strings.Lines(string(text)) {
		content := strings.TrimSpace(line)
		if content == first {
			if found {
				return "", fmt.Errorf("%s: region %s is marked twice", path, name)
			}
			inside, found = true, true
			continue
		}
		if at := strings.TrimRight(line, "\n"); slices.Contains(last, content) && (content != "}" || at == "}") {
			inside = false
		}
		if inside {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 || inside {
		return "", fmt.Errorf("%s: region %s is missing or has no end", path, name)
	}
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], "\t"))]
	for i := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimPrefix(lines[i], indent), "\t", "    ")
	}
	return strings.Join(lines, ""), nil
}
