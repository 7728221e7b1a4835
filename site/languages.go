package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strings"
)

//go:embed words
var dictionaries embed.FS

// language is a language of the lessons. Documentation is in English.
type language struct {
	Code, Name string
	Dir        string // of its pages: "", or its tag with a slash
	tag        string // in names of files, such as docs/lessons.zh.md; "" for English
	words      map[string]string
	missing    map[string]bool // texts of pages that words lacks
}

// languages are those of the lessons. Adding one begins here: it needs docs/lessons.TAG.md and words/TAG.json, which has
// the texts of pages and scripts by the English ones.
var languages = []language{
	{Code: "en", Name: "English", words: map[string]string{}},
	{Code: "zh", Name: "简体中文", Dir: "zh/", tag: "zh"},
	{Code: "ja", Name: "日本語", Dir: "ja/", tag: "ja"},
}

func init() {
	for i, l := range languages {
		if l.tag == "" {
			continue
		}
		languages[i].missing = map[string]bool{}
		data, err := dictionaries.ReadFile(path.Join("words", l.tag+".json"))
		if err == nil {
			err = json.Unmarshal(data, &languages[i].words)
		}
		if err != nil {
			panic(fmt.Sprintf("site: words of %s: %v", l.Name, err))
		}
	}
}

// text returns the text of a page in the language, or in English if it is not translated. Line ends in English count as
// spaces.
func (l language) text(english string) template.HTML {
	key := strings.Join(strings.Fields(english), " ")
	text, ok := l.words[key]
	if !ok {
		text = english
		if l.tag != "" {
			l.missing[key] = true
		}
	}
	return template.HTML(text)
}

// file returns the name of a Markdown file in the language: docs/lessons.zh.md for docs/lessons.md.
func (l language) file(english string) string {
	if l.tag == "" {
		return english
	}
	return strings.TrimSuffix(english, ".md") + "." + l.tag + ".md"
}

// languageOf returns the language of a Markdown file.
func languageOf(file string) language {
	for _, l := range languages[1:] {
		if strings.HasSuffix(file, l.file(".md")) {
			return l
		}
	}
	return languages[0]
}

// follows is the comment of a translated section with the day and the hash of the English text that it follows.
var follows = regexp.MustCompile(`(?m)^<!-- english: (\d{4}-\d\d-\d\d) ([0-9a-f]{12}) -->\n\n?`)

// sectionsOf splits a Markdown file: what precedes the first lesson, and each lesson. Files without lessons are one section.
func sectionsOf(text []byte) (list [][]byte) {
	begin := 0
	for _, at := range lessonHeading.FindAllIndex(text, -1) {
		list, begin = append(list, text[begin:at[0]]), at[0]
	}
	return append(list, text[begin:])
}

// hashOf returns the hash of the words of an English section, without the code that --update copies into all languages.
func hashOf(english []byte) string {
	words := bytes.Fields(codeComment.ReplaceAll(english, nil))
	return fmt.Sprintf("%x", sha256.Sum256(bytes.Join(words, []byte(" "))))[:12]
}

// note returns the note above a section of a file in the language, "" unless the English text has changed since.
func (b *build) note(l language, file string, section, english []byte) (template.HTML, error) {
	if l.tag == "" {
		return "", nil
	}
	title, _, _ := strings.Cut(string(section), "\n")
	m := follows.FindSubmatch(section)
	switch hash := hashOf(english); {
	case m == nil:
		return "", fmt.Errorf("%s: %q has no comment <!-- english: DAY %s -->", file, title, hash)
	case string(m[2]) != hash:
		b.lagging = append(b.lagging, fmt.Sprintf("%s: %q follows the English text of %s; that of today is %s", file, title, m[1], hash))
		note := l.text("This page follows the English text of {0}, which has changed since.")
		return template.HTML("<p class=\"note follows\">" + strings.Replace(string(note), "{0}", string(m[1]), 1) + "</p>\n"), nil
	}
	return "", nil
}

// warnings says what translations lack.
func (b *build) warnings() (list []string) {
	for _, l := range languages[1:] {
		if n := len(l.missing); n > 0 {
			list = append(list, fmt.Sprintf("words/%s.json lacks %d texts of pages, which are in English", l.tag, n))
		}
	}
	return append(list, b.lagging...)
}

// functions are what the templates of a page in the language call.
func (l language) functions(root string) template.FuncMap {
	return template.FuncMap{"t": l.text, "root": func() string { return root }, "address": func() string { return siteAddress }}
}

// translation is a link to a page in another language, or in its own.
type translation struct {
	Path, Code, Name string
	Here             bool
}

// translations returns the page in all languages. The page is name in the directory of l.
func (l language) translations(root, name string) (list []translation) {
	for _, other := range languages {
		list = append(list, translation{root + other.Dir + name, other.Code, other.Name, other.Code == l.Code})
	}
	return list
}

// writeWords writes the texts of scripts, a module for each language.
func (b *build) writeWords() error {
	for _, l := range languages {
		if err := b.writeModule("words-"+l.Code+".js", "export default", l.words); err != nil {
			return err
		}
	}
	return nil
}

// unspaced matches a line end between characters of languages that write no space between words, or after their
// punctuation: it would become a space. What begins with other signs may be no text of the same paragraph.
var unspaced = regexp.MustCompile(`([\p{Han}\p{Hiragana}\p{Katakana}ー])\n *([\p{Han}\p{Hiragana}\p{Katakana}（「“])|` +
	`([，。；：、？！）」”])\n *([^\s#|<>\-0-9])`)
