package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed tests.txt
var testList string

// memory is the address space of a command in KiB, so that a mutant that appends without end fails alone.
const memory = 16 << 20

// runner runs tests with changed files.
type runner struct {
	dir    string                   // temporary
	cache  string                   // a folder for compiled packages, or empty for the usual one
	tests  map[string][]string      // arguments of go test by package
	limits map[string]time.Duration // of a run, by arguments
	before map[string]bool          // files of cache without a change
}

// newRunner runs the tests of packages without a change, which must pass. A mutant may take four times as long.
func newRunner(packages []string, clean bool) (r *runner, err error) {
	r = &runner{tests: map[string][]string{}, limits: map[string]time.Duration{}}
	for line := range strings.Lines(testList) {
		if name, args, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' {
			r.tests[name] = append(r.tests[name], args)
		}
	}
	if r.dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return nil, err
	}
	if clean {
		r.cache = filepath.Join(r.dir, "cache")
	}
	for _, p := range packages {
		tests := r.tests[path.Clean(p)]
		if len(tests) == 0 {
			return nil, fmt.Errorf("tests.txt has no tests of %s", p)
		}
		for _, args := range tests {
			if r.limits[args] != 0 || *only != "" {
				continue
			}
			for _, extra := range []string{" -run ^$", ""} { // first compile, then measure
				begin := time.Now()
				if out, err := r.test(args+extra, "", 10*time.Minute); err != nil {
					return nil, fmt.Errorf("go test %s without a change: %w\n%s", args, err, out)
				}
				r.limits[args] = 20*time.Second + 4*time.Since(begin)
			}
		}
	}
	r.before, err = r.files()
	return r, err
}

// try returns what becomes of a mutant: "not compiled", "survived", or the tests that failed.
func (r *runner) try(m *mutant) (result string, err error) {
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	text, err := m.apply()
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(r.dir, "changed.go"), filepath.Join(r.dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err = errors.Join(err, os.WriteFile(changed, text, 0o666), os.WriteFile(overlay, replace, 0o666)); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.clean()) }()
	name := path.Dir(m.file)
	if _, err := r.command("go", "build", "-overlay", overlay, "./"+name); err != nil {
		return "not compiled", nil
	}
	for _, args := range r.tests[name] {
		limit := r.limits[args]
		if limit == 0 {
			limit = 2 * time.Minute
		}
		if _, err := r.test(args, overlay, limit); err != nil {
			return "killed by " + args, nil
		}
	}
	return "survived", nil
}

func (r *runner) test(args, overlay string, limit time.Duration) ([]byte, error) {
	words := []string{"go", "test", "-short", "-failfast", "-vet=off", "-count=1", "-overlay=" + overlay}
	words = append(words, "-timeout="+limit.String())
	return r.command(append(words, strings.Fields(args)...)...)
}

// command runs a command with limited memory.
func (r *runner) command(words ...string) ([]byte, error) {
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$@"`, memory), "sh"}, words...)...)
	if r.cache != "" {
		cmd.Env = append(os.Environ(), "GOCACHE="+r.cache)
	}
	if *only == "" {
		return cmd.CombinedOutput()
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return nil, cmd.Run()
}

// files returns the files of cache.
func (r *runner) files() (map[string]bool, error) {
	all := map[string]bool{}
	if r.cache == "" {
		return all, nil
	}
	err := filepath.WalkDir(r.cache, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all[name] = true
		}
		return err
	})
	return all, err
}

// clean removes what a mutant added to the cache, up to 100 MB.
func (r *runner) clean() error {
	all, err := r.files()
	for name := range all {
		if !r.before[name] {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}
