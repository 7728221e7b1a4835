package main

import (
	"bytes"
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

// A translation of today's English text has its sections, figures, formulas, code and numbers. One of another text lags,
// which is no error: the page says so.
func TestTranslations(t *testing.T) {
	for _, english := range []string{lessonsFile, "docs/glossary.md"} {
		want := sectionsOf(read(t, english))
		for _, l := range languages[1:] {
			got := sectionsOf(read(t, l.file(english)))
			if len(got) > len(want) {
				t.Errorf("%s has %d sections, want at most %d", l.file(english), len(got), len(want))
				continue
			}
			for i, section := range got {
				title, _, _ := strings.Cut(string(want[i]), "\n")
				m := follows.FindSubmatch(section)
				if m == nil {
					t.Errorf("%s, %s: no comment says which English text it follows", l.file(english), title)
					continue
				}
				if hash := hashOf(want[i]); string(m[2]) != hash {
					t.Logf("%s, %s: follows the English text of %s. After translating it, write <!-- english: DAY %s -->",
						l.file(english), title, m[1], hash)
					continue
				}
				same := func(a, b []string) {
					if !slices.Equal(a, b) {
						t.Errorf("%s, %s: %q, want %q", l.file(english), title, b, a)
					}
				}
				a, b := string(want[i]), string(follows.ReplaceAll(section, nil))
				for _, r := range structure {
					same(r.FindAllString(a, -1), r.FindAllString(b, -1))
				}
				for _, r := range []*regexp.Regexp{picture, inCode, digits} {
					same(sorted(r, a), sorted(r, b))
				}
			}
		}
	}
}

// read returns a file of the repository.
func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The English text of a lesson may change, and a lesson be added, without its translations: pages say what they follow.
// Code alone, which is copied into all languages, leaves no translation behind.
func TestLaggingTranslation(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "docs"), os.DirFS("../docs")); err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "docs" && name[0] != '.' {
			if err := os.Symlink(filepath.Join(top, name), filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(file, old, new string) {
		text := string(read(t, file))
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not have %q", file, old)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(strings.Replace(text, old, new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change(lessonsFile, "Attention is a weighted mean.", "Attention is a weighted mean of 17 values.")
	change("docs/glossary.md", "## Words of the field", "## The field's words")
	japanese := read(t, "docs/lessons.ja.md")
	last := lessonHeading.FindAllIndex(japanese, -1)[6][0]
	if err := os.WriteFile(filepath.Join(root, "docs/lessons.ja.md"), japanese[:last], 0o644); err != nil {
		t.Fatal(err)
	}
	b := &build{root: root, out: t.TempDir(), files: map[string]*file{}}
	for _, step := range []func() error{b.shared, b.lessons, b.documents} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for page, want := range map[string]string{
		"regression.html": "", "zh/regression.html": "2026-", "ja/regression.html": "2026-",
		"scores.html": "", "zh/scores.html": "", "ja/scores.html": "",
		"minilm.html": "", "zh/minilm.html": "", "ja/minilm.html": "まだ翻訳されていません",
		"docs/glossary.html": "", "docs/glossary.zh.html": "2026-", "docs/glossary.ja.html": "2026-",
	} {
		text, err := os.ReadFile(filepath.Join(b.out, page))
		if err != nil {
			t.Fatal(err)
		}
		_, note, found := strings.Cut(string(text), `<p class="note follows">`)
		note, _, _ = strings.Cut(note, "</p>")
		if found != (want != "") || !strings.Contains(note, want) {
			t.Errorf("%s has the note %q, want one with %q", page, note, want)
		}
		if strings.Contains(string(text), "<!-- english") {
			t.Errorf("%s shows the comment", page)
		}
	}
	if got := b.warnings(); len(got) != 4 {
		t.Errorf("warnings %q, want one for each of four sections", got)
	}
	if english := read(t, lessonsFile); hashOf(english) != hashOf(bytes.Replace(english, []byte("kernel := "), []byte("k := "), 1)) {
		t.Error("a translation lags behind code")
	}
}

// A text that is not translated is in English.
func TestUntranslatedText(t *testing.T) {
	l := languages[1]
	l.missing = map[string]bool{}
	if got := l.text("A text that\nnobody has translated"); got != "A text that\nnobody has translated" || !l.missing["A text that nobody has translated"] {
		t.Errorf("%q, missing %v", got, l.missing)
	}
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

// The words of a language are texts that pages and scripts have, with the same values. One that is missing is in English.
func TestWords(t *testing.T) {
	used := map[string]bool{}
	add := func(text string) { used[strings.Join(strings.Fields(text), " ")] = true }
	inPage, inGo := regexp.MustCompile("\\{\\{t `([^`]*)`\\}\\}"), regexp.MustCompile(`\.text\("([^"]+)"\)`)
	frame := os.DirFS("../internal/app/view/page") // of lesson 7
	var texts strings.Builder                      // what may be looked up by tr
	for _, dir := range []fs.FS{pages, assets, frame} {
		err := fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(dir, path)
			for _, m := range inPage.FindAllSubmatch(text, -1) {
				add(string(m[1]))
			}
			if dir == frame {
				texts.Write(text)
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
	measures, err := os.ReadFile("../internal/app/view/api.go")
	if err != nil {
		t.Fatal(err)
	}
	texts.Write(measures)
	texts.WriteString("your model") // lesson/own.go
	for _, path := range []string{"code.go", "languages.go", "lessons.go", "markdown.go"} {
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
				t.Logf("words/%s.json has no text for %q", l.tag, key)
			case strings.TrimSpace(text) == "" || !slices.Equal(sorted(value, key), sorted(value, text)):
				t.Errorf("words/%s.json: %q for %q", l.tag, text, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(l.words)) {
			if !used[key] && !strings.Contains(texts.String(), key) {
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
	begin := regexp.MustCompile("(?:^|[^\\w$])(?:t|words)`")
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

// The address of the site is the same in README in all languages, and the workflow that publishes it names its constant.
func TestAddress(t *testing.T) {
	for _, l := range languages {
		if text := string(read(t, l.file("README.md"))); !strings.Contains(text, "<"+siteAddress+l.Dir+">") {
			t.Errorf("%s does not name %s", l.file("README.md"), siteAddress+l.Dir)
		}
	}
	if workflow := string(read(t, ".github/workflows/site.yml")); !strings.Contains(workflow, "siteAddress of site/main.go") {
		t.Error("the workflow does not say where the address is")
	}
}
