//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/safetensors"
)

// attn passes the token to the browser in a private file, not in its arguments, which other users can
// read.
func TestOpenBrowser(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	weights := safetensors.File{Tensors: []safetensors.Tensor{safetensors.FromFloat32s("decoder.0.cross", []int{1, 1, 2}, []float32{0.25, 0.75})}}
	if err := weights.WriteFile(at("w.safetensors")); err != nil {
		t.Fatal(err)
	}
	// A fake open command that records its arguments.
	script := fmt.Sprintf("#!/bin/sh\ncd '%s' && echo \"$*\" > args && ls -ld \"$1\" > rights && ls -ld \"$(dirname \"$1\")\" >> rights && cat \"$1\" > page && mv page opened\n", dir)
	for _, name := range []string{"bin", "tmp"} {
		if err := os.Mkdir(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(at("bin/"+name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", at("bin")+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", at("tmp"))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan int)
	var out, messages bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"view", "--weights", at("w.safetensors"), "--open"}, console{in: strings.NewReader(""), out: &out, err: &messages})
	}()
	for {
		if _, err := os.Stat(at("opened")); err == nil {
			break
		}
		select {
		case code := <-ended:
			t.Fatalf("no browser is opened; exit code %d: %s", code, &messages)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	<-ended

	read := func(name string) string {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	token := regexp.MustCompile(`\?token=(\w+)\n$`).FindStringSubmatch(out.String())
	if token == nil {
		t.Fatalf("the address is %q", &out)
	}
	if args := read("args"); !strings.HasPrefix(args, at("tmp")) || strings.Contains(args, token[1]) {
		t.Errorf("the browser is called with %q", args)
	}
	if page := read("opened"); !strings.Contains(page, `content="0;url=`+strings.TrimSpace(out.String())+`"`) {
		t.Errorf("the file does not lead to %s: %s", &out, page)
	}
	if rights := read("rights"); !strings.HasPrefix(rights, "-rw-------") || !strings.Contains(rights, "\ndrwx------") {
		t.Errorf("others can read the file:\n%s", rights)
	}
	left, err := os.ReadDir(at("tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("in the end there are %v, %v", left, err)
	}
}
