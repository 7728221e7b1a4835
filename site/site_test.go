package main

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// built returns the site without the program of the lessons, which the browser's tests compile.
func built(t *testing.T) *build {
	t.Helper()
	b, err := newBuild("..", filepath.Join(t.TempDir(), "site"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{b.shared, b.writeWords, b.copyAssets, b.lessons, b.documents, b.searchIndex} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

var (
	address = regexp.MustCompile(`(?:href|src|srcset)="([^"]*)"`)
	ids     = regexp.MustCompile(`\bid="([^"]*)"`)
)

// Every section that a search can find has a title, which begins with its page.
func TestSearchTitles(t *testing.T) {
	lesson := false
	for _, s := range built(t).search {
		if s.Title == "" || strings.HasPrefix(s.Title, "›") {
			t.Errorf("%s#%s has the title %q", s.Page, s.ID, s.Title)
		}
		lesson = lesson || s.Page == "dates.html" && s.Title == "Heads of a translator"
	}
	if !lesson {
		t.Error("no section has the title of a lesson")
	}
}

// A lesson asks the reader to predict what its figures show, and hides the answer.
func TestQuestions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", lessonsFile))
	if err != nil {
		t.Fatal(err)
	}
	figures := liveComment.FindAllIndex(text, -1)
	if len(figures) < 16 {
		t.Fatalf("%d figures, want at least 16", len(figures))
	}
	end := 0
	for _, at := range figures {
		name := string(text[at[0]:at[1]])
		if before := string(text[end:at[0]]); !strings.Contains(before, "<summary>Question: ") && !strings.Contains(name, "minilm") && !strings.Contains(name, "exercise") {
			t.Errorf("no question is before %s", name)
		}
		end = at[1]
	}
	if !strings.Contains(string(text), "<summary>Answers</summary>") {
		t.Error("the answers of the last lesson are not hidden")
	}
}

// Every link of a page leads to a file of the site, and to an element with that name; nothing is
// loaded from elsewhere, and nothing in a page needs a weaker policy.
func TestLinks(t *testing.T) {
	b := built(t)
	texts := map[string]string{}
	for name := range b.files {
		if path.Ext(name) == ".html" && !strings.HasPrefix(name, "assets/") {
			text, err := os.ReadFile(filepath.Join(b.out, name))
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
	}
	if len(texts) < 20 {
		t.Fatalf("%d pages, want lessons and documents", len(texts))
	}
	for name, text := range texts {
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				if !strings.HasPrefix(m[0], "href") {
					t.Errorf("%s loads %s", name, m[1])
				}
				continue
			}
			if strings.HasPrefix(m[1], "data:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			anchor, err := url.PathUnescape(anchor) // headings of other languages
			if err != nil {
				t.Error(err)
			}
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if b.files[target] == nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
				continue
			}
			if anchor != "" && !strings.Contains(texts[target], ` id="`+anchor+`"`) {
				t.Errorf("%s links to %s, but no element has that name", name, m[1])
			}
		}
		for _, bad := range []string{" style=", "<style", " onclick=", "javascript:"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %q, which the policy of the site forbids", name, bad)
			}
		}
		files := strings.Count(text, "<script src=") + strings.Count(text, `<script type="module" src=`)
		if strings.Count(text, "<script") != files {
			t.Errorf("%s has a script inside the page", name)
		}
		seen := map[string]bool{}
		for _, id := range ids.FindAllStringSubmatch(text, -1) {
			if seen[id[1]] {
				t.Errorf("%s has two elements with the name %s", name, id[1])
			}
			seen[id[1]] = true
		}
	}
}

// Every file that a script names exists.
func TestScripts(t *testing.T) {
	b := built(t)
	later := []string{"assets/wasm_exec.js", "assets/lesson.wasm.gz", "assets/translator.wasm.gz",
		"assets/kernels.js", "assets/kernels.wasm.gz"} // with the programs
	for name, f := range b.files {
		for _, l := range f.loads {
			ext := path.Ext(l)
			if (ext == ".js" || ext == ".gz" || ext == ".wasm") && b.files[l] == nil && !slices.Contains(later, l) {
				t.Errorf("%s names %s, which does not exist", name, l)
			}
		}
	}
}

// A formula becomes MathML that is well-formed.
func TestMathML(t *testing.T) {
	for tex, want := range map[string]string{
		`x_j`:                      `<msub><mi>x</mi><mi>j</mi></msub>`,
		`a^2_j`:                    `<msubsup><mi>a</mi><mi>j</mi><mn>2</mn></msubsup>`,
		`\frac{1}{E}`:              `<mfrac><mrow><mn>1</mn></mrow><mrow><mi>E</mi></mrow></mfrac>`,
		`\sqrt{E}`:                 `<msqrt><mrow><mi>E</mi></mrow></msqrt>`,
		`\sum_{j}`:                 `<munder><mo>∑</mo><mrow><mi>j</mi></mrow></munder>`,
		`|i|`:                      `<mo stretchy="false" lspace="0" rspace="0">|</mo><mi>i</mi><mo stretchy`,
		`\left(a < b\right)`:       `<mo fence="true">(</mo><mrow><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow><mo fence="true">)`,
		`\operatorname{a & b} - 1`: `<mi>a &amp; b</mi><mo>−</mo><mn>1</mn>`,
	} {
		got, err := mathML(tex)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %s, %v, want %s", tex, got, err, want)
		}
		for d := xml.NewDecoder(strings.NewReader(got)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: %s: %v", tex, got, err)
				break
			}
		}
	}
	for tex, want := range map[string]string{
		`\unknown`: "unknown command", `{a`: "} is missing", `\left(a`: `\right) is missing`, `a_`: "too early",
		`\left<a\right>`: "unknown bracket", `#`: "unknown character",
		`\operatorname a`: "needs braces", `\frac{a}`: "too early",
	} {
		if got, err := mathML(tex); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %q", tex, got, err, want)
		}
	}
}

