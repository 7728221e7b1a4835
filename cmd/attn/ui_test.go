package main

import (
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/train"
)

// The columns of all epochs are aligned.
func TestEpochsAlign(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b, curve.History{})
	for _, epoch := range []int{1, 9, 10, 12} {
		s := train.Progress{
			Epoch: epoch, Epochs: 12, Step: 1, Steps: 1, Loss: 1.5, Tokens: 5, Time: time.Second,
			EpochTokens: epoch * 1000, EpochTime: time.Second, EpochDone: true,
		}
		p.Step(s)
		p.Epoch(s, 1.25)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), b.String())
	}
	for _, word := range []string{"loss", "valid", "k tokens/s"} {
		at := strings.Index(lines[0], word)
		for _, line := range lines {
			if strings.Index(line, word) != at {
				t.Errorf("%s does not stand at %d:\n%s", word, at, b.String())
			}
		}
	}
}
