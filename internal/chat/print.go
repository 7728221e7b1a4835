package chat

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// Printer streams a text in pieces.
type Printer struct {
	Out   io.Writer
	Plain bool            // do not replace control characters
	Text  strings.Builder // the whole text
	Err   error
}

// Print writes a piece. Unless p.Plain is set, control characters are replaced, because the output of a
// model is untrusted.
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

// Pace measures the speed of generation.
type Pace struct {
	Prompt, Tokens     int
	start, first, last time.Time
}

// NewPace starts a measurement for a prompt with the given number of tokens.
func NewPace(prompt int) *Pace { return &Pace{Prompt: prompt, start: time.Now()} }

// Token records a generated token.
func (p *Pace) Token() {
	p.last = time.Now()
	if p.Tokens++; p.Tokens == 1 {
		p.first = p.last
	}
}

// String returns the time for the prompt, and the speed of the tokens after the first.
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
