//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

func limited() {}

func interruptCommand(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("interrupt: not on this system")
}
