// Command site builds the static site of attn: lessons whose figures are computed in the browser by
// the same Go code, compiled to WebAssembly, and the documentation.
//
//	go run ./site --out DIR                          # build everything into DIR
//	go run ./site --out DIR --serve 127.0.0.1:8080   # and serve it
//	go run ./site --out DIR --check                  # fail if a page is larger than its budget
//	go run ./site --update                           # copy marked regions of the examples into docs/lessons.md
//
// Any static server can serve the result. It loads nothing from other sites.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// siteAddress is where .github/workflows/site.yml publishes the site.
const siteAddress = "https://attn-go.github.io/attn/"

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "build the site into this `directory`; it must be new, empty, or contain a site")
	serve := flag.String("serve", "", "serve the site at this `address` after building it")
	check := flag.Bool("check", false, "fail if a page exceeds its budget of bytes; otherwise this is only reported")
	update := flag.Bool("update", false, "copy the marked regions of the examples into docs/lessons.md, and stop")
	flag.Parse()
	if err := run(*out, *serve, *check, *update, flag.Args()); err != nil {
		log.Fatal("site: ", err)
	}
}

func run(out, serve string, check, update bool, args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unknown argument %q", args[0])
	case !update && out == "":
		return errors.New("--out is required")
	}
	root, err := goOutput("list", "-m", "-f", "{{.Dir}}", "github.com/attn-go/attn")
	if err != nil {
		return err
	}
	if update {
		return updateLessons(root)
	}
	b, err := newBuild(root, out)
	if err != nil {
		return err
	}
	if err := b.all(); err != nil {
		return err
	}
	for _, warning := range b.warnings() {
		log.Print("site: warning: ", warning)
	}
	// Sizes depend on the release of Go, so a page over its budget is no reason not to build it.
	if err := b.report(os.Stdout); err != nil {
		if _, ok := errors.AsType[overBudget](err); !ok || check {
			return err
		}
		log.Print("site: ", err)
	}
	if serve == "" {
		return nil
	}
	fmt.Println("http://" + serve)
	return http.ListenAndServe(serve, http.FileServer(http.Dir(out)))
}

// goOutput returns what a go command writes, without the last line end.
func goOutput(args ...string) (string, error) {
	text, err := exec.Command("go", args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, failed.Stderr)
	}
	return strings.TrimSuffix(string(text), "\n"), err
}

// mark is the file that lists the files of a site, one a line, as the build that wrote them left it.
const mark = ".attn-site"

// newBuild prepares the output directory. It must be new, empty, or contain a site: then the files of that site are
// removed, and only they.
func newBuild(root, out string) (*build, error) {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		if err := removeSite(out); err != nil {
			return nil, err
		}
	}
	return &build{root: root, out: out, files: map[string]*file{}, imports: map[string][]string{}}, nil
}

// removeSite removes the files of an earlier build, and the directories that are empty then.
func removeSite(out string) error {
	list, err := os.ReadFile(filepath.Join(out, mark))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not empty and has no %s, so it contains no site: nothing is overwritten; "+
			"name a new or empty directory, or one that this command has written", out, mark)
	}
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(out) // no name in the list leads out of it
	if err != nil {
		return err
	}
	defer dir.Close()
	var dirs []string
	for name := range strings.Lines(string(list)) {
		name = filepath.FromSlash(strings.TrimSuffix(name, "\n"))
		if err := dir.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for d := filepath.Dir(name); d != "."; d = filepath.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	slices.SortFunc(dirs, func(x, y string) int { return len(y) - len(x) }) // inner ones first
	for _, d := range slices.Compact(dirs) {
		_ = dir.Remove(d) // fails if it contains a file of somebody else
	}
	return dir.Remove(mark)
}
