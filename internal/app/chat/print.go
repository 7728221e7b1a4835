package chat

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// printer streams a text in pieces.
type printer struct {
	out   io.Writer
	plain bool            // do not replace control characters
	text  strings.Builder // the whole text
	err   error
}

// print writes a piece. Unless p.plain is set, control characters are replaced, because the output of a
// model is untrusted.
func (p *printer) print(text string) {
	if p.err != nil || text == "" {
		return
	}
	p.text.WriteString(text)
	if !p.plain {
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return unicode.ReplacementChar
			}
			return r
		}, text)
	}
	_, p.err = io.WriteString(p.out, text)
}

// pace measures the speed of generation.
type pace struct {
	prompt, tokens     int
	start, first, last time.Time
}

// newPace starts a measurement for a prompt with the given number of tokens.
func newPace(prompt int) *pace { return &pace{prompt: prompt, start: time.Now()} }

// token records a generated token.
func (p *pace) token() {
	p.last = time.Now()
	if p.tokens++; p.tokens == 1 {
		p.first = p.last
	}
}

// String returns the time for the prompt, and the speed of the tokens after the first.
func (p *pace) String() string {
	if p.tokens == 0 {
		return fmt.Sprintf("%d tokens read, none written", p.prompt)
	}
	text := fmt.Sprintf("%d tokens read in %.2f s, %d written", p.prompt, p.first.Sub(p.start).Seconds(), p.tokens)
	if d := p.last.Sub(p.first).Seconds(); p.tokens > 1 && d > 0 {
		text += fmt.Sprintf(" at %.1f tokens/s", float64(p.tokens-1)/d)
	}
	return text
}
