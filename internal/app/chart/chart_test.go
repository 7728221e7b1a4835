package chart

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/strictjson"
)

// threeEpochs is the history of a run of three epochs with 41 steps each.
func threeEpochs() (h curve.History) {
	for i := range 123 {
		step := i + 1
		h.Steps = append(h.Steps, curve.Step{
			Kind: curve.KindStep, Step: step, TrainLoss: curve.Number(0.3 + 4/math.Sqrt(float64(step)) + 0.05*math.Sin(float64(7*i))),
			LR: 0.002 * min(float64(step)/40, math.Sqrt(40/float64(step))), Tokens: 1200 + 10*(i%7), Seconds: 0.05 + 0.001*float64(i%5),
		})
		if step%41 == 0 {
			h.Epochs = append(h.Epochs, curve.Epoch{Kind: curve.KindEpoch, Epoch: step / 41, Step: step, TrainLoss: 1, ValidLoss: curve.Number(0.2 + 3/math.Sqrt(float64(step))), Tokens: 50000, Seconds: 2})
		}
	}
	return h
}

// lines returns the lines of a history.
func lines(t *testing.T, h curve.History) (list [][]byte) {
	t.Helper()
	add := func(v any) {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, line)
	}
	for _, s := range h.Steps {
		add(s)
	}
	for _, e := range h.Epochs {
		add(e)
	}
	return list
}

func TestPicture(t *testing.T) {
	short := curve.History{Steps: threeEpochs().Steps[:1]}
	gap := threeEpochs()
	gap.Epochs[1].ValidLoss = strictjson.NaN
	flat := curve.History{Steps: threeEpochs().Steps}
	for i := range flat.Steps {
		flat.Steps[i].TrainLoss = 2.5
	}
	for name, h := range map[string]curve.History{"whole": threeEpochs(), "short": short, "gap": gap, "flat": flat, "unmeasured": {Steps: threeEpochs().Steps}} {
		var b strings.Builder
		if err := Picture(&b, lines(t, h)); err != nil {
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
	if err := Picture(io.Discard, lines(t, curve.History{Epochs: gap.Epochs})); err == nil {
		t.Error("a picture of nothing")
	}
	// The axis is logarithmic where the loss falls far, and only there.
	if c := chartsOf(threeEpochs(), usualWidth)[0]; !c.YAxis.Log {
		t.Error("the axis is not logarithmic")
	}
	if c := chartsOf(flat, usualWidth)[0]; c.YAxis.Log {
		t.Error("the axis of equal losses is logarithmic")
	}
}

// The charts share the x axis of the last one, and show the numbers of each point under the pointer.
func TestSharedAxis(t *testing.T) {
	p, err := NewPage(curve.Run{History: threeEpochs()}, time.Time{}, 700)
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

// A point of one step, at the end of an epoch, is not a spike in the picture.
func TestMeans(t *testing.T) {
	h := curve.History{Steps: []curve.Step{{Step: 8, TrainLoss: 3}, {Step: 16, TrainLoss: 2}, {Step: 18, TrainLoss: 7}, {Step: 24, TrainLoss: 1}}}
	if got, want := fmt.Sprint(means(h)), "[{8 8 3} {8 18 3} {6 24 1}]"; got != want {
		t.Errorf("means %s, want %s", got, want)
	}
}

// A page says what the directory of a run shows, while the run trains and afterwards.
func TestPage(t *testing.T) {
	r := curve.Run{History: threeEpochs(), Live: &curve.Live{
		Time: time.Unix(1e9, 0), Epoch: 1, Epochs: 3, Step: 20, Steps: 123, TrainLoss: 1.5, LR: 0.001, Rate: 23456, Left: 41 * time.Second,
	}}
	now := r.Live.Time.Add(3 * time.Second)
	check := func(now time.Time, status string, over bool, facts string) {
		t.Helper()
		p, err := NewPage(r, now, 500)
		if err != nil || !strings.Contains(p.Chart, "tokens per second") {
			t.Errorf("page %.200v, %v", p, err)
		}
		if p.Status != status || p.Over != over {
			t.Errorf("status %q, over: %v, want %q, %v", p.Status, p.Over, status, over)
		}
		if got := fmt.Sprint(p.Facts); got != facts {
			t.Errorf("facts\n%s, want\n%s", got, facts)
		}
	}
	live := "[{epoch 1 of 3} {step 20 of 123} {training loss 1.5000} {validation loss 0.4705} {learning rate 0.001} {tokens per second 23.5k} {left 41s}]"
	check(now, "training", false, live)
	check(now.Add(time.Minute), "no update for 1m3s", false, live)
	r.Live.Step = r.Live.Steps
	check(now, "measuring", false, strings.Replace(live, "20 of", "123 of", 1))
	r.Live = nil
	over := "{step 123} {training loss 1.0000} {validation loss 0.4705} {learning rate 0.00114} {tokens per second 25.0k}"
	check(now, "not running", true, "["+over+"]")
	r.Final = &curve.Final{ExactMatch: 0.5, BLEU: 50, Perplexity: 2}
	check(now, "done", true, "["+over+" {exact match 50.0%} {BLEU 50.0} {perplexity 2.000}]")
}

// A directory without a run has a page, one with a damaged run has an error.
func TestReadPage(t *testing.T) {
	dir := t.TempDir()
	for _, dir := range []string{dir, filepath.Join(dir, "none")} {
		if p, err := ReadPage(dir, time.Now(), 500); err != nil || p.Status != "no run here yet" || p.Facts == nil || p.Over {
			t.Errorf("%s: page %+v, %v", dir, p, err)
		}
	}
	path := filepath.Join(dir, curve.File)
	line := `{"kind":"step","step":1,"train_loss":2,"lr":0.1,"tokens":10,"seconds":1}` + "\n"
	if err := os.WriteFile(path, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := ReadPage(dir, time.Now(), 500); err != nil || p.Status != "not running" || p.Facts[0] != (Fact{"step", "1"}) {
		t.Errorf("page %+v, %v", p, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPage(dir, time.Now(), 500); err == nil {
		t.Error("a directory in place of the metrics has a page")
	}
}
