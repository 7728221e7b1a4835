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
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "build the site into this `directory`; it must be empty, or contain a site")
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

// mark is a file that only a built site contains. A directory with it may be overwritten.
const mark = "assets/palette.js"

// newBuild prepares an empty output directory.
func newBuild(root, out string) (*build, error) {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, mark)); err != nil {
			return nil, fmt.Errorf("%s is not empty and contains no site: nothing is overwritten", out)
		}
		if err := os.RemoveAll(out); err != nil {
			return nil, err
		}
	}
	return &build{root: root, out: out, files: map[string]*file{}}, nil
}
