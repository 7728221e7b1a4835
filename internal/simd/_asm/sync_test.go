package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The assembly must be what the generator writes. The result of this test
// cannot be cached: run it with -count=1, since the file is outside of the
// module and go test does not see it change.
func TestAssemblyIsUpToDate(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new.s")
	if msg, err := exec.Command("go", "run", ".", "-out", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../simd_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	// The first line has the command, which differs.
	_, want, _ = bytes.Cut(want, []byte("\n"))
	_, got, _ = bytes.Cut(got, []byte("\n"))
	if !bytes.Equal(got, want) {
		t.Error("simd_amd64.s is not what the generator writes: run go generate in internal/simd")
	}
}
