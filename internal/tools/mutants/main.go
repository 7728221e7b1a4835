// Command mutants measures what the tests notice. It makes small changes in the code, one at a time, and runs the
// tests of the package and of the nearest packages that import it. A change that no test notices survives.
//
//	go run ./internal/tools/mutants -n 500 -seed 1 ./internal/flash ./internal/par ./tensor . ./models
//	go run ./internal/tools/mutants -only 3f0c12ab ./internal/par  # one mutant, with the output of go test
//
// A change shifts or inverts a comparison, swaps && and ||, + and −, or min and max, changes a number by 1, removes a
// statement or a !, or makes a condition constant. An overlay replaces the file, so the working tree stays as it is.
// tests.txt lists the tests of each package. Mutants that do not compile are not counted, nor are those that compute
// the same, which equivalent.txt lists. TestLists fails if an entry of either file matches nothing.
package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

var (
	count  = flag.Int("n", 500, "mutants to run")
	seed   = flag.Uint64("seed", 1, "which mutants are drawn")
	only   = flag.String("only", "", "run the mutant with this `name`, as printed and in the report")
	report = flag.String("report", "", "append results to this `file`, and skip the mutants that it calls killed")
	want   = flag.Float64("want", 0, "fail if a smaller share is killed, in `percent`")
)

//go:embed equivalent.txt
var equivalentList string

func main() {
	flag.Parse()
	if err := run(flag.Args(), *only == ""); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run draws and runs mutants. Their compiled packages are kept if clean is false.
func run(packages []string, clean bool) error {
	all, err := list(packages)
	if err != nil {
		return err
	}
	equivalent, err := parseEquivalent(equivalentList)
	if err != nil {
		return err
	}
	done, err := readReport(*report)
	if err != nil {
		return err
	}
	r, err := newRunner(packages, clean)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	rng := rand.New(rand.NewPCG(*seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if *only != "" {
		all = slices.DeleteFunc(all, func(m *mutant) bool { return m.id() != *only })
		if equivalent, done = nil, nil; len(all) == 0 {
			return fmt.Errorf("no mutant of %s has the name %s", strings.Join(packages, " "), *only)
		}
	}
	tried, killed, same := 0, 0, 0
	for _, m := range all {
		if tried == *count {
			break
		}
		if slices.ContainsFunc(equivalent, m.is) {
			same++
			continue
		}
		result := done[m.id()]
		if result == "" {
			begin := time.Now()
			if result, err = r.try(m); err != nil {
				return err
			}
			line := fmt.Sprintf("%s\t%s\t%.1f s\t%s\n", m.id(), result, time.Since(begin).Seconds(), m)
			if err := write(*report, line); err != nil {
				return err
			}
		}
		switch result {
		case "not compiled":
			continue
		case "survived":
			fmt.Println(m.id(), m)
		default:
			killed++
		}
		tried++
	}
	share := 100 * float64(killed) / float64(max(tried, 1))
	fmt.Printf("killed %d of %d (%.1f%%), equivalent %d\n", killed, tried, share, same)
	if share < *want {
		return fmt.Errorf("killed %.1f%%, want %g%%", share, *want)
	}
	return nil
}

// list returns the mutants of the files of packages that are compiled on this system.
func list(packages []string) (all []*mutant, err error) {
	for _, dir := range packages {
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil, err
		}
		for _, name := range p.GoFiles {
			found, err := mutantsOf(path.Join(dir, name))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// parseEquivalent reads entries of four lines: file and function, line of code, change, reason.
func parseEquivalent(list string) (all []place, err error) {
	for entry := range strings.SplitSeq(strings.TrimSpace(list), "\n\n") {
		lines := strings.Split(entry, "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "#") })
		if len(lines) == 0 {
			continue
		}
		file, function, ok := strings.Cut(lines[0], " ")
		if len(lines) != 4 || !ok {
			return nil, fmt.Errorf("equivalent.txt: entry %q, want file and function, line, change, reason", entry)
		}
		all = append(all, place{file, function, lines[1], lines[2]})
	}
	return all, nil
}

// is reports whether an entry of equivalent.txt describes the mutant.
func (m *mutant) is(p place) bool {
	return m.file == p.file && m.function == p.function && (p.source == "*" || p.source == m.source) &&
		(p.change == "*" || p.change == m.change)
}

// readReport returns by name the results that need no second run.
func readReport(name string) (map[string]string, error) {
	done := map[string]string{}
	text, err := os.ReadFile(name)
	if name == "" || errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); len(f) > 1 && f[1] != "survived" {
			done[f[0]] = f[1]
		}
	}
	return done, err
}

func write(name, line string) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return cmp.Or(err, f.Close())
}
