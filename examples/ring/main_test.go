package main

import (
	"os"
	"strings"
	"testing"
)

// The test's program is also the second process.
func TestMain(m *testing.M) {
	if os.Getenv(second) != "" {
		if err := other(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Two processes give the same bits as one that computes the same parts, forward and backward; run
// returns an error otherwise.
func TestRun(t *testing.T) {
	var report strings.Builder
	if err := first(&report); err != nil {
		t.Fatalf("%v\n%s", err, report.String())
	}
	if n := strings.Count(report.String(), " 0 numbers differ"); n != 4 {
		t.Errorf("the report is of %d tensors, want 4:\n%s", n, report.String())
	}
}

// It is an error if the second process ends too soon.
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
