package main

import (
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mathML returns a formula, written in the part of TeX that the lessons use, as MathML. GitHub shows
// the same TeX. An unknown command is an error, so nothing is shown wrongly in silence.
func mathML(tex string) (string, error) {
	p := texParser{rest: tex}
	row, err := p.parseRow("")
	if err != nil {
		return "", fmt.Errorf("formula %q: %w", strings.TrimSpace(tex), err)
	}
	return `<math display="block">` + row + `</math>`, nil
}

// texSymbols are the commands that are one symbol, or a space.
var texSymbols = map[string]string{
	"top": "<mi>⊤</mi>", "exp": "<mi>exp</mi>", "cdot": "<mo>·</mo>", "sum": "<mo>∑</mo>",
	"cos": "<mi>cos</mi>", "phi": "<mi>φ</mi>", "pi": "<mi>π</mi>", "approx": "<mo>≈</mo>",
	",": `<mspace width="0.17em"></mspace>`,
}

type texParser struct{ rest string }

func (p *texParser) skipSpace() { p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace) }

// parseRow parses up to the end, which is "}" in a group, `\right)` in parentheses, or the end of the text.
func (p *texParser) parseRow(end string) (string, error) {
	var out strings.Builder
	out.WriteString("<mrow>")
	for {
		p.skipSpace()
		if end == "" && p.rest == "" || end != "" && strings.HasPrefix(p.rest, end) {
			p.rest = p.rest[len(end):]
			out.WriteString("</mrow>")
			return out.String(), nil
		}
		if p.rest == "" {
			return "", fmt.Errorf("%s is missing", end)
		}
		base, err := p.atom()
		if err != nil {
			return "", err
		}
		var low, high string
		for p.skipSpace(); strings.HasPrefix(p.rest, "_") || strings.HasPrefix(p.rest, "^"); p.skipSpace() {
			script := &low
			if p.rest[0] == '^' {
				script = &high
			}
			p.rest = p.rest[1:]
			if *script, err = p.atom(); err != nil {
				return "", err
			}
		}
		tags := [3]string{"msub", "msup", "msubsup"}
		if base == texSymbols["sum"] {
			tags = [3]string{"munder", "mover", "munderover"}
		}
		switch {
		case low != "" && high != "":
			base = "<" + tags[2] + ">" + base + low + high + "</" + tags[2] + ">"
		case low != "":
			base = "<" + tags[0] + ">" + base + low + "</" + tags[0] + ">"
		case high != "":
			base = "<" + tags[1] + ">" + base + high + "</" + tags[1] + ">"
		}
		out.WriteString(base)
	}
}

// atom parses one symbol, number, command or group.
func (p *texParser) atom() (string, error) {
	p.skipSpace()
	r, size := utf8.DecodeRuneInString(p.rest)
	switch {
	case size == 0:
		return "", fmt.Errorf("the end comes too early")
	case r == '{':
		p.rest = p.rest[1:]
		return p.parseRow("}")
	case r == '\\':
		return p.command()
	case unicode.IsDigit(r):
		n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789."))
		number := p.rest[:n]
		p.rest = p.rest[n:]
		return "<mn>" + number + "</mn>", nil
	}
	p.rest = p.rest[size:]
	switch {
	case unicode.IsLetter(r):
		return "<mi>" + string(r) + "</mi>", nil
	case r == '-':
		return "<mo>−</mo>", nil
	case r == '\'':
		return "<mo>′</mo>", nil
	case r == '|': // on which side its inside is, an operator does not say
		return `<mo stretchy="false" lspace="0" rspace="0">|</mo>`, nil
	case strings.ContainsRune("()[]", r):
		return `<mo stretchy="false">` + string(r) + "</mo>", nil
	case strings.ContainsRune("+=<>,/:;", r):
		return "<mo>" + html.EscapeString(string(r)) + "</mo>", nil
	}
	return "", fmt.Errorf("unknown character %q", r)
}

// command parses a command, which begins with a backslash.
func (p *texParser) command() (string, error) {
	p.rest = p.rest[1:]
	n := len(p.rest) - len(strings.TrimLeftFunc(p.rest, unicode.IsLetter))
	if n == 0 && p.rest != "" {
		n = 1 // \,
	}
	name := p.rest[:n]
	p.rest = strings.TrimLeftFunc(p.rest[n:], unicode.IsSpace)
	switch name {
	case "operatorname":
		inside, ok := strings.CutPrefix(p.rest, "{")
		text, rest, closed := strings.Cut(inside, "}")
		if !ok || !closed {
			return "", fmt.Errorf(`\%s needs braces`, name)
		}
		p.rest = rest
		return "<mi>" + html.EscapeString(text) + "</mi>", nil
	case "frac", "tfrac":
		above, err := p.atom()
		if err != nil {
			return "", err
		}
		below, err := p.atom()
		return "<mfrac>" + above + below + "</mfrac>", err
	case "sqrt":
		inside, err := p.atom()
		return "<msqrt>" + inside + "</msqrt>", err
	case "hat":
		inside, err := p.atom()
		return `<mover accent="true">` + inside + "<mo>^</mo></mover>", err
	case "left":
		rest, ok := strings.CutPrefix(p.rest, "(")
		if !ok {
			return "", fmt.Errorf("unknown bracket at %.10q", p.rest)
		}
		p.rest = rest
		inside, err := p.parseRow(`\right)`)
		return `<mrow><mo fence="true">(</mo>` + inside + `<mo fence="true">)</mo></mrow>`, err
	}
	if symbol, ok := texSymbols[name]; ok {
		return symbol, nil
	}
	return "", fmt.Errorf(`unknown command \%s`, name)
}
