// Package partest sets the number of threads of tests. It is for tests.
package partest

import (
	"math"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/par"
)

// Tests run as many threads as GOMAXPROCS says, also on fewer processors.
func init() { par.Usable = math.MaxInt }

// OneThread makes a test program compute on one thread. Tests compute with tiny tensors, and threads that wait for
// each other took a third of their processor time. Tests of threads set GOMAXPROCS themselves; benchmarks, and runs with
// GOMAXPROCS in the environment, keep their number.
func OneThread() {
	measures := func(arg string) bool { return strings.HasPrefix(arg, "-test.bench=") }
	if os.Getenv("GOMAXPROCS") == "" && !slices.ContainsFunc(os.Args, measures) {
		runtime.GOMAXPROCS(1)
	}
}
