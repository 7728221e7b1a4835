package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checkEquivalent returns an error for each entry of equivalent.txt that describes no mutant: its code has changed, so the
// reason may no longer be true.
func checkEquivalent(entries []place) error {
	var errs []error
	mutants := map[string][]*mutant{}
	for _, p := range entries {
		all, read := mutants[p.file]
		if !read {
			var err error
			if all, err = mutantsOf(p.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			mutants[p.file] = all
		}
		if !slices.ContainsFunc(all, func(m *mutant) bool { return m.is(p) }) {
			errs = append(errs, fmt.Errorf("equivalent.txt: %s has no mutant %q of the line %q in %s: change or remove the entry",
				p.file, p.change, p.source, p.function))
		}
	}
	return errors.Join(errs...)
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)

// checkTests returns an error for each line of tests.txt whose package, or one of whose tests, does not exist.
func checkTests(list string) error {
	var errs []error
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, args, ok := strings.Cut(line, ": ")
		packages, pattern, _ := strings.Cut(args, " -run ")
		if !ok {
			errs = append(errs, fmt.Errorf("tests.txt: line %q, want package: arguments of go test", line))
			continue
		}
		if found, err := testsOf(name); err != nil || len(found) == 0 {
			errs = append(errs, errors.Join(err, fmt.Errorf("tests.txt: line %q: %s has no tests", line, name)))
		}
		var tests []string
		for _, dir := range strings.Fields(packages) {
			found, err := testsOf(dir)
			if err != nil || len(found) == 0 {
				errs = append(errs, errors.Join(err, fmt.Errorf("tests.txt: line %q: %s has no tests", line, dir)))
			}
			tests = append(tests, found...)
		}
		for one := range strings.SplitSeq(pattern, "|") {
			r, err := regexp.Compile(one)
			if err != nil {
				return fmt.Errorf("tests.txt: line %q: %w", line, err)
			}
			if !slices.ContainsFunc(tests, r.MatchString) {
				errs = append(errs, fmt.Errorf("tests.txt: line %q: no test of %s matches %s", line, packages, one))
			}
		}
	}
	return errors.Join(errs...)
}

// testsOf returns the names of the tests of a package.
func testsOf(dir string) (names []string, err error) {
	files, err := filepath.Glob(path.Join(dir, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names, err
}
