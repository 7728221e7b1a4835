package curve

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/strictjson"
)

// history is the history of a run of three epochs with 41 steps each.
func history() (h History) {
	for i := range 123 {
		step := i + 1
		h.Steps = append(h.Steps, Step{
			Kind: KindStep, Step: step, TrainLoss: Number(0.3 + 4/math.Sqrt(float64(step)) + 0.05*math.Sin(float64(7*i))),
			LR: 0.002 * min(float64(step)/40, math.Sqrt(40/float64(step))), Tokens: 1200 + 10*(i%7), Seconds: 0.05 + 0.001*float64(i%5),
		})
		if step%41 == 0 {
			h.Epochs = append(h.Epochs, Epoch{Kind: KindEpoch, Epoch: step / 41, Step: step, TrainLoss: 1, ValidLoss: Number(0.2 + 3/math.Sqrt(float64(step))), Tokens: 50000, Seconds: 2})
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

func TestPicture(t *testing.T) {
	short := History{Steps: history().Steps[:1]}
	gap := history()
	gap.Epochs[1].ValidLoss = strictjson.NaN
	flat := History{Steps: history().Steps}
	for i := range flat.Steps {
		flat.Steps[i].TrainLoss = 2.5
	}
	for name, h := range map[string]History{"whole": history(), "short": short, "gap": gap, "flat": flat, "unmeasured": {Steps: history().Steps}} {
		var b strings.Builder
		if err := h.Picture(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := b.String()
		if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, says := range []string{"loss, nats per token", "learning rate", "step"} {
			if !strings.Contains(text, says) {
				t.Errorf("%s: the picture does not say %q", name, says)
			}
		}
		if got, want := strings.Contains(text, "validation"), len(h.Epochs) > 0; got != want {
			t.Errorf("%s: the validation loss is drawn: %v, want %v", name, got, want)
		}
		if dir := os.Getenv("SHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, "curve_"+name+".svg"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := (History{}).Picture(io.Discard); err == nil || (History{}).Drawable() {
		t.Error("a picture of nothing")
	}
	// The axis is logarithmic where the loss falls far, and only there.
	if c := history().charts(usualWidth)[0]; !c.YAxis.Log {
		t.Error("the axis is not logarithmic")
	}
	if c := flat.charts(usualWidth)[0]; c.YAxis.Log {
		t.Error("the axis of equal losses is logarithmic")
	}
}

// The charts share the x axis of the last one, and show the numbers of each point under the pointer.
func TestSharedAxis(t *testing.T) {
	p, err := Run{History: history()}.Page(time.Time{}, 700)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(p.Chart, ">step</text>"); n != 1 {
		t.Errorf("%d axes of steps are named, want 1", n)
	}
	for _, name := range []string{"training", "learning rate", "tokens per second"} {
		if n := strings.Count(p.Chart, "<title>step 41: "+name+" "); n != 1 {
			t.Errorf("%d places tell the %s of step 41, want 1", n, name)
		}
	}
	if strings.Contains(p.Chart, "<style") {
		t.Error("a picture within the page has a style, which its policy forbids")
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

// A point of one step, at the end of an epoch, is not a spike in the picture.
func TestMeans(t *testing.T) {
	h := History{Steps: []Step{{Step: 8, TrainLoss: 3}, {Step: 16, TrainLoss: 2}, {Step: 18, TrainLoss: 7}, {Step: 24, TrainLoss: 1}}}
	if got, want := fmt.Sprint(h.means()), "[{8 8 3} {8 18 3} {6 24 1}]"; got != want {
		t.Errorf("means %s, want %s", got, want)
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
	r := points(124)
	now := live.Time.Add(3 * time.Second)
	if text, over := r.status(now); text != "training" || over {
		t.Errorf("status %q, over: %v", text, over)
	}
	if text, over := r.status(now.Add(time.Minute)); text != "no update for 1m3s" || over {
		t.Errorf("status %q, over: %v", text, over)
	}
	p, err := r.Page(now, 500)
	if err != nil || !strings.Contains(p.Chart, "tokens per second") {
		t.Errorf("page %.200v, %v", p, err)
	}
	facts := fmt.Sprint(p.Facts)
	if want := "[{epoch 1 of 3} {step 20 of 123} {training loss 1.5000} {validation loss 0.4705} {learning rate 0.001} {tokens per second 23.5k} {left 41s}]"; facts != want {
		t.Errorf("facts\n%s, want\n%s", facts, want)
	}
	RemoveLive(dir)
	r = points(123)
	if text, over := r.status(now); text != "not running" || !over {
		t.Errorf("status %q, over: %v", text, over)
	}
	if facts, want := fmt.Sprint(r.facts()), "[{step 123} {training loss 1.0000} {validation loss 0.4705} {learning rate 0.00114} {tokens per second 25.0k}]"; facts != want {
		t.Errorf("facts\n%s, want\n%s", facts, want)
	}
	r.Final = &Final{ExactMatch: 0.5}
	if text, _ := r.status(now); text != "done" {
		t.Errorf("status %q", text)
	}
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
