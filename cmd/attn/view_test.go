package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/seq2seq"
)

// occupied PROGRAM ARGS… runs a program with an address as its last argument at
// which somebody listens already.
func occupied() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "occupied:", err)
		os.Exit(99)
	}
	cmd := exec.Command(os.Args[1], append(os.Args[2:], l.Addr().String())...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "occupied:", err)
		os.Exit(99)
	}
}

func TestTranslatorSource(t *testing.T) {
	m, err := seq2seq.Load(makeFixture(t) + "/model")
	if err != nil {
		t.Fatal(err)
	}
	s := translatorSource{m, newUnknown(io.Discard)}
	r, err := s.Look(t.Context(), "5 march 2019", "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Source != "5 march 2019" || len(r.Layers) == 0 {
		t.Errorf("%q → %q with %d layers", r.Source, r.Target, len(r.Layers))
	}
	if r, err = s.Look(t.Context(), "5 march 2019", "2019-03-05"); err != nil || r.Target != "2019-03-05" {
		t.Fatalf("with a target: %v", err)
	}
	if l := r.Layer(heads.Cross, 0); l == nil || !strings.HasPrefix(strings.Join(l.Queries, ""), "▁2019-03-05") {
		t.Errorf("cross layer 0 is %v", l)
	}
	long := strings.Repeat("x", mostTokens+1)
	for _, texts := range [][2]string{{long, ""}, {"x", long}} {
		if _, err := s.Look(t.Context(), texts[0], texts[1]); err == nil || !strings.Contains(err.Error(), "tokens, want at most 2048") {
			t.Errorf("a long text: %v", err)
		}
	}
}
