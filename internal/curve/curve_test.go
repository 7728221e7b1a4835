package curve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// history is the history of a run of three epochs with 41 steps each.
func history() (h History) {
	for i := range 123 {
		step := i + 1
		h.Steps = append(h.Steps, Step{
			Kind: KindStep, Step: step, TrainLoss: 2, LR: 0.002, Tokens: 1200 + i, Seconds: 0.05,
		})
		if step%41 == 0 {
			h.Epochs = append(h.Epochs, Epoch{Kind: KindEpoch, Epoch: step / 41, Step: step, TrainLoss: 1, ValidLoss: 1.5, Tokens: 50000, Seconds: 2})
		}
	}
	return h
}

// lines writes a history in the format of the metrics file.
func (h History) lines(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	add := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	for _, s := range h.Steps {
		add(s)
		for _, e := range h.Epochs {
			if e.Step == s.Step {
				add(e)
			}
		}
	}
	return b.String()
}

func TestParse(t *testing.T) {
	text := history().lines(t)
	final := `{"kind":"final","loss":0.25,"perplexity":1.28,"exact_match":0.75,"bleu":63.5,"sources":7,"unseen":true}` + "\n"
	strange := "{\"kind\":\"later\",\"step\":1}\nno JSON\n{\"kind\":\"step\",\"step\":\"x\"}\n"
	h := Parse(Lines([]byte(text + strange + final + `{"kind":"ep`)))
	if len(h.Steps) != 123 || len(h.Epochs) != 3 {
		t.Errorf("%d points and %d epochs, want 123 and 3", len(h.Steps), len(h.Epochs))
	}
	if h.Steps[40] != history().Steps[40] || h.Epochs[1] != history().Epochs[1] {
		t.Errorf("read %+v and %+v", h.Steps[40], h.Epochs[1])
	}
	if h.Final == nil || h.Final.BLEU != 63.5 {
		t.Errorf("the final measurement is %+v", h.Final)
	}
	// A final evaluation before further epochs, of a run that was resumed, does not count.
	h = Parse(Lines([]byte(final + text)))
	if h.Final != nil {
		t.Error("there is a final measurement before the last epoch")
	}
}

// The page explains why training loss is above validation loss.
func TestLossNote(t *testing.T) {
	for with, want := range map[[2]float32]string{
		{}:         "each point; validation loss is measured at the end of an epoch, so it can be lower.",
		{0.1, 0}:   "each point, with dropout 0.1; validation loss is measured at the end of an epoch without it, so it can be lower.",
		{0.1, 0.2}: "each point, with dropout 0.1 and label smoothing 0.2; validation loss is measured at the end of an epoch without either, so it can be lower.",
	} {
		if got := LossNote(with[0], with[1]); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %s, want %s", with, got, want)
		}
	}
}

// A reader that follows a run finds every point once, before, during and after a save, and no
// points of the run that it replaces.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	h := history()
	live := Live{Time: time.Unix(1e9, 0), Epoch: 1, Epochs: 3, Step: 20, Steps: 123, TrainLoss: 1.5, LR: 0.001, Rate: 23456, Left: 41 * time.Second, Recent: h.Steps[:20], Unsaved: true}
	write := func(l Live) {
		t.Helper()
		if err := WriteLive(dir, l); err != nil {
			t.Fatal(err)
		}
	}
	points := func(want int) Run {
		t.Helper()
		r, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Steps) != want {
			t.Errorf("%d points, want %d", len(r.Steps), want)
		}
		for i, s := range r.Steps {
			if s.Step != i+1 {
				t.Errorf("point %d is of step %d", i, s.Step)
				break
			}
		}
		return r
	}
	write(live)
	points(20)
	if err := os.WriteFile(filepath.Join(dir, File), []byte(h.lines(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	points(20) // these lines are of another run
	live.Unsaved = false
	write(live)
	points(123) // saved meanwhile
	live.Recent = append(h.Steps[100:], Step{Kind: KindStep, Step: 124, TrainLoss: 1})
	write(live)
	points(124)
	RemoveLive(dir)
	points(123)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(dir, liveFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), liveFile) {
		t.Errorf("half a file: %v", err)
	}
}
