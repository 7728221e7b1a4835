package jinja

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	data kind = iota // text between tags
	blockBegin
	blockEnd
	printBegin
	printEnd
	identifier
	integer
	quotedText
	operator
	end
)

// token is a part of a template.
type token struct {
	kind kind
	s    string
	line int
}

// lexer splits a template into tokens. It removes white space according to transformers' settings
// trim_blocks and lstrip_blocks.
type lexer struct {
	src     string
	pos     int
	begins  bool // the text before pos ends a line, or is empty; before reads it
	tokens  []token
	lines   int // number of line ends in src[:counted]
	counted int
}

// lex returns the tokens of a template. It panics with a failure.
// As in Jinja, every line end counts as \n, and one at the end of the template is not a part of it.
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

// line returns the number of the current line.
func (l *lexer) line() int {
	l.lines += strings.Count(l.src[l.counted:l.pos], "\n")
	l.counted = l.pos
	return 1 + l.lines
}

func (l *lexer) fail(format string, args ...any) {
	panic(failure{fmt.Errorf("line %d: "+format, append([]any{l.line()}, args...)...)})
}

// step reads the text up to the next tag, and the tag.
func (l *lexer) step() {
	rest := l.src[l.pos:]
	begin := tagBegin.FindStringIndex(rest)
	if begin == nil {
		l.add(data, rest)
		l.pos = len(l.src)
		return
	}
	at := begin[0]
	before, tag := rest[:at], rest[at:at+2]
	l.add(data, l.before(before, rest[at+2:], tag))
	l.pos += at + 2
	if l.pos < len(l.src) && strings.IndexByte("-+", l.src[l.pos]) >= 0 {
		l.pos++
	}
	switch tag {
	case "{#":
		comment, _, ends := strings.Cut(l.src[l.pos:], "#}")
		if !ends {
			l.fail("a comment does not end")
		}
		l.pos += len(comment) + 2
		l.after(comment[max(0, len(comment)-1):], true)
	case "{{":
		l.add(printBegin, tag)
		l.expression("}}")
		l.add(printEnd, "}}")
	case "{%":
		l.add(blockBegin, tag)
		l.expression("%}")
		l.add(blockEnd, "%}")
	}
}

// before returns s, the text before a tag, without the white space that the tag strips. inside is
// the text after the tag's two opening characters.
func (l *lexer) before(s, inside, tag string) string {
	switch {
	case strings.HasPrefix(inside, "-"):
		return strings.TrimRightFunc(s, isSpace)
	case strings.HasPrefix(inside, "+"), tag == "{{":
		return s
	}
	// This is lstrip_blocks. A tag strips the spaces before it only if nothing else is before it in its line: after
	// another tag in the same line, the beginning of s is not that of a line.
	if line := strings.LastIndexByte(s, '\n') + 1; (line > 0 || l.begins) && strings.TrimFunc(s[line:], isSpace) == "" {
		return s[:line]
	}
	return s
}

// after skips the white space that follows a tag: all of it if the tag ends in -, otherwise one line
// end if the tag is a block and does not end in +.
func (l *lexer) after(sign string, block bool) {
	l.begins = false
	switch {
	case sign == "-":
		rest := strings.TrimLeftFunc(l.src[l.pos:], isSpace)
		skipped := l.src[l.pos : len(l.src)-len(rest)]
		l.begins = strings.HasSuffix(skipped, "\n")
		l.pos += len(skipped)
	case block && sign != "+" && strings.HasPrefix(l.src[l.pos:], "\n"):
		l.pos++
		l.begins = true
	}
}

var tagBegin = regexp.MustCompile(`\{[{%#]`)

func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// tokenPattern returns a regular expression for a number, a name or an operator.
var tokenPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([\pL_][\pL\p{Nd}_]*)|` +
		`(//|\*\*|==|!=|<=|>=|[-+*/%~<>=.,:|()\[\]{}]))`)
})

// expression reads the tokens of a tag up to and including close.
func (l *lexer) expression(close string) {
	for depth := 0; ; {
		rest := strings.TrimLeftFunc(l.src[l.pos:], isSpace)
		l.pos = len(l.src) - len(rest)
		if rest == "" {
			l.fail("a tag does not end")
		}
		// Within brackets, }} closes two dicts: {{ {"a": {}} }}.
		if depth == 0 {
			body := strings.TrimPrefix(rest, "-")
			if rest[0] == '+' && close == "%}" {
				body = rest[1:]
			}
			if strings.HasPrefix(body, close) {
				sign := rest[:len(rest)-len(body)]
				l.pos += len(sign) + len(close)
				l.after(sign, close == "%}")
				return
			}
		}
		if rest[0] == '"' || rest[0] == '\'' {
			l.quoted(rest)
			continue
		}
		m := tokenPattern().FindStringSubmatch(rest)
		switch {
		case m == nil:
			r, _ := utf8.DecodeRuneInString(rest)
			l.fail("unexpected character %q in an expression", r)
		case m[1] != "":
			l.number(m[1])
		case m[2] != "":
			l.add(identifier, m[2])
		default:
			if strings.Contains("([{", m[3]) {
				depth++
			} else if strings.Contains(")]}", m[3]) {
				depth--
			}
			l.add(operator, m[3])
		}
		l.pos += len(m[0])
	}
}

func (l *lexer) number(s string) {
	switch {
	// A number with a fraction is read as a whole, so that this error names it. Python would compute with it, and its
	// decimal form would be a part of the prompt.
	case strings.ContainsAny(s, ".eE"):
		l.fail("number %s is not supported, want an integer", s)
	case len(s) > 1 && s[0] == '0':
		l.fail("number %s begins with 0", s)
	}
	l.add(integer, s)
}

// quoted reads a string with the escapes of Python.
func (l *lexer) quoted(rest string) {
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			l.add(quotedText, b.String())
			l.pos += i + 1
			return
		case c != '\\' || i+1 == len(rest):
			b.WriteByte(c)
		default:
			i++
			// Python also knows \x, \u, \N and octal digits, and keeps a backslash before any other character.
			at := strings.IndexByte(`bfnrt\'"`, rest[i])
			if at < 0 {
				c, _ := utf8.DecodeRuneInString(rest[i:])
				l.fail("an escape with %q is not supported", c)
			}
			b.WriteByte("\b\f\n\r\t\\'\""[at])
		}
	}
	l.fail("a string does not end")
}
