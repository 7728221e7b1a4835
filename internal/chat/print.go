package chat

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// Printer writes pieces of a text as they come.
type Printer struct {
	Out   io.Writer
	Plain bool            // every character is written as it is
	Text  strings.Builder // all of it
	Err   error
}

// Print writes a piece. A model may come up with anything: on a terminal, characters that
// would control it are replaced.
func (p *Printer) Print(text string) {
	if p.Err != nil || text == "" {
		return
	}
	p.Text.WriteString(text)
	if !p.Plain {
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return unicode.ReplacementChar
			}
			return r
		}, text)
	}
	_, p.Err = io.WriteString(p.Out, text)
}

// Pace is how fast tokens come.
type Pace struct {
	Prompt, Tokens     int
	start, first, last time.Time
}

// NewPace begins to measure, with the prompt of so many tokens.
func NewPace(prompt int) *Pace { return &Pace{Prompt: prompt, start: time.Now()} }

// Token counts a token.
func (p *Pace) Token() {
	p.last = time.Now()
	if p.Tokens++; p.Tokens == 1 {
		p.first = p.last
	}
}

// String says how fast the prompt was read, and how fast tokens followed the first one.
func (p *Pace) String() string {
	if p.Tokens == 0 {
		return fmt.Sprintf("%d tokens read, none written", p.Prompt)
	}
	text := fmt.Sprintf("%d tokens read in %.2f s, %d written", p.Prompt, p.first.Sub(p.start).Seconds(), p.Tokens)
	if d := p.last.Sub(p.first).Seconds(); p.Tokens > 1 && d > 0 {
		text += fmt.Sprintf(" at %.1f tokens/s", float64(p.Tokens-1)/d)
	}
	return text
}
