package main

import (
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
}

// languages are those of the lessons. Adding one begins here: it needs docs/lessons.TAG.md and words/TAG.json, which has
// the texts of pages and scripts by the English ones.
var languages = []language{
	{Code: "en", Name: "English"},
	{Code: "zh", Name: "简体中文", Dir: "zh/", tag: "zh"},
	{Code: "ja", Name: "日本語", Dir: "ja/", tag: "ja"},
}

func init() {
	for i, l := range languages {
		if l.tag == "" {
			continue
		}
		data, err := dictionaries.ReadFile(path.Join("words", l.tag+".json"))
		if err == nil {
			err = json.Unmarshal(data, &languages[i].words)
		}
		if err != nil {
			panic(fmt.Sprintf("site: words of %s: %v", l.Name, err))
		}
	}
}

// text returns the text of a page in the language. Line ends in English count as spaces.
func (l language) text(english string) (template.HTML, error) {
	key := strings.Join(strings.Fields(english), " ")
	if l.tag == "" {
		return template.HTML(english), nil
	}
	if text, ok := l.words[key]; ok {
		return template.HTML(text), nil
	}
	return "", fmt.Errorf("words/%s.json has no text for %q", l.tag, key)
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
		if strings.HasSuffix(file, "."+l.tag+".md") {
			return l
		}
	}
	return languages[0]
}

// functions are what the templates of a page in the language call.
func (l language) functions(root string) template.FuncMap {
	return template.FuncMap{"t": l.text, "root": func() string { return root }}
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
		data, err := json.Marshal(l.words)
		if err != nil {
			return err
		}
		if l.words == nil {
			data = []byte("{}")
		}
		if err := b.write("assets/words-"+l.Code+".js", fmt.Appendf(nil, "export default %s;\n", data)); err != nil {
			return err
		}
	}
	return nil
}

// unspaced matches a line end between characters of languages that write no space between words, or after their
// punctuation: it would become a space. What begins with other signs may be no text of the same paragraph.
var unspaced = regexp.MustCompile(`([\p{Han}\p{Hiragana}\p{Katakana}ー])\n *([\p{Han}\p{Hiragana}\p{Katakana}（「“])|` +
	`([，。；：、？！）」”])\n *([^\s#|<>\-0-9])`)
