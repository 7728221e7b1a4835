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

// Commands that are one symbol: names, operators, and spaces by their width in em.
var (
	texNames = map[string]string{
		"alpha": "α", "beta": "β", "gamma": "γ", "lambda": "λ", "sigma": "σ", "tau": "τ", "infty": "∞", "top": "⊤",
		"exp": "exp", "tanh": "tanh", "max": "max", "log": "log",
	}
	texOperators = map[string]string{
		"cdot": "·", "times": "×", "circ": "∘", "le": "≤", "ge": "≥", "in": "∈", "neq": "≠", "to": "→", "mid": "|",
		"ldots": "…", "dots": "…", "sum": "∑", "partial": "∂", "lVert": "‖", "rVert": "‖", "{": "{", "}": "}",
	}
	texSpaces = map[string]string{",": "0.17", ";": "0.28", "quad": "1", "qquad": "2"}
)

type texParser struct{ rest string }

// parseRow parses up to the end, which is "}" in a group, `\right` in brackets, or the end of the text.
func (p *texParser) parseRow(end string) (string, error) {
	var out strings.Builder
	out.WriteString("<mrow>")
	for {
		p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
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
		var scripts [2]string // below, above
		for {
			p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
			at := strings.IndexAny(p.rest, "_^")
			if at != 0 {
				break
			}
			kind := strings.IndexByte("_^", p.rest[0])
			p.rest = strings.TrimLeftFunc(p.rest[1:], unicode.IsSpace)
			if scripts[kind], err = p.atom(); err != nil {
				return "", err
			}
		}
		tags := [3]string{"msub", "msup", "msubsup"}
		if base == "<mo>∑</mo>" || base == "<mi>max</mi>" {
			tags = [3]string{"munder", "mover", "munderover"}
		}
		switch low, high := scripts[0], scripts[1]; {
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
		n = 1 // \, and \{
	}
	name := p.rest[:n]
	p.rest = strings.TrimLeftFunc(p.rest[n:], unicode.IsSpace)
	switch name {
	case "text", "operatorname", "mathrm":
		inside, ok := strings.CutPrefix(p.rest, "{")
		text, rest, closed := strings.Cut(inside, "}")
		if !ok || !closed {
			return "", fmt.Errorf(`\%s needs braces`, name)
		}
		p.rest = rest
		if name == "text" {
			return "<mtext>" + html.EscapeString(text) + "</mtext>", nil
		}
		return "<mi>" + html.EscapeString(text) + "</mi>", nil
	case "frac", "tfrac":
		above, err := p.atom()
		if err != nil {
			return "", err
		}
		p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
		below, err := p.atom()
		return "<mfrac>" + above + below + "</mfrac>", err
	case "sqrt":
		inside, err := p.atom()
		return "<msqrt>" + inside + "</msqrt>", err
	case "hat":
		inside, err := p.atom()
		return `<mover accent="true">` + inside + "<mo>^</mo></mover>", err
	case "left":
		open, err := p.fence()
		if err != nil {
			return "", err
		}
		inside, err := p.parseRow(`\right`)
		if err != nil {
			return "", err
		}
		end, err := p.fence()
		return "<mrow>" + open + inside + end + "</mrow>", err
	}
	if symbol, ok := texNames[name]; ok {
		return "<mi>" + symbol + "</mi>", nil
	}
	if symbol, ok := texOperators[name]; ok {
		return "<mo>" + symbol + "</mo>", nil
	}
	if em, ok := texSpaces[name]; ok {
		return `<mspace width="` + em + `em"></mspace>`, nil
	}
	return "", fmt.Errorf(`unknown command \%s`, name)
}

// fence parses a bracket after \left or \right; a dot is none.
func (p *texParser) fence() (string, error) {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	for _, f := range []string{"(", ")", "[", "]", "|", `\{`, `\}`, `\lVert`, `\rVert`, "."} {
		if rest, ok := strings.CutPrefix(p.rest, f); ok {
			p.rest = rest
			symbol := strings.NewReplacer(`\lVert`, "‖", `\rVert`, "‖", `\`, "").Replace(f)
			if f == "." {
				symbol = ""
			}
			return `<mo fence="true">` + symbol + "</mo>", nil
		}
	}
	return "", fmt.Errorf("unknown bracket at %.10q", p.rest)
}
