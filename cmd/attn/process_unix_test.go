//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// limited BYTES PROGRAM ARGS… runs a program that cannot write files of more
// bytes. Its writes then fail half-way, as on a full disk, and for that nobody
// has to mount one.
func limited() {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, "limited:", err)
		os.Exit(99)
	}
	n, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		fail(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		fail(err)
	}
	path, err := exec.LookPath(os.Args[2])
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(path, os.Args[2:], os.Environ()))
}

// interrupt PATTERN PROGRAM ARGS… runs a program with the line $TYPED as its
// input, after which nothing comes and no end. When its output or its messages
// match the pattern, and $DELAY later, it interrupts it as Ctrl-C does, and
// checks that it exits with 130, or with $EXIT. If it has said after how many epochs it
// stopped, $NEXT is one more.
func interruptCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupt PATTERN PROGRAM ARGS…")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	path, err := exec.LookPath(args[1])
	ts.Check(err)

	var out, messages transcript
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOMAXPROCS", "GOCOVERDIR"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdout, cmd.Stderr = &out, &messages
	input, err := cmd.StdinPipe()
	ts.Check(err)
	defer input.Close()
	ts.Check(cmd.Start())
	if _, err := fmt.Fprintln(input, ts.Getenv("TYPED")); err != nil { // it may not read at all
		ts.Logf("typing: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()

	const patience = time.Minute
	delay, err := time.ParseDuration("0" + ts.Getenv("DELAY"))
	ts.Check(err)
	start := time.Now()
	for wait, matched := true, start; wait; {
		select {
		case err := <-done:
			ts.Fatalf("ended by itself: %v: %s", err, messages.String())
		case <-time.After(5 * time.Millisecond):
		}
		if pattern.MatchString(out.String()) || pattern.MatchString(messages.String()) {
			wait = time.Since(matched) < delay
		} else {
			matched = time.Now()
		}
		if time.Since(start) > patience {
			cmd.Process.Kill()
			ts.Fatalf("%s has not come: %s%s", args[0], out.String(), messages.String())
		}
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	select {
	case <-done:
	case <-time.After(patience):
		cmd.Process.Kill()
		ts.Fatalf("still running long after the interruption")
	}
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), messages.String())
	want := exitInterrupted
	if text := ts.Getenv("EXIT"); text != "" {
		want, err = strconv.Atoi(text)
		ts.Check(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		ts.Fatalf("exit code %d, want %d: %s", code, want, messages.String())
	}
	if want != exitOK {
		checkMessage(ts, want, messages.String())
	}
	if found := regexp.MustCompile(`after (\d+) epochs`).FindStringSubmatch(messages.String()); found != nil {
		epochs, err := strconv.Atoi(found[1])
		ts.Check(err)
		ts.Setenv("NEXT", fmt.Sprint(epochs+1))
	}
}

// transcript is a buffer that can be read while it is written.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Clone(t.buf.String())
}
