package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const source = `package p

type stats struct{ shift, inverse []float32 }

func (st *stats) bad(row int) bool {
	x := st.shift[row] * st.inverse[row]
	return x-x != 0
}

func (st *stats) good(row int) bool {
	x := float32(st.shift[row] * st.inverse[row])
	return x-x != 0
}

func square(x float64) float64 { return x * x }

func inlined(x, y float64) float64 {
	return y - square(x)
}

var apart, together = float64(inlined(2, 3)), func(x, y, z float32) float32 { return -(x * y) + z }
`

// compile returns the places of the source above.
func compile(t *testing.T) []place {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "p.go")
	if err := os.WriteFile(file, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "tool", "compile", "-S", "-p", "p", "-o", filepath.Join(dir, "p.o"), file)
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64")
	listing, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, listing)
	}
	found, err := places(listing, dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPlaces(t *testing.T) {
	want := []place{
		{"p.go", 7, "attn.(*stats).bad"}, // difference of two equal products
		{"p.go", 18, "attn.inlined"},     // a product computed by another function
		{"p.go", 21, "attn.init"},
	}
	if got := compile(t); !slices.Equal(got, want) {
		t.Errorf("fused in\n%v, want\n%v", got, want)
	}
}

func TestJudge(t *testing.T) {
	got := judge(compile(t), map[string]string{"attn.inlined": exact, "attn.init": exact, "attn.gone": exact})
	for i, want := range []string{"p.go:7: attn.(*stats).bad: on arm64 ", "attn.gone is allowed, but nothing"} {
		if len(got) != 2 || !strings.Contains(got[i], want) {
			t.Fatalf("%d complaints, want 2, number %d with %q:\n%s", len(got), i, want, strings.Join(got, "\n"))
		}
	}
}
