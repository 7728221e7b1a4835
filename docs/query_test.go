package docs

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// stacked is a score change that keeps the functions that have called it.
type stacked struct{ functions []string }

func (*stacked) Check(attn.Sizes) error                                               { return nil }
func (*stacked) Param(*tensor.Tape, attn.Inputs) *tensor.Tensor                       { return nil }
func (*stacked) Adds() bool                                                           { return true }
func (*stacked) Back(attn.Row, []float32, []float32, []float32, []float32, []float32) {}

func (s *stacked) Apply(attn.Row, []float32, []float32) {
	callers := make([]uintptr, 40)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	s.functions = nil
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		s.functions = append(s.functions, f.Function[strings.LastIndex(f.Function, "/")+1:])
	}
	slices.Reverse(s.functions)
}

// DESIGN lists all functions from Attend to the scores of a query, in their order.
func TestWayOfAQuery(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // or a body may run on another stack
	s := &stacked{}
	x := tensor.Zeros(1, 1, 3, 4)
	attn.Attend(nil, x, x, x, attn.Options{Changes: []attn.ScoreChange{s}})
	from := slices.Index(s.functions, "attn.Attend")
	to := slices.Index(s.functions, "flash.(*worker).score")
	if from < 0 || to < 0 {
		t.Fatalf("the stack is %q", s.functions)
	}
	text, err := os.ReadFile("../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, line := range regexp.MustCompile(`(?m)^    ((attn|flash|par|simd)\.\S+)`).FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, line[1])
	}
	if want := append(s.functions[from:to+1], "simd.MultiplyPanels"); !slices.Equal(listed, want) {
		t.Errorf("DESIGN lists\n%q, the stack is\n%q", listed, want)
	}
}
