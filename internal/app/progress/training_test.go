package progress

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/train"
)

// The status line fits in every terminal: the least important parts are dropped first, and the curve
// takes the remaining width.
func TestStatus(t *testing.T) {
	p := NewTraining(io.Discard, curve.History{})
	for i := range 400 {
		p.points = append(p.points, curve.Step{Step: i + 1, TrainLoss: strictjson.Number(4 / math.Sqrt(float64(i+1)))})
	}
	p.valid, p.digits = 0.3988, 2
	s := train.Progress{Epoch: 3, Epochs: 16, Step: 80, Steps: 160, Total: 400, Loss: 0.4213, Rate: 12345, Left: 101 * time.Second}
	for columns := range 200 {
		line := p.status(s, columns)
		if n := utf8.RuneCountInString(line); n > columns {
			t.Fatalf("%d characters on %d columns: %s", n, columns, line)
		}
	}
	for columns, want := range map[int]string{
		99: "epoch  3/16  loss 0.4213  valid 0.3988  12.3k tokens/s  1m41s left  █",
		72: "epoch  3/16  loss 0.4213  valid 0.3988  1m41s left  █",
		58: "epoch  3/16  loss 0.4213  valid 0.3988  █",
		40: "epoch  3/16  loss 0.4213  █",
		20: "epoch  3/16  loss 0.",
	} {
		line := p.status(s, columns)
		if !strings.HasPrefix(line, want) || utf8.RuneCountInString(line) != columns {
			t.Errorf("%d columns:\n%s\nwant\n%s…", columns, line, want)
		}
	}
}

// points returns the points of a list of alternating steps and losses.
func points(numbers ...float64) (list []curve.Step) {
	for i := 0; i < len(numbers); i += 2 {
		list = append(list, curve.Step{Step: int(numbers[i]), TrainLoss: strictjson.Number(numbers[i+1])})
	}
	return list
}

func TestSparkline(t *testing.T) {
	falling := points(1, 16, 2, 8, 3, 4, 4, 2, 5, 1)
	for _, c := range []struct {
		points         []curve.Step
		steps, columns int
		want           string
	}{
		{falling, 5, 5, "█▇▅▃▁"},
		{falling, 10, 10, "█▇▅▃▁·····"},
		{falling, 10, 5, "█▄▁··"},
		// Each point of a long run is the mean over the steps before it.
		{points(1, 4, 4, 2, 8, 1), 8, 8, "█▅▅▅▁▁▁▁"},
		{points(1, 3, 2, 3), 4, 4, "▅▅··"},
		{points(1, 3, 2, math.NaN(), 3, 0), 4, 4, "▅···"},
		{nil, 4, 4, "····"},
		{points(9, 3), 4, 4, "▅▅▅▅"}, // from a run with more epochs
	} {
		if got := sparkline(c.points, c.steps, c.columns); got != c.want {
			t.Errorf("%v over %d steps: %s, want %s", c.points, c.steps, got, c.want)
		}
	}
}

// The status line is erased, with spaces only, before another line is written.
func TestStatusIsErased(t *testing.T) {
	var b strings.Builder
	p := NewTraining(&b, curve.History{})
	p.columns = func() int { return 60 }
	s := train.Progress{
		Epoch: 1, Epochs: 2, Step: 1, Steps: 1, Total: 1, Loss: 2, Tokens: 5, Time: time.Second,
		EpochTokens: 5, EpochTime: time.Second, EpochDone: true, Window: &train.Window{Steps: 1, Loss: 2},
	}
	p.Step(s)
	p.Epoch(s, 1.5)
	p.Clear()
	screen := []rune(nil)
	var lines []string
	at := 0
	for _, r := range b.String() {
		switch {
		case r == '\r':
			at = 0
		case r == '\n':
			lines, screen, at = append(lines, strings.TrimRight(string(screen), " ")), nil, 0
		default:
			for len(screen) <= at {
				screen = append(screen, ' ')
			}
			screen[at] = r
			at++
		}
	}
	if want := "epoch 1  loss 2.0000  valid 1.5000    0.0k tokens/s  1.0 s"; len(lines) != 1 || lines[0] != want || strings.TrimSpace(string(screen)) != "" {
		t.Errorf("the terminal shows %q and %q, want %q", lines, string(screen), want)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("there are control sequences")
	}
}

// The columns of all epochs are aligned.
func TestEpochsAlign(t *testing.T) {
	var b strings.Builder
	p := NewTraining(&b, curve.History{})
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
				t.Errorf("%s is not at column %d:\n%s", word, at, b.String())
			}
		}
	}
}
