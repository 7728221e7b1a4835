package chat

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// printer streams a text in pieces, up to the first of some texts.
type printer struct {
	out     io.Writer
	plain   bool     // do not replace control characters
	stops   []string // texts that end the output
	held    string   // the end of the text, with which one of them may begin
	stopped string   // the one that has ended it
	text    strings.Builder
	err     error
}

// next writes a piece of the text, and reports whether the text continues. It keeps back what may become a stop.
func (p *printer) next(piece string) bool {
	p.held += piece
	end := len(p.held)
	for _, stop := range p.stops {
		if at := strings.Index(p.held, stop); at >= 0 && (at < end || p.stopped == "") {
			end, p.stopped = at, stop
		}
	}
	if p.stopped != "" {
		p.print(p.held[:end])
		p.held = ""
		return false
	}
	for _, stop := range p.stops {
		for n := min(len(stop)-1, len(p.held)); n > len(p.held)-end; n-- {
			if strings.HasSuffix(p.held, stop[:n]) {
				end = len(p.held) - n
			}
		}
	}
	p.print(p.held[:end])
	p.held = p.held[end:]
	return p.err == nil
}

// rest writes what was held back.
func (p *printer) rest() {
	p.print(p.held)
	p.held = ""
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
