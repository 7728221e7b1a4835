package main

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	markup "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const repository = "https://github.com/attn-go/attn/blob/main/"

// section is a heading with the text below it: what a search finds.
type section struct {
	Page  string `json:"page"`
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	level int
}

// document is a Markdown file of the repository that the site shows.
type document struct{ Source, Path, Title string }

// rendered is a Markdown text as HTML.
type rendered struct {
	html     string
	sections []section
}

// markdown renders a text of the file source for the page at out. Links to files that the site
// shows lead to their pages, links to others to the repository.
func (b *build) markdown(source []byte, from, out string) (rendered, error) {
	source = unspaced.ReplaceAll(follows.ReplaceAll(source, nil), []byte("$1$2$3$4"))
	var r rendered
	ids := parser.NewContext(parser.WithIDs(&slugs{}))
	tables := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	code := renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))
	md := goldmark.New(goldmark.WithExtensions(tables, extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(markup.WithUnsafe(), code)) // the repository's HTML is trusted
	tree := md.Parser().Parse(text.NewReader(source), parser.WithContext(ids))
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Link:
			n.Destination, err = b.link(n.Destination, from, out)
		case *ast.Image:
			n.Destination, err = b.link(n.Destination, from, out)
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			name := string(id.([]byte))
			r.sections = append(r.sections, section{Page: out, ID: name, Title: plain(n, source), level: n.Level})
		}
		code, _ := n.(*ast.FencedCodeBlock)
		formula := code != nil && string(code.Language(source)) == "math" // TeX is not for readers
		if n.Parent() == tree && n.Kind() != ast.KindHeading && !formula {
			if len(r.sections) == 0 {
				r.sections = append(r.sections, section{Page: out})
			}
			last := &r.sections[len(r.sections)-1]
			last.Text = strings.TrimSpace(last.Text + " " + plain(n, source))
		}
		return ast.WalkContinue, err
	})
	if err != nil {
		return r, fmt.Errorf("%s: %w", from, err)
	}
	var page bytes.Buffer
	if err := md.Renderer().Render(&page, source, tree); err != nil {
		return r, fmt.Errorf("%s: %w", from, err)
	}
	r.html = page.String()
	return r, nil
}

// link returns the address of a link's target, from the page at out, and copies pictures.
func (b *build) link(target []byte, from, out string) ([]byte, error) {
	to := string(target)
	lesson := func(l lesson) bool { return isIndex(from) && strings.HasPrefix(to, fmt.Sprintf("#%d-", l.Number)) }
	if n := slices.IndexFunc(lessonPages, lesson); n >= 0 {
		return []byte(lessonPages[n].Path()), nil
	}
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") || strings.HasPrefix(to, "mailto:") {
		return target, nil
	}
	at := strings.Index(to+"#", "#")
	file, anchor := path.Join(path.Dir(from), to[:at]), to[at:]
	up := upFrom(out)
	switch {
	case isIndex(file):
		return []byte(up + languageOf(file).Dir + "index.html"), nil
	case slices.Contains(imageTypes, path.Ext(file)):
		if b.files[file] == nil {
			data, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(file)))
			if err != nil {
				return nil, err
			}
			if err := b.write(file, data); err != nil {
				return nil, err
			}
		}
		return []byte(up + file), nil
	}
	if page, ok := documentPath(file); ok {
		return []byte(up + page + anchor), nil
	}
	return []byte(repository + file + anchor), nil
}

var imageTypes = []string{".png", ".svg", ".gif", ".webp"}

// documentPath returns where the site shows a Markdown file.
func documentPath(file string) (string, bool) {
	dir, name := path.Split(file)
	if path.Ext(name) != ".md" || !slices.Contains([]string{"", "docs/", "bench/"}, dir) {
		return "", false
	}
	if name == "README.md" {
		return dir + "index.html", true // at the top, the page of all lessons
	}
	return dir + strings.TrimSuffix(name, ".md") + ".html", true
}

