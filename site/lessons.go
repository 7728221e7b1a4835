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

	"github.com/attn-go/attn/internal/app/view"
)

// lesson is a page with live figures. Its text, formulas, code and still pictures are a section of
// docs/lessons.md; its figures are the templates of pages/NAME.html.
type lesson struct {
	Number            int
	Name, Title, Idea string
	program           string // that the lesson's worker runs
}

// budget returns the limit on the compressed bytes of the lesson's page.
func (l lesson) budget() int {
	for _, p := range programs {
		if p.name == l.program {
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
		"Attention without a network: a weighted mean. Drag points, choose a width, then learn it.", "lesson"},
	{2, "scores", "Scores and the masked softmax",
		"Seven ways to compare a query with keys, padding, and why scores are scaled.", "lesson"},
	{3, "reverse", "Encoder and decoder",
		"A small translator learns to write strings backwards while you watch its heads form.", translator},
	{4, "shapes", "Shapes of multi-head attention",
		"Every array from input to output, its axes and its numbers. Choose sizes, and colour an axis.", "lesson"},
	{5, "dates", "Heads of a translator",
		"Type a date in any of twelve languages, see every head, and remove the heads that do not matter.", translator},
	{6, "masks", "Masks, layouts and positions",
		"Which keys a query may attend to, where numbers are in memory, and what a cache saves.", "lesson"},
	{7, "minilm", "A real model, opened",
		"All 72 heads of a pretrained model, and three patterns to find in them.", ""},
	{8, "linear", "A kernel that factors",
		"Attention without a softmax: a state of one size, what it forgets, and four layers that recall.", translator},
	{9, "induction", "Which head did it?",
		"Silence heads, patch them from another sequence, find the pair that does it, and prune the rest.", translator},
}

const lessonsFile = "docs/lessons.md"

var (
	lessonHeading = regexp.MustCompile(`(?m)^## \d+\. (.*)\n`)
	anyHeading    = regexp.MustCompile(`(?m)^## `)
	liveComment   = regexp.MustCompile(`(?m)^<!-- live: ([\w.-]+) -->\n(\n!\[[^\]]*\]\([^)]*\)\n)?`)
)

// lessons renders the sections of docs/lessons.md and of its translations, one page each.
func (b *build) lessons() error {
	for _, in := range languages {
		list, books, err := b.lessonsIn(in)
		if err != nil {
			return err
		}
		install, err := b.install(in)
		if err != nil {
			return err
		}
		words := in.text("Attention for Go: lessons that compute in the browser, and documentation.")
		err = b.render(page{Path: in.Dir + "index.html", Title: "attn", Lessons: list, Body: books + install,
			Program: translator, Scripts: []string{"page.js", "home.js", "first-index.js"},
			Description: string(words), Language: in, Translations: in.translations(upFrom(in.Dir), "index.html")})
		if err != nil {
			return err
		}
	}
	return nil
}

// lessonSections returns the sections of the file of lessons in a language.
func (b *build) lessonSections(in language) ([][]byte, error) {
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
	list := sectionsOf(text)
	if n := len(list) - 1; n > len(lessonPages) || in.tag == "" && n < len(lessonPages) {
		return nil, fmt.Errorf("%s has %d lessons, want %d", file, n, len(lessonPages))
	}
	return list, nil
}

// lessonsIn renders the lessons in a language and returns them with their titles, and the table that leads from textbooks
// to them. Lessons that are not translated are in English; above those whose English text has changed is the day of the
// text that they follow.
func (b *build) lessonsIn(in language) ([]lesson, template.HTML, error) {
	english, err := b.lessonSections(languages[0])
	if err != nil {
		return nil, "", err
	}
	sections, err := b.lessonSections(in)
	if err != nil {
		return nil, "", err
	}
	notes := make([]template.HTML, len(sections))
	for i, section := range sections {
		if notes[i], err = b.note(in, in.file(lessonsFile), section, english[i]); err != nil {
			return nil, "", err
		}
	}
	_, table, _ := bytes.Cut(sections[0], []byte("\n## "))
	books, err := b.markdown(append([]byte("## "), table...), in.file(lessonsFile), in.Dir+"index.html")
	if err != nil {
		return nil, "", err
	}
	for i := len(sections); i < len(english); i++ {
		sections = append(sections, english[i])
		notes = append(notes, "<p class=\"note follows\">"+in.text("This lesson is not translated yet.")+"</p>\n")
	}
	sections, notes = sections[1:], notes[1:]
	list := slices.Clone(lessonPages)
	for i, section := range sections {
		title := string(lessonHeading.FindSubmatch(section)[1])
		if in.tag == "" && title != list[i].Title {
			return nil, "", fmt.Errorf("%s: lesson %d is called %q, want %q", lessonsFile, i+1, title, list[i].Title)
		}
		list[i].Title, list[i].Idea = title, string(in.text(list[i].Idea))
	}
	for i, section := range sections {
		l := list[i]
		_, text, _ := bytes.Cut(section, []byte("\n"))
		if other := anyHeading.FindIndex(text); other != nil {
			text = text[:other[0]]
		}
		body, err := b.lessonBody(l, in, text)
		if err != nil {
			return nil, "", err
		}
		line, err := b.booksOf(l, in, table)
		if err != nil {
			return nil, "", err
		}
		body = notes[i] + line + body
		p := page{Path: in.Dir + l.Path(), Title: l.Title, Name: l.Name, Lesson: true, Body: body, Lessons: list,
			Description: l.Idea, Program: l.program, Scripts: []string{"page.js", l.Name + ".js"},
			Language: in, Translations: in.translations(upFrom(in.Dir), l.Path())}
		if bytes.Contains(text, []byte("<!-- live: "+l.Name+".exercise -->")) {
			p.Scripts = append(p.Scripts, "exercise.js")
		}
		if l.program != "" {
			p.Scripts = append(p.Scripts, "first-"+l.Name+".js") // which page.js imports
		}
		if l.Name == "minilm" {
			frame, err := view.PageOf([]byte("{}"))
			if err != nil {
				return nil, "", err
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
			return nil, "", fmt.Errorf("lesson %s: %w", l.Name, err)
		}
	}
	return list, template.HTML(books.html), nil
}

// booksOf returns a line with the rows of the table of textbooks that lead to a lesson.
func (b *build) booksOf(l lesson, in language, table []byte) (template.HTML, error) {
	var list []string
	for row := range strings.Lines(string(table)) {
		if cells := strings.Split(row, "|"); len(cells) == 4 && strings.Contains(cells[2], fmt.Sprintf("(#%d-", l.Number)) {
			list = append(list, strings.TrimSpace(cells[1]))
		}
	}
	if list == nil {
		return "", nil
	}
	line := string(in.text("In your textbook: ")) + strings.Join(list, " · ")
	r, err := b.markdown([]byte(line), in.file(lessonsFile), in.Dir+l.Path())
	return template.HTML("<div class=\"text\">\n<p class=\"quiet small\">" + strings.TrimPrefix(r.html, "<p>") + "</div>\n"), err
}

// upFrom returns the way from a directory of the site to its top.
func upFrom(dir string) string { return strings.Repeat("../", strings.Count(dir, "/")) }

// isIndex reports whether the site shows a file as the page of all lessons: the lessons or README, in some language.
func isIndex(file string) bool {
	in := languageOf(file)
	return file == in.file(lessonsFile) || file == in.file("README.md")
}

// install renders the first section of README, which says how to install attn.
func (b *build) install(in language) (template.HTML, error) {
	var first [2][]byte // in English, and in the language
	for i, file := range []string{"README.md", in.file("README.md")} {
		text, err := os.ReadFile(filepath.Join(b.root, file))
		if err != nil {
			return "", err
		}
		_, section, _ := bytes.Cut(text, []byte("\n## "))
		section, _, _ = bytes.Cut(section, []byte("\n## "))
		first[i] = append([]byte("## "), section...)
	}
	note, err := b.note(in, in.file("README.md"), first[1], first[0])
	if err != nil {
		return "", err
	}
	r, err := b.markdown(first[1], in.file("README.md"), in.Dir+"index.html")
	return note + template.HTML(r.html), err
}

// lessonBody renders a section with its live figures. The picture after a live comment is the still
// version for readers of Markdown, and for browsers without scripts.
func (b *build) lessonBody(l lesson, in language, text []byte) (template.HTML, error) {
	blocks, err := template.New("").Funcs(in.functions(upFrom(in.Dir))).ParseFS(pages, "pages/"+l.Name+".html", "pages/exercise.html")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	whole := map[string]bool{}
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
		page, err := b.tabs(l, in, part.html, whole)
		fmt.Fprintf(&out, "<div class=\"text\">\n%s</div>\n", page)
		return err
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
