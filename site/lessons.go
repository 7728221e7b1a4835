package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/app/view"
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
	codeComment   = regexp.MustCompile("(?m)^<!-- code: (\\S+) (\\S+) -->\n\n```go\n(?s:.*?)^```\n" +
		"(\n<details><summary>PyTorch</summary>\n(?s:.*?)^</details>\n)?")
)

// lessons renders the sections of docs/lessons.md and of its translations, one page each.
func (b *build) lessons() error {
	install, err := b.install()
	if err != nil {
		return err
	}
	for _, in := range languages {
		list, err := b.lessonsIn(in)
		if err != nil {
			return err
		}
		words, err := in.text("Attention for Go: lessons that compute in the browser, and documentation.")
		if err != nil {
			return err
		}
		err = b.render(page{Path: in.Dir + "index.html", Title: "attn", Lessons: list, Body: install, Scripts: []string{"page.js"},
			Description: string(words), Language: in, Translations: in.translations(upFrom(in.Dir), "index.html")})
		if err != nil {
			return err
		}
	}
	return nil
}

// lessonsIn renders the lessons in a language and returns them with their titles.
func (b *build) lessonsIn(in language) ([]lesson, error) {
	file := in.file(lessonsFile)
	text, err := os.ReadFile(filepath.Join(b.root, file))
	if err != nil {
		return nil, err
	}
	if updated, err := filledCode(b.root, text); err != nil {
		return nil, err
	} else if !bytes.Equal(updated, text) {
		return nil, fmt.Errorf("%s differs from the examples: go run ./site --update", file)
	}
	heads := lessonHeading.FindAllSubmatchIndex(text, -1)
	if len(heads) != len(lessonPages) {
		return nil, fmt.Errorf("%s has %d lessons, want %d", file, len(heads), len(lessonPages))
	}
	list := slices.Clone(lessonPages)
	for i, at := range heads {
		title := string(text[at[2]:at[3]])
		if in.tag == "" && title != list[i].Title {
			return nil, fmt.Errorf("%s: lesson %d is called %q, want %q", file, i+1, title, list[i].Title)
		}
		idea, err := in.text(list[i].Idea)
		if err != nil {
			return nil, err
		}
		list[i].Title, list[i].Idea = title, string(idea)
	}
	for i, at := range heads {
		l, end := list[i], len(text)
		if next := anyHeading.FindIndex(text[at[1]:]); next != nil {
			end = at[1] + next[0]
		}
		body, err := b.lessonBody(l, in, text[at[1]:end])
		if err != nil {
			return nil, err
		}
		p := page{Path: in.Dir + l.Path(), Title: l.Title, Name: l.Name, Lesson: true, Body: body, Lessons: list,
			Description: l.Idea, Program: l.program(), Scripts: []string{"page.js", l.Name + ".js"},
			Language: in, Translations: in.translations(upFrom(in.Dir), l.Path())}
		if l.Name == "minilm" {
			frame, err := view.PageOf([]byte("{}"))
			if err != nil {
				return nil, err
			}
			p.Hashes = policyOf(frame)
		}
		if i > 0 {
			p.Previous = &list[i-1]
		}
		if i+1 < len(list) {
			p.Next = &list[i+1]
		}
		if err := b.render(p); err != nil {
			return nil, fmt.Errorf("lesson %s: %w", l.Name, err)
		}
	}
	return list, nil
}

// upFrom returns the way from a directory of the site to its top.
func upFrom(dir string) string { return strings.Repeat("../", strings.Count(dir, "/")) }

