package progress

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/app/hub"
)

// A log has a line for each file and each repeated request; a terminal has a bar that is erased.
func TestDownload(t *testing.T) {
	var b strings.Builder
	d := NewDownload(&b)
	w := d.Watch()
	w.Bytes(500, 2000)
	w.Whole(hub.File{Path: "config.json", Size: 500})
	d.Retry(errors.New("lost\nconnection"), 1600*time.Millisecond)
	if want := "config.json  500 bytes\nlost\\nconnection; retrying in 2s\n"; b.String() != want {
		t.Errorf("the log is %q, want %q", b.String(), want)
	}
	if have, all := d.Size(); have != "500 bytes" || all != "2 kB" {
		t.Errorf("%s of %s, want 500 bytes of 2 kB", have, all)
	}
	b.Reset()
	d = NewDownload(&b)
	d.columns = func() int { return 60 }
	w = d.Watch()
	w.Bytes(500, 2000)
	w.Whole(hub.File{Path: "config.json", Size: 500})
	if text := b.String(); !strings.HasPrefix(text, "\r500 bytes of 2 kB  25% |██████") || strings.Contains(text, "config.json") {
		t.Errorf("the terminal shows %q", text)
	}
}

// A log has a line for each completed stage.
func TestStages(t *testing.T) {
	var b strings.Builder
	s := NewStages(&b)
	for i := range 3 {
		s.Update("scoring heads", i, 2)
	}
	s.Update("measuring attention", 1, 2)
	if want := "scoring heads: 0s\n"; b.String() != want {
		t.Errorf("the log is %q, want %q", b.String(), want)
	}
}
