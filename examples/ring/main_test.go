package main

import (
	"os"
	"strings"
	"testing"
)

// The test's own program is the second process.
func TestMain(m *testing.M) {
	if os.Getenv(second) != "" {
		if err := other(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Two processes come to the bits of one that computes the same parts, forward and
// backward; run returns an error if they do not.
func TestRun(t *testing.T) {
	var report strings.Builder
	if err := first(&report); err != nil {
		t.Fatalf("%v\n%s", err, report.String())
	}
	if n := strings.Count(report.String(), " 0 differ"); n != 4 {
		t.Errorf("the report is of %d tensors, want 4:\n%s", n, report.String())
	}
}

// A second process that ends too soon is told of in an error.
func TestOtherProcessEnds(t *testing.T) {
	closed, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := (link{closed, null}).attend(0); err == nil {
		t.Error("no error")
	}
}