// documents renders the Markdown files of the repository's top, docs and bench.
func (b *build) documents() error {
	root := os.DirFS(b.root)
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "bench/*.md"} {
		found, _ := fs.Glob(root, pattern) // the patterns are valid
		files = append(files, found...)
	}
	var list []document
	texts := map[string][]byte{}
	for _, source := range files {
		var err error
		if texts[source], err = fs.ReadFile(root, source); err != nil {
			return err
		}
		if isIndex(source) {
			continue
		}
		first, _, _ := strings.Cut(string(texts[source]), "\n")
		to, _ := documentPath(source)
		list = append(list, document{source, to, strings.TrimPrefix(first, "# ")})
	}
	for _, d := range list {
		r, err := b.markdown(texts[d.Source], d.Source, d.Path)
		if err != nil {
			return err
		}
		in := languageOf(d.Source)
		english := strings.TrimSuffix(d.Source, in.file(".md")) + ".md"
		note, err := b.note(in, d.Source, texts[d.Source], texts[english])
		if err != nil {
			return err
		}
		p := page{Path: d.Path, Title: d.Title, Body: note + template.HTML(r.html), Documents: list, Source: d.Source,
			Scripts: []string{"page.js"}, Language: in}
		for _, l := range languages {
			if to, _ := documentPath(l.file(english)); texts[l.file(english)] != nil && texts[languages[1].file(english)] != nil {
				p.Translations = append(p.Translations, translation{p.Root() + to, l.Code, l.Name, l.Code == in.Code})
			}
		}
		for _, s := range r.sections {
			if s.level == 2 {
				p.Parts = append(p.Parts, s)
			}
		}
		for i := range r.sections {
			if r.sections[i].level > 1 {
				r.sections[i].Title = d.Title + " › " + r.sections[i].Title
			}
		}
		b.search = append(b.search, r.sections...)
		if err := b.render(p); err != nil {
			return err
		}
	}
	for _, in := range languages {
		p := page{Path: in.Dir + "search.html", Title: string(in.text("Search")), Search: true, Scripts: []string{"page.js", "search.js"},
			Language: in, Translations: in.translations(upFrom(in.Dir), "search.html")}
		if err := b.render(p); err != nil {
			return err
		}
	}
	return nil
}

// plain returns the text of a node without markup.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it never fails
		if !entering {
			if n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			out.Write(n.Segment.Value(source))
			if n.SoftLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(n.Value)
		case *ast.AutoLink:
			out.Write(n.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			out.WriteString(lines(n, source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// slugs makes the names of headings as GitHub does, so that links work in both places.
type slugs struct{ seen []string }

func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, string(value))
	name := slug
	for i := 1; slices.Contains(s.seen, name); i++ {
		name = fmt.Sprintf("%s-%d", slug, i)
	}
	s.seen = append(s.seen, name)
	return []byte(name)
}

func (s *slugs) Put([]byte) {}

// blocks renders fenced blocks: formulas as MathML.
type blocks struct{}

func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			return ast.WalkContinue, nil
		}
		code := lines(n, source)
		if string(n.(*ast.FencedCodeBlock).Language(source)) == "math" {
			formula, err := mathML(code)
			fmt.Fprintf(w, "<div class=\"formula\">%s</div>\n", formula)
			return ast.WalkContinue, err
		}
		fmt.Fprintf(w, "<pre tabindex=\"0\"><code>%s</code></pre>\n", codeLines(code))
		return ast.WalkContinue, nil
	})
}

// codeLines returns code as HTML in which each line is an element whose class is its indentation in steps of four
// spaces. Where a line is wrapped, as on phones, the style indents its continuation. The text is still that of the code.
func codeLines(code string) string {
	var page strings.Builder
	for line := range strings.Lines(code) {
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		fmt.Fprintf(&page, "<span class=\"line in%d\">%s</span>", min(spaces/4, 4), html.EscapeString(line))
	}
	return page.String()
}

// lines returns the source of a block.
func lines(n ast.Node, source []byte) string {
	var text strings.Builder
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		text.Write(at.Value(source))
	}
	return text.String()
}