// isLessons reports whether a file has the lessons in some language.
func isLessons(file string) bool { return languageOf(file).file(lessonsFile) == file }

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
func (b *build) lessonBody(l lesson, in language, text []byte) (template.HTML, error) {
	blocks, err := template.New("").Funcs(in.functions(upFrom(in.Dir))).ParseFS(pages, "pages/"+l.Name+".html")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	prose := func(text []byte) error {
		if len(bytes.TrimSpace(text)) == 0 {
			return nil
		}
		part, err := b.markdown(text, in.file(lessonsFile), in.Dir+l.Path())
		if err != nil {
			return err
		}
		for i, s := range part.sections {
			part.sections[i].Title = strings.TrimSuffix(l.Title+" › "+s.Title, " › ")
		}
		b.search = append(b.search, part.sections...)
		html, err := in.tabs(part.html)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "<div class=\"text\">\n%s</div>\n", html)
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

// updateLessons copies the marked regions of the examples into docs/lessons.md and its translations.
func updateLessons(root string) error {
	for _, in := range languages {
		path := filepath.Join(root, in.file(lessonsFile))
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if text, err = filledCode(root, text); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// filledCode returns a text in which each block of code is the region that the comment before it names, and below it the
// same in PyTorch: the region with that name in the lesson's program in examples/torch, and its output.
func filledCode(root string, text []byte) ([]byte, error) {
	var failed error
	heads := lessonHeading.FindAllIndex(text, -1)
	var out bytes.Buffer
	end := 0
	for _, at := range codeComment.FindAllSubmatchIndex(text, -1) {
		file, name := string(text[at[2]:at[3]]), string(text[at[4]:at[5]])
		code, err := region(filepath.Join(root, filepath.FromSlash(file)), name)
		failed = errors.Join(failed, err)
		page := 0
		for page+1 < min(len(heads), len(lessonPages)) && heads[page+1][0] < at[0] {
			page++
		}
		torch := filepath.Join(root, "examples", "torch", lessonPages[page].Name+".py")
		same, err := region(torch, name)
		failed = errors.Join(failed, err)
		out.Write(text[end:at[0]])
		fmt.Fprintf(&out, "<!-- code: %s %s -->\n\n```go\n%s```\n\n<details><summary>PyTorch</summary>\n\n```python\n%s```\n", file, name, code, same)
		result, err := outputOf(torch, name)
		failed = errors.Join(failed, err)
		if result != "" {
			fmt.Fprintf(&out, "\n```text\n%s```\n", result)
		}
		out.WriteString("\n</details>\n")
		end = at[1]
	}
	out.Write(text[end:])
	return out.Bytes(), failed
}

// outputOf returns the lines that a region of a Python program prints: the comment "# Output:" below its end.
func outputOf(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(text), "# lesson: "+name+"\n")
	_, after, _ = strings.Cut(after, "# lesson end\n")
	after, found := strings.CutPrefix(strings.TrimLeft(after, "\n"), "# Output:\n")
	if !found {
		return "", nil
	}
	var lines strings.Builder
	for line := range strings.Lines(after) {
		content, isComment := strings.CutPrefix(line, "#")
		if !isComment {
			break
		}
		lines.WriteString(strings.TrimPrefix(content, " "))
	}
	return lines.String(), nil
}

// torchBlock is a block of Go and the same in PyTorch.
var torchBlock = regexp.MustCompile(`(<pre tabindex="0"><code>(?:[^<]|<span[^>]*>|</span>)*</code></pre>\n)<details><summary>PyTorch</summary>\n((?s:.*?)</details>)`)

// tabs puts Go and PyTorch behind two tabs, with a button that copies. Without a script, PyTorch can be unfolded.
func (l language) tabs(page string) (string, error) {
	var failed error
	text := func(english string) template.HTML {
		text, err := l.text(english)
		failed = errors.Join(failed, err)
		return text
	}
	list := fmt.Sprintf(`<div class="tabs" role="group" aria-label="%s"><button type="button" aria-pressed="true" data-code="go">Go</button>`+
		`<button type="button" aria-pressed="false" data-code="torch">PyTorch</button>`+
		`<button type="button" data-copied="%s">%s</button></div>`, text("Code"), text("Copied"), text("Copy"))
	page = torchBlock.ReplaceAllString(page, "<div class=\"code\">"+list+"\n$1<details><summary>PyTorch</summary>\n$2\n</div>")
	return page, failed
}

// region returns the lines of a file between "// lesson: NAME" and "// lesson end", or the body of
// the example function NAME without its output, without their common indentation.
func region(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	first, last := "// lesson: "+name, []string{"// lesson end"}
	if filepath.Ext(path) == ".py" {
		first, last = "# lesson: "+name, []string{"# lesson end"}
	}
	if strings.HasPrefix(name, "Example") && filepath.Ext(path) == ".go" {
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
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], "\t "))]
	for i := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimPrefix(lines[i], indent), "\t", "    ")
	}
	return strings.Join(lines, ""), nil
}