func TestRegion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	text := "\t// lesson: a\n\tif b {\n\t\tc()\n\t}\n\t// lesson end\n\n" +
		"func ExampleX() {\n\td()\n\tfor {\n\t}\n\t// Output:\n\t// e\n}\n\n// lesson: open\nf()\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "if b {\n    c()\n}\n", "ExampleX": "d()\nfor {\n}\n"} {
		if got, _, err := region(file, name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"absent", "open"} {
		if got, _, err := region(file, name); err == nil {
			t.Errorf("%s: %q, want an error", name, got)
		}
	}
}

// A directory of other files is refused. A rebuild removes the files of the site, and no others.
func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("dear"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	write(filepath.Join(dir, "letter.txt"))
	write(filepath.Join(dir, "assets/dom.js")) // as a site has
	if _, err := newBuild("..", dir); err == nil || !strings.Contains(err.Error(), "nothing is overwritten") {
		t.Errorf("a directory with other files: %v", err)
	}

	b := built(t)
	other, inside := filepath.Join(b.out, "letter.txt"), filepath.Join(b.out, "docs/mine/letter.txt")
	outside := filepath.Join(filepath.Dir(b.out), "letter.txt")
	for _, path := range []string{other, inside, outside} {
		write(path)
	}
	next, err := newBuild("..", b.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"index.html", "docs/index.html", "assets", mark} {
		if exists(filepath.Join(b.out, gone)) {
			t.Errorf("%s of the earlier site is still there", gone)
		}
	}
	if !exists(other) || !exists(inside) {
		t.Error("a file that is not part of the site is removed")
	}
	write(filepath.Join(b.out, "assets/dom.js"))
	if err := next.shared(); err == nil || !strings.Contains(err.Error(), "not overwritten") {
		t.Errorf("a file of somebody else with the name of one of the site: %v", err)
	}
	// A list that names files elsewhere removes nothing there.
	if err := os.WriteFile(filepath.Join(b.out, mark), []byte("../letter.txt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newBuild("..", b.out); err == nil || !exists(outside) {
		t.Errorf("a list with a file elsewhere: %v", err)
	}
}

// A budget that is exceeded is an error that names the page.
func TestBudget(t *testing.T) {
	b := built(t)
	b.files["assets/page.js"].compressed = programs[0].budget
	var table bytes.Buffer
	err := b.report(&table)
	if _, ok := errors.AsType[overBudget](err); !ok || !strings.Contains(err.Error(), "regression.html needs") ||
		!strings.Contains(table.String(), "everything") {
		t.Errorf("%v\n%s", err, table.String())
	}
}

// A program is written compressed, and counted with that size.
func TestWriteProgram(t *testing.T) {
	b := &build{out: t.TempDir(), files: map[string]*file{}}
	want := []byte(strings.Repeat("attend to the keys; ", 500))
	if err := b.write("a.wasm", want); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(b.out, "a.wasm.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if f := b.files["a.wasm.gz"]; f == nil || f.compressed != len(data) || len(data) > len(want)/20 {
		t.Errorf("%d bytes, in the report %v", len(data), f)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v, want the %d compressed ones", len(got), err, len(want))
	}
}

// A module imports only what another exports. A browser would load none of the page's modules otherwise.
func TestImportsExist(t *testing.T) {
	b := built(t)
	exported := regexp.MustCompile(`(?m)^export (?:(?:async )?function\*?|const|let|class) (\w+)|^export \{([^}]*)\}`)
	imported := regexp.MustCompile(`(?m)^import \{([^}]*)\} from "\./([\w-]+\.js)"`)
	exports, texts := map[string][]string{}, map[string]string{}
	paths, err := filepath.Glob(filepath.Join(b.out, "assets", "*.js"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d modules, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		texts[name] = string(text)
		for _, m := range exported.FindAllStringSubmatch(texts[name], -1) {
			exports[name] = append(exports[name], m[1])
			for n := range strings.SplitSeq(m[2], ",") {
				exports[name] = append(exports[name], strings.TrimSpace(n))
			}
		}
	}
	checked := 0
	for name, text := range texts {
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			for n := range strings.SplitSeq(m[1], ",") {
				n, _, _ = strings.Cut(strings.TrimSpace(n), " as ")
				if checked++; !slices.Contains(exports[m[2]], n) {
					t.Errorf("%s imports %s, which %s does not export", name, n, m[2])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d imports found, want at least 50", checked)
	}
}
