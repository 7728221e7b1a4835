package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// structure matches what is the same in every language, in the same order: comments that name code and figures, blocks of
// code and formulas, levels of headings, tables and answers.
var structure = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^<!-- .* -->$`),
	regexp.MustCompile("(?ms)^```.*?^```$"),
	regexp.MustCompile(`(?m)^    .*$`),
	regexp.MustCompile(`(?m)^#+ (\d+\.)?`),
	regexp.MustCompile(`(?m)^\|[-|: ]*\|$`),
	regexp.MustCompile(`</?(details|summary)>`),
}

// These are the same in any order: targets of pictures, code within lines, and numbers.
var (
	picture = regexp.MustCompile(`!\[[^\]]*\](\([^)]*\))`)
	inCode  = regexp.MustCompile("`[^`\n]+`")
	digits  = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
)

// A translation has the sections, figures, formulas, code and numbers of the English text, so that none falls behind.
func TestTranslations(t *testing.T) {
	for _, english := range []string{lessonsFile, "docs/glossary.md"} {
		want := sectionsOf(t, english)
		for _, l := range languages[1:] {
			got := sectionsOf(t, l.file(english))
			if len(got) != len(want) {
				t.Errorf("%s has %d sections, want %d", l.file(english), len(got), len(want))
				continue
			}
			for i, section := range want {
				title, _, _ := strings.Cut(section, "\n")
				for _, r := range structure {
					if a, b := r.FindAllString(section, -1), r.FindAllString(got[i], -1); !slices.Equal(a, b) {
						t.Errorf("%s, %s: %q, want %q", l.file(english), title, b, a)
					}
				}
				for _, r := range []*regexp.Regexp{picture, inCode, digits} {
					if a, b := sorted(r, section), sorted(r, got[i]); !slices.Equal(a, b) {
						t.Errorf("%s, %s: %q, want %q", l.file(english), title, b, a)
					}
				}
			}
		}
	}
}

// sectionsOf returns the sections of a file, without the line that links to its translations.
func sectionsOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split("\n"+string(text), "\n#")[1:]
	if len(list) < 3 {
		t.Fatalf("%s has %d sections", file, len(list))
	}
	return list
}

// sorted returns what a section has of an expression, in any order; what is in parentheses if there are some.
func sorted(r *regexp.Regexp, section string) (list []string) {
	for _, m := range r.FindAllStringSubmatch(section, -1) {
		list = append(list, m[len(m)-1])
	}
	slices.Sort(list)
	return list
}

// A line end is a space, but not between characters or after punctuation of languages without spaces.
func TestLineEnds(t *testing.T) {
	b := &build{files: map[string]*file{}}
	for source, want := range map[string]string{
		"one,\ntwo (three)\n*four* 5%\nand\n": "<p>one,\ntwo (three)\n<em>four</em> 5%\nand</p>\n",
		"查询\n和键，\n`v` 是值。\n用 Go\n写\n":         "<p>查询和键，<code>v</code> 是值。用 Go\n写</p>\n",
		"キー\nバリュー、\n*w*\n":                    "<p>キーバリュー、<em>w</em></p>\n",
		"- 头。\n  大大\n  的的，\n  值。\n- 键。\n":     "<ul>\n<li>头。大大的的，值。</li>\n<li>键。</li>\n</ul>\n",
	} {
		if r, err := b.markdown([]byte(source), "docs/x.md", "docs/x.html"); err != nil || r.html != want {
			t.Errorf("%q becomes %q, %v, want %q", source, r.html, err, want)
		}
	}
}

// The words of a language are the texts that pages and scripts have, no more and no fewer, with the same values.
func TestWords(t *testing.T) {
	used := map[string]bool{}
	add := func(text string) { used[strings.Join(strings.Fields(text), " ")] = true }
	inPage, inGo := regexp.MustCompile("\\{\\{t `([^`]*)`\\}\\}"), regexp.MustCompile(`(?:\btext|\bin\.text)\("([^"]+)"\)`)
	for _, dir := range []fs.FS{pages, assets} {
		err := fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(dir, path)
			for _, m := range inPage.FindAllSubmatch(text, -1) {
				add(string(m[1]))
			}
			if filepath.Ext(path) == ".js" {
				for _, key := range scriptTexts(string(text)) {
					add(key)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"code.go", "lessons.go"} {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inGo.FindAllSubmatch(code, -1) {
			add(string(m[1]))
		}
	}
	for _, l := range lessonPages {
		add(l.Idea)
	}
	if len(used) < 350 {
		t.Fatalf("%d texts are used, want at least 350", len(used))
	}
	value := regexp.MustCompile(`\{\d\}|</?\w+>`)
	for _, l := range languages[1:] {
		for key := range used {
			switch text, ok := l.words[key]; {
			case !ok:
				t.Errorf("words/%s.json has no text for %q", l.tag, key)
			case strings.TrimSpace(text) == "" || !slices.Equal(sorted(value, key), sorted(value, text)):
				t.Errorf("words/%s.json: %q for %q", l.tag, text, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(l.words)) {
			if !used[key] {
				t.Errorf("words/%s.json has a text for %q, which no page has", l.tag, key)
			}
		}
	}
}

// scriptTexts returns the keys of the texts t`…` of a script: words.js says what a key is.
func scriptTexts(script string) (list []string) {
	// template reads the text that begins after a backquote, and returns what follows its end.
	var template func(text string) (key, rest string)
	template = func(text string) (key, rest string) {
		for n := 0; text[0] != '`'; {
			if !strings.HasPrefix(text, "${") {
				key, text = key+text[:1], text[1:]
				continue
			}
			key, n, text = key+"{"+string(rune('0'+n))+"}", n+1, text[2:]
			for depth := 1; depth > 0; {
				c := text[0]
				text = text[1:]
				switch c {
				case '{':
					depth++
				case '}':
					depth--
				case '`':
					_, text = template(text)
				}
			}
		}
		return key, text[1:]
	}
	begin := regexp.MustCompile("(?:^|[^\\w$])t`")
	for line := range strings.Lines(script) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "*") {
			continue
		}
		for _, at := range begin.FindAllStringIndex(line, -1) {
			key, _ := template(line[at[1]:])
			list = append(list, key)
		}
	}
	return list
}
