//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/train"
)

// limited BYTES PROGRAM ARGS… runs a program that cannot write files of more than BYTES bytes. Its
// writes then fail half-way, as on a full disk.
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

// interrupt PATTERN PROGRAM ARGS… runs a program with the line $TYPED as its input, which stays open.
// When the output or the messages match the pattern, and $DELAY later, it interrupts the program as
// Ctrl-C does, a second time when the messages match $AGAIN, and checks for exit code 130, or $EXIT. If a message
// contains the number of epochs, $NEXT is one more.
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
	if _, err := fmt.Fprintln(input, ts.Getenv("TYPED")); err != nil { // the program may not read its input
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
	if again := ts.Getenv("AGAIN"); again != "" {
		pattern, err := regexp.Compile(again)
		ts.Check(err)
		for !pattern.MatchString(messages.String()) {
			if time.Since(start) > 2*patience {
				cmd.Process.Kill()
				ts.Fatalf("%s has not come: %s", again, messages.String())
			}
			select {
			case err := <-done:
				ts.Fatalf("ended after the first interruption: %v: %s", err, messages.String())
			case <-time.After(5 * time.Millisecond):
			}
		}
		ts.Check(cmd.Process.Signal(os.Interrupt))
	}
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

// transcript is a thread-safe buffer.
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

// fill writes to a pipe until it is full.
func fill(t *testing.T, pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var stopped error
	err = raw.Write(func(fd uintptr) bool {
		for room := 1 << 16; ; { // a nearly full pipe rejects large writes
			if _, stopped = syscall.Write(int(fd), make([]byte, room)); stopped == nil {
				continue
			}
			if room /= 2; room == 0 {
				return true
			}
		}
	})
	if err != nil || !errors.Is(stopped, syscall.EAGAIN) {
		t.Fatalf("filling a pipe: %v, %v", err, stopped)
	}
}

// Only one process can write to the directory of a run. The second interruption stops a run that the
// first cannot stop: here training whose output blocks. It leaves a run that can be resumed, and no
// other files.
func TestSecondInterruption(t *testing.T) {
	dir := makePairs(t)
	out := filepath.Join(dir, "out")
	path, err := exec.LookPath("attn") // this test program, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	defer full.Close()
	fill(t, full)
	cmd := exec.Command(path, "train", "--json", "--data", filepath.Join(dir, "pairs.tsv"), "--width", "16", "--layers", "1", "--out", out)
	var messages transcript
	cmd.Stdout, cmd.Stderr = full, &messages
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for start, sent, locked := time.Now(), 0, false; ; {
		select {
		case err := <-done:
			if !locked {
				t.Error("another run could write to the directory")
			}
			if sent < 2 || cmd.ProcessState.ExitCode() != exitInterrupted || !strings.HasSuffix(messages.String(), "attn: interrupted twice, exiting immediately\n") {
				t.Fatalf("%d interruptions, %v: %s", sent, err, messages.String())
			}
			holdsRun(t, out)
			return
		case <-time.After(20 * time.Millisecond):
		}
		if exists(filepath.Join(out, curve.File)) { // next, it writes its output
			if !locked {
				code, said := quietly("train", "--resume", "--out", out)
				locked = code == exitFailed && said == "attn: write to "+out+": another process is writing there\n"
			}
			// The system merges two signals at the same time.
			if err := cmd.Process.Signal(os.Interrupt); err == nil {
				sent++
			}
		}
		if time.Since(start) > time.Minute {
			cmd.Process.Kill()
			t.Fatalf("still running after %d interruptions: %s", sent, messages.String())
		}
	}
}

// holdsRun fails the test unless a directory contains exactly the files of a run.
func holdsRun(t *testing.T, dir string) {
	t.Helper()
	if files := readAll(t, dir); len(files) != 9 || files[train.RecipeFile] == "" {
		t.Errorf("%s has %d files, want 9", dir, len(files))
	}
}
