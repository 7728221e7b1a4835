package jinja

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is.
type kind int

const (
	data kind = iota // text between tags
	blockBegin
	blockEnd
	printBegin
	printEnd
	identifier
	integer
	float
	text // a string
	operator
	end
)

// token is a piece of a template.
type token struct {
	kind kind
	s    string
	line int
}

// lexer cuts a template into tokens, with white space removed as transformers sets it:
// trim_blocks and lstrip_blocks.
type lexer struct {
	src     string
	pos     int
	begins  bool // nothing stands on this line so far
	tokens  []token
	lines   int // that end before counted
	counted int
}

// lex returns the tokens of a template. It panics with a failure.
func lex(src string) []token {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	l := &lexer{src: strings.TrimSuffix(src, "\n"), begins: true}
	for l.pos < len(l.src) {
		l.step()
	}
	l.add(end, "")
	return l.tokens
}

func (l *lexer) add(k kind, s string) {
	l.tokens = append(l.tokens, token{k, s, l.line()})
}

// line returns the number of the line that has been come to.
func (l *lexer) line() int {
	l.lines += strings.Count(l.src[l.counted:l.pos], "\n")
	l.counted = l.pos
	return 1 + l.lines
}

func (l *lexer) fail(format string, args ...any) {
	panic(failure{fmt.Errorf("line %d: "+format, append([]any{l.line()}, args...)...)})
}

// step takes the text up to the next tag, and the tag.
func (l *lexer) step() {
	rest := l.src[l.pos:]
	at := -1
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] == '{' && strings.IndexByte("{%#", rest[i+1]) >= 0 {
			at = i
			break
		}
	}
	if at < 0 {
		l.add(data, rest)
		l.pos = len(l.src)
		return
	}
	before, tag := rest[:at], rest[at:at+2]
	l.add(data, l.before(before, rest[at+2:], tag))
	l.pos += at + 2
	l.sign("-+")
	switch tag {
	case "{#":
		n := strings.Index(l.src[l.pos:], "#}")
		if n < 0 {
			l.fail("a comment does not end")
		}
		strip := n > 0 && l.src[l.pos+n-1] == '-'
		keep := n > 0 && l.src[l.pos+n-1] == '+'
		l.pos += n + 2
		l.behind(strip, keep, true)
	case "{{":
		l.add(printBegin, tag)
		l.expression("}}")
		l.add(printEnd, "}}")
	case "{%":
		if m := rawTag.FindStringSubmatch(l.src[l.pos:]); m != nil {
			l.raw(m)
			return
		}
		l.add(blockBegin, tag)
		l.expression("%}")
		l.add(blockEnd, "%}")
	}
}

// sign skips the sign of white space in a tag.
func (l *lexer) sign(signs string) {
	if l.pos < len(l.src) && strings.IndexByte(signs, l.src[l.pos]) >= 0 {
		l.pos++
	}
}

// before returns the text in front of a tag without the white space that it strips.
func (l *lexer) before(s, inside, tag string) string {
	switch {
	case strings.HasPrefix(inside, "-"):
		return strings.TrimRightFunc(s, isSpace)
	case strings.HasPrefix(inside, "+"), tag == "{{":
		return s
	}
	if line := strings.LastIndexByte(s, '\n') + 1; (line > 0 || l.begins) && strings.TrimFunc(s[line:], isSpace) == "" {
		return s[:line]
	}
	return s
}

// behind skips the white space that a tag strips behind it.
func (l *lexer) behind(strip, keep, block bool) {
	l.begins = false
	switch {
	case strip:
		rest := strings.TrimLeftFunc(l.src[l.pos:], isSpace)
		skipped := l.src[l.pos : len(l.src)-len(rest)]
		l.begins = strings.HasSuffix(skipped, "\n")
		l.pos += len(skipped)
	case block && !keep && strings.HasPrefix(l.src[l.pos:], "\n"):
		l.pos++
		l.begins = true
	}
}

var (
	rawTag    = regexp.MustCompile(`^\s*raw\s*(-?)%}`)
	endrawTag = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%}`)
)

// raw takes a text in which tags are text.
func (l *lexer) raw(begin []string) {
	l.pos += len(begin[0])
	l.behind(begin[1] == "-", false, false) // of this block alone the end of the line stays
	m := endrawTag.FindStringSubmatchIndex(l.src[l.pos:])
	if m == nil {
		l.fail("raw does not end")
	}
	at, rest := l.pos, l.src[l.pos:]
	l.add(data, l.before(rest[:m[0]], rest[m[2]:], "{%"))
	l.pos = at + m[1]
	l.behind(m[4] < m[5] && rest[m[4]] == '-', m[4] < m[5] && rest[m[4]] == '+', true)
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

var (
	number    = regexp.MustCompile(`^\d+(_\d+)*(\.\d+(_\d+)*)?([eE][+-]?\d+)?`)
	operators = []string{"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ",", ":", "|", "(", ")", "[", "]", "{", "}"}
)

// expression takes tokens up to the end of a tag.
func (l *lexer) expression(close string) {
	depth := 0
	for {
		rest := strings.TrimLeftFunc(l.src[l.pos:], isSpace)
		l.pos = len(l.src) - len(rest)
		if rest == "" {
			l.fail("a tag does not end")
		}
		if depth == 0 {
			body := rest
			if rest[0] == '-' || rest[0] == '+' {
				body = rest[1:]
			}
			if strings.HasPrefix(body, close) {
				l.pos += len(rest) - len(body) + len(close)
				l.behind(rest[0] == '-', rest[0] == '+', close == "%}")
				return
			}
		}
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == '"' || r == '\'':
			l.quoted(rest)
		case r >= '0' && r <= '9':
			s := number.FindString(rest)
			if len(s) > 1 && s[0] == '0' && strings.Trim(s, "0_") != "" && !strings.ContainsAny(s, ".eE") {
				l.fail("number %s begins with 0", s)
			}
			if l.add(integer, strings.ReplaceAll(s, "_", "")); strings.ContainsAny(s, ".eE") {
				l.tokens[len(l.tokens)-1].kind = float
			}
			l.pos += len(s)
		case r == '_' || unicode.IsLetter(r):
			for n < len(rest) {
				r, m := utf8.DecodeRuneInString(rest[n:])
				if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					break
				}
				n += m
			}
			l.add(identifier, rest[:n])
			l.pos += n
		default:
			found := ""
			for _, o := range operators {
				if strings.HasPrefix(rest, o) {
					found = o
					break
				}
			}
			switch found {
			case "":
				l.fail("character %q is not known in an expression", r)
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
			l.add(operator, found)
			l.pos += len(found)
		}
	}
}

// quoted takes a string, whose escapes are those of Python.
func (l *lexer) quoted(rest string) {
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			l.add(text, b.String())
			l.pos += i + 1
			return
		case c != '\\' || i+1 == len(rest):
			b.WriteByte(c)
		default:
			i++
			if at := strings.IndexByte(`abfnrtv\'"`, rest[i]); at >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v\\'\""[at])
				continue
			}
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[i]]
			if digits > 0 && i+digits < len(rest) {
				n, err := strconv.ParseUint(rest[i+1:i+1+digits], 16, 31)
				if r := rune(n); err == nil && utf8.ValidRune(r) {
					b.WriteRune(r)
					i += digits
					continue
				}
			}
			if digits > 0 || rest[i] >= '0' && rest[i] <= '7' || rest[i] == 'N' || rest[i] == '\n' {
				l.fail("escape \\%c is not known", rest[i])
			}
			b.WriteByte('\\')
			b.WriteByte(rest[i])
		}
	}
	l.fail("a string does not end")
}
