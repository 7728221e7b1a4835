package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// spaceRanges is \s inside of brackets, as Unicode has it.
const spaceRanges = `\t-\r \x{85}\p{Z}`

// goRanges writes a list of ranges for package regexp.
func goRanges(list string) string {
	var b strings.Builder
	for first, last := range codeRanges(list) {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, first, last)
	}
	return b.String()
}

// propertyRanges are properties as the reference has them; regexp has other versions
// of Unicode.
var propertyRanges = sync.OnceValue(func() map[string]string {
	return map[string]string{"L": goRanges(letters), "N": goRanges(numbers), "Nd": goRanges(decimals)}
})

// translate writes an expression of Oniguruma for package regexp, or says what in it
// means something else there or nothing.
func translate(expr string) (string, error) {
	t := translator{in: expr}
	for t.in != "" && t.err == nil {
		t.element()
	}
	return t.out.String(), t.err
}

type translator struct {
	in    string
	out   strings.Builder
	fold  int // depth of groups inside of (?i:
	depth int
	err   error
}

func (t *translator) refuse(what string) {
	if t.err == nil {
		t.err = fmt.Errorf("it has %s", what)
	}
}

// take moves n bytes as they are.
func (t *translator) take(n int) {
	t.out.WriteString(t.in[:n])
	t.in = t.in[n:]
}

// element translates what comes next.
func (t *translator) element() {
	switch c := t.in[0]; c {
	case '\\':
		t.escape(false)
	case '[':
		t.brackets()
	case '(':
		t.group()
	case ')':
		t.depth--
		if t.depth < t.fold {
			t.fold = 0
		}
		t.take(1)
	case '^', '$':
		t.refuse(string(c))
	case '*', '+', '?', '{':
		t.quantifier()
	default:
		if t.fold > 0 {
			t.foldable()
			return
		}
		_, n := utf8.DecodeRuneInString(t.in)
		t.take(n)
	}
}

// group translates the beginning of a group.
func (t *translator) group() {
	t.depth++
	switch {
	case strings.HasPrefix(t.in, "(?i:"):
		if t.fold == 0 {
			t.fold = t.depth
		}
		t.take(len("(?i:"))
	case strings.HasPrefix(t.in, "(?:"):
		t.take(len("(?:"))
	case strings.HasPrefix(t.in, "(?"):
		t.refuse(t.in[:min(4, len(t.in))])
	default: // groups that capture would be counted
		t.out.WriteString("(?:")
		t.in = t.in[1:]
	}
}

// foldable checks a literal without regard to case: letters of which several are the
// other case of one character are not to stand together.
func (t *translator) foldable() {
	for _, several := range []string{"ss", "st", "ff", "fi", "fl"} {
		if len(t.in) >= 2 && strings.EqualFold(t.in[:2], several) {
			t.refuse("(?i:" + t.in[:2])
		}
	}
	if t.in[0] >= utf8.RuneSelf {
		t.refuse("(?i: with letters outside of ASCII")
	}
	t.take(1)
}

// quantifier translates *, +, ? and {2,3}, with ? behind it or not.
func (t *translator) quantifier() {
	n := 1
	if t.in[0] == '{' {
		n = strings.IndexByte(t.in, '}') + 1
		if n == 0 || strings.Trim(t.in[1:n-1], "0123456789,") != "" || t.in[1] == ',' || t.in[1] == '}' {
			t.refuse("{ that is no number of times")
			return
		}
	}
	braces := n > 1
	t.take(n)
	if t.in == "" {
		return
	}
	switch {
	case t.in[0] == '?' && !braces:
		t.take(1)
	case strings.IndexByte("*+?{", t.in[0]) >= 0:
		t.refuse("a quantifier behind a quantifier")
	}
}

// escape translates what begins with a backslash.
func (t *translator) escape(inside bool) {
	if len(t.in) < 2 {
		t.refuse(`\ at the end`)
		return
	}
	c := t.in[1]
	open, closing, negated := "[", "]", "[^"
	if inside {
		open, closing = "", ""
	}
	class := func(ranges string, not bool) {
		switch {
		case not && inside:
			t.refuse(`\` + string(c) + " in brackets")
		case not:
			t.out.WriteString(negated + ranges + closing)
		default:
			t.out.WriteString(open + ranges + closing)
		}
		t.in = t.in[2:]
	}
	switch {
	case c == 's' || c == 'S':
		class(spaceRanges, c == 'S')
	case c == 'd' || c == 'D':
		class(propertyRanges()["Nd"], c == 'D')
	case c == 'p' || c == 'P':
		end := strings.IndexByte(t.in, '}')
		if end < 0 || t.in[2] != '{' || strings.HasPrefix(t.in[3:], "^") {
			t.refuse(`\` + string(c) + " without a name in braces")
			return
		}
		if ranges, ok := propertyRanges()[t.in[3:end]]; ok {
			t.in = t.in[end-1:]
			class(ranges, c == 'P')
			return
		}
		t.take(end + 1)
	case strings.IndexByte("nrtfv", c) >= 0 || c < utf8.RuneSelf && strings.IndexByte(`\.+*?()|[]{}^$-/'"#&!,:;<=>@%~_ `+"`", c) >= 0:
		if strings.IndexByte(`-/'"#&!,:;<=>@%~_ `+"`", c) >= 0 { // regexp knows only some of these
			t.in = t.in[1:]
			if c == '-' && inside {
				t.out.WriteByte('\\')
			}
			t.take(1)
			return
		}
		t.take(2)
	case c == 'u' && len(t.in) >= 6:
		t.out.WriteString(`\x{` + t.in[2:6] + "}")
		t.in = t.in[6:]
	default:
		_, n := utf8.DecodeRuneInString(t.in[1:])
		t.refuse(t.in[:1+n])
	}
}

// brackets translates a class in brackets.
func (t *translator) brackets() {
	if t.fold > 0 {
		t.refuse("brackets inside of (?i:")
	}
	t.take(1)
	if strings.HasPrefix(t.in, "^") {
		t.take(1)
	}
	if strings.HasPrefix(t.in, "]") {
		t.refuse("[] or [^]")
	}
	for t.err == nil {
		switch {
		case t.in == "":
			t.refuse("[ without ]")
		case t.in[0] == ']':
			t.take(1)
			return
		case t.in[0] == '[':
			t.refuse("brackets in brackets")
		case strings.HasPrefix(t.in, "&&"):
			t.refuse("&& in brackets")
		case t.in[0] == '\\':
			t.escape(true)
		default:
			_, n := utf8.DecodeRuneInString(t.in)
			t.take(n)
		}
	}
}
