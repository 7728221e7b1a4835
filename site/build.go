package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/attn-go/attn/internal/app/view"
)

// siteBudget is the size of the whole site in compressed bytes.
const siteBudget = 12_700_000

//go:embed assets
var assets embed.FS

//go:embed pages
var pages embed.FS

// build is a site while it is written.
type build struct {
	root, out string
	files     map[string]*file // by path below out
	search    []section
	imports   map[string][]string // the modules that a module imports
	lagging   []string            // translations whose English text has changed
}

// file is a file of the site.
type file struct {
	bytes, compressed int
	loads             []string // the files that it loads
}

func (b *build) all() error {
	for _, step := range []func() error{b.shared, b.writeWords, b.program, b.copyAssets, b.lessons, b.documents, b.searchIndex} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file of the site. Programs are compressed with gzip, which the worker decompresses, because many servers
// send them as they are. Most servers compress text.
func (b *build) write(name string, data []byte, loads ...string) error {
	if path.Ext(name) == ".wasm" {
		name, data = name+".gz", compress(data)
	}
	target := filepath.Join(b.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	small := len(data)
	switch path.Ext(name) {
	case ".gz", ".png", ".webp", ".gif", ".bin":
	default:
		small = len(compress(data))
	}
	if b.files[name] == nil {
		if err := b.own(name, target); err != nil {
			return err
		}
	}
	b.files[name] = &file{len(data), small, loads}
	return os.WriteFile(target, data, 0o644)
}

// own adds a file to the list of those that belong to the site. A file that exists already is somebody else's.
func (b *build) own(name, target string) error {
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%s exists and is not part of the site: it is not overwritten", target)
	}
	list, err := os.OpenFile(filepath.Join(b.out, mark), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(list, name)
	return errors.Join(err, list.Close())
}

func compress(data []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid, and a Buffer cannot fail
	_, _ = w.Write(data)
	_ = w.Close()
	return packed.Bytes()
}

// programs are what the worker runs: the lessons without a model, and those that train or use the translator, which
// contain packages models and train and use the vector kernels. The first is smaller without inlining; the second is
// faster with it, except in packages that run once per call of the page. The third opens a model of the reader, and is
// loaded once one is chosen.
var programs = []struct {
	name   string // of the file, and of the worker
	flags  []string
	budget int // compressed bytes of a page with it
}{
	{"lesson", []string{"-gcflags=all=-l"}, 1_750_000},
	{"model", []string{
		"-tags=model,wasmsimd", "-gcflags=encoding/...=-l", "-gcflags=fmt=-l", "-gcflags=internal/strconv=-l", "-gcflags=net/...=-l",
		"-gcflags=crypto/...=-l", "-gcflags=os=-l", "-gcflags=reflect=-l", "-gcflags=strconv=-l", "-gcflags=time=-l",
	}, 4_600_000},
	{translator, []string{
		"-tags=translator,wasmsimd", "-gcflags=encoding/...=-l", "-gcflags=fmt=-l", "-gcflags=internal/strconv=-l",
		"-gcflags=os=-l", "-gcflags=reflect=-l", "-gcflags=strconv=-l", "-gcflags=time=-l",
	}, 3_200_000},
}

const translator = "translator"

// program compiles the programs of the lessons.
func (b *build) program() error {
	dir, err := os.MkdirTemp("", "attn-site")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, p := range programs {
		data, err := compile(filepath.Join(b.root, "site", "lesson"), filepath.Join(dir, p.name), p.flags)
		if err != nil {
			return err
		}
		if err := b.write("assets/"+p.name+".wasm", data); err != nil {
			return err
		}
	}
	goroot, err := goOutput("env", "GOROOT")
	if err != nil {
		return err
	}
	kernels := filepath.Join(b.root, "internal", "simd", "wasm")
	for _, path := range []string{
		filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"),
		filepath.Join(kernels, "kernels.js"), filepath.Join(kernels, "kernels.wasm"),
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := b.write("assets/"+filepath.Base(path), data); err != nil {
			return err
		}
	}
	return nil
}

// compile compiles the program of a directory to WebAssembly, into a file, and returns the module.
func compile(dir, file string, flags []string) ([]byte, error) {
	c := exec.Command("go", append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", file}, flags...)...)
	c.Dir, c.Env = dir, append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling %s: %w\n%s", dir, err, text)
	}
	return os.ReadFile(file)
}

// named finds the names of files in a script: modules that it imports, data that it fetches.
var named = regexp.MustCompile(`["'](?:\./)?([\w-][\w.-]*\.\w+)["']`)

var imported = regexp.MustCompile(`(?m)^(?:import|export) .*"\./([\w-]+\.js)";`)

// copyAssets copies styles, scripts and data.
func (b *build) copyAssets() error {
	return fs.WalkDir(assets, "assets", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		if page, ok := strings.CutSuffix(name, ".json.gz"); ok {
			if data, err = exported(data); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			name = page + ".html"
		}
		var loads []string
		if path.Ext(name) == ".js" {
			for _, m := range named.FindAllSubmatch(data, -1) {
				loads = append(loads, "assets/"+string(m[1]))
			}
			for _, m := range imported.FindAllSubmatch(data, -1) {
				b.imports[e.Name()] = append(b.imports[e.Name()], string(m[1]))
			}
		}
		return b.write(name, data, loads...)
	})
}

// exported returns the page of attn view with the compressed data of an exported page, so that the lesson shows the
// page of this version. The data are the element "frozen" of what attn map --embed writes.
func exported(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return view.PageOf(data)
}

// shared writes what the page of attn view has too: modules, and the colours of package viz.
func (b *build) shared() error {
	for _, name := range []string{"dom.js", "palette.js"} {
		if err := b.write("assets/"+name, view.Module(name)); err != nil {
			return err
		}
	}
	return b.writeModule("colours.js", "export default", view.Palette())
}

// writeModule writes a script that exports a value.
func (b *build) writeModule(name, export string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return b.write("assets/"+name, fmt.Appendf(nil, "%s %s;\n", export, data))
}

// page is what the layout shows.
type page struct {
	Path           string // below out
	Title, Name    string
	Description    string
	Lesson, Search bool
	Lessons        []lesson
	Previous, Next *lesson
	Documents      []document
	Source         string    // the file of a document
	Parts          []section // of a document, for its table of contents
	Body           template.HTML
	Scripts        []string
	Program        string // that the worker runs
	Hashes         policy // of a page of attn view inside this one
	Language       language
	Translations   []translation // of the page
	Modules        []string      // that the scripts import
}

// policy has the hashes of the scripts and styles of a page that another one contains, whose policy is its own, too.
type policy struct{ Scripts, Styles []string }

// policyOf returns the hashes in the policy of a page of attn view.
func policyOf(page []byte) policy {
	hashes := func(of string) []string {
		part := regexp.MustCompile(of + ` ([^;"]*)`).FindSubmatch(page)
		if part == nil {
			return nil
		}
		return strings.Fields(string(part[1]))
	}
	return policy{hashes("script-src"), hashes("style-src")}
}

// Root returns the way from the page to the top of the site.
func (p page) Root() string { return upFrom(p.Path) }

// render writes a page in the layout.
func (b *build) render(p page) error {
	layout, err := template.New("").Funcs(p.Language.functions(p.Root())).ParseFS(pages, "pages/layout.html")
	if err != nil {
		return err
	}
	if p.Language.tag != "" {
		p.Modules = []string{"words-" + p.Language.tag + ".js"}
	}
	for list := slices.Clone(p.Scripts); len(list) > 0; list = list[1:] {
		for _, name := range b.imports[list[0]] {
			if b.files["assets/"+name] != nil && !slices.Contains(p.Modules, name) {
				p.Modules, list = append(p.Modules, name), append(list, name)
			}
		}
	}
	var text bytes.Buffer
	if err := layout.ExecuteTemplate(&text, "layout", p); err != nil {
		return err
	}
	loads := []string{"assets/style.css", "assets/start.js"}
	for _, s := range p.Scripts {
		loads = append(loads, "assets/"+s)
	}
	if p.Program != "" {
		loads = append(loads, "assets/"+p.Program+".wasm.gz")
	}
	return b.write(p.Path, text.Bytes(), loads...)
}

// searchIndex writes all sections of all documents and lessons for the search page.
func (b *build) searchIndex() error {
	return b.writeModule("search-index.js", "export const sections =", b.search)
}

// weight returns the compressed bytes of a file and of all that it loads.
func (b *build) weight(name string, seen map[string]bool) (sum int) {
	f := b.files[name]
	if f == nil || seen[name] {
		return 0
	}
	seen[name] = true
	for _, l := range f.loads {
		sum += b.weight(l, seen)
	}
	return sum + f.compressed
}

// overBudget is the error for pages that exceed their budgets.
type overBudget []string

func (e overBudget) Error() string { return "too large: " + strings.Join(e, "; ") }

// report prints the sizes of the site. It returns an overBudget past a budget.
func (b *build) report(w io.Writer) error {
	names := slices.SortedFunc(maps.Keys(b.files), func(x, y string) int {
		return cmp.Or(b.files[y].compressed-b.files[x].compressed, strings.Compare(x, y))
	})
	total := 0
	for _, f := range b.files {
		total += f.compressed
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "compressed\tbytes\t  file")
	rest := total
	for _, name := range names[:min(16, len(names))] {
		f := b.files[name]
		rest -= f.compressed
		fmt.Fprintf(t, "%d\t%d\t  %s\n", f.compressed, f.bytes, name)
	}
	fmt.Fprintf(t, "%d\t\t  %d other files\n", rest, max(0, len(names)-16))
	var over overBudget
	check := func(name, use string, n, budget int) {
		fmt.Fprintf(t, "%d\t\t  %s; budget %d\n", n, use, budget)
		if n > budget {
			over = append(over, fmt.Sprintf("%s needs %d bytes, the budget is %d", name, n, budget))
		}
	}
	check("the site", "everything", total, siteBudget)
	for _, l := range lessonPages {
		check(l.Path(), "to open "+l.Path(), b.weight(l.Path(), map[string]bool{}), l.budget())
	}
	check("index.html", "to open index.html", b.weight("index.html", map[string]bool{}), programs[2].budget)
	if model := b.files["assets/model.wasm.gz"]; model != nil { // loaded once a model is chosen
		check("assets/model.wasm.gz", "to open a model", model.compressed, programs[1].budget)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if over != nil {
		return over
	}
	return nil
}
