// Command targets checks that all packages of the module compile for other systems. It only checks types: it skips
// function bodies of imported packages and generates no code. A target takes some seconds, where a clean build takes
// a minute.
//
//	go run ./internal/tools/targets windows/amd64 linux/386
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	failed := false
	for _, target := range os.Args[1:] {
		for _, err := range check(target) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// listed is the part of go list's output for a package that is used here.
type listed struct {
	ImportPath, Dir string
	GoFiles, SFiles []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

// check returns the errors in the packages below the working directory for a target, such as linux/386.
func check(target string) (list []error) {
	known, err := exec.Command("go", "tool", "dist", "list").Output()
	if err != nil {
		return []error{fmt.Errorf("go tool dist list: %w", err)}
	}
	if !slices.Contains(strings.Fields(string(known)), target) { // go list accepts any target
		return []error{errors.New("want a system and a processor that Go has, such as linux/386")}
	}
	system, processor, _ := strings.Cut(target, "/")
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,SFiles,ImportMap,Module,Error", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return []error{fmt.Errorf("go list: %w", err)}
	}
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	for d := json.NewDecoder(bytes.NewReader(out)); ; { // packages follow their imports
		var p listed
		switch err := d.Decode(&p); {
		case err == io.EOF:
			return list
		case err != nil:
			return append(list, err)
		case p.Error != nil:
			list = append(list, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err))
		case p.ImportPath != "unsafe":
			list = append(list, p.check(processor, done)...)
		}
	}
}

// check adds the package to done, and returns the errors in it.
func (p *listed) check(processor string, done map[string]*types.Package) (list []error) {
	own := p.Module != nil && p.Module.Main
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		parsed = append(parsed, f)
	}
	config := types.Config{
		IgnoreFuncBodies: !own,
		Sizes:            types.SizesFor("gc", processor),
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if done[path] == nil {
				return nil, fmt.Errorf("%s was not checked", path)
			}
			return done[path], nil
		}),
		Error: func(err error) {
			if own {
				list = append(list, err)
			}
		},
	}
	done[p.ImportPath], _ = config.Check(p.ImportPath, files, parsed, nil)
	if !own || len(p.SFiles) > 0 {
		return list
	}
	for _, f := range parsed {
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body == nil {
				list = append(list, fmt.Errorf("%s: %s has no body, and there is no assembly", files.Position(f.Pos()), f.Name.Name))
			}
		}
	}
	return list
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
