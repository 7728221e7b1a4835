package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// goRanges writes a list of ranges for the brackets of package regexp.
func goRanges(list string) string {
	var b strings.Builder
	for first, last := range codeRanges(list) {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, first, last)
	}
	return b.String()
}

// properties are the names behind \p, in lower case and without what separates words, with their ranges as the
// reference has them: package regexp follows another version of Unicode with each release of Go.
var properties = sync.OnceValue(func() map[string]string {
	all, parts := map[string]string{"cs": "d800-dfff"}, map[string][]string{}
	for name, list := range tables(categories) {
		all[propertyName(name)] = list
	}
	all["cn"] = complement(strings.Join(slices.Collect(maps.Values(all)), " "))
	for name, list := range all {
		parts[name[:1]] = append(parts[name[:1]], list)
	}
	parts["lc"] = []string{all["lu"], all["ll"], all["lt"]}
	for name, lists := range parts {
		all[name] = strings.Join(lists, " ")
	}
	for alias, name := range unicode.CategoryAliases {
		all[propertyName(alias)] = all[propertyName(name)]
	}
	for name, list := range tables(scripts) {
		all[propertyName(name)] = list
	}
	return all
})

// propertyName returns a name as properties has it.
func propertyName(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

// escapedClass returns the ranges of \s, \d or \w.
func escapedClass(c byte) string {
	p := properties()
	switch c {
	case 's':
		return spaces
	case 'd':
		return p["nd"]
	}
	return strings.Join([]string{p["l"], p["m"], p["nd"], p["pc"], otherWords}, " ")
}

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
	switch {
	case strings.IndexByte("sdwSDW", c) >= 0:
		t.class(escapedClass(c|0x20), c < 'a', inside)
		t.in = t.in[2:]
	case c == 'p' || c == 'P':
		end := strings.IndexByte(t.in, '}')
		if end < 0 || t.in[2] != '{' || strings.HasPrefix(t.in[3:], "^") {
			t.refuse(`\` + string(c) + " without a name in braces")
			return
		}
		ranges, ok := properties()[propertyName(t.in[3:end])]
		if !ok {
			t.refuse(strconv.Quote(t.in[:end+1]))
			return
		}
		t.class(ranges, c == 'P', inside)
		t.in = t.in[end+1:]
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
	case c == 'x' || c == 'u':
		t.code()
	default:
		_, n := utf8.DecodeRuneInString(t.in[1:])
		t.refuse(t.in[:1+n])
	}
}

// class writes ranges, or all other characters, in brackets or as a part of such. Where case does not count
// the reference still takes classes as they are.
func (t *translator) class(ranges string, not, inside bool) {
	if not {
		ranges = complement(ranges)
	}
	text := goRanges(ranges)
	switch {
	case inside:
	case t.fold > 0:
		text = "(?-i:[" + text + "])"
	default:
		text = "[" + text + "]"
	}
	t.out.WriteString(text)
}

// code translates \x20, \x{20} or \u0020.
func (t *translator) code() {
	digits, behind, braces := "", "", strings.HasPrefix(t.in, `\x{`)
	if braces {
		digits, behind, braces = strings.Cut(t.in[3:], "}") // a { that is not closed is no brace
	} else {
		most := 2
		if t.in[1] == 'u' {
			most = 4
		}
		digits = t.in[2:min(len(t.in), 2+most)]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789abcdefABCDEF"))]
		behind = t.in[2+len(digits):]
	}
	r, err := strconv.ParseUint(digits, 16, 32)
	switch {
	case err != nil || r > unicode.MaxRune || t.in[1] == 'u' && len(digits) < 4 || t.in[2] == '{' && !braces:
		t.refuse(t.in[:2] + " without the digits of a character")
	case r >= utf8.RuneSelf && t.in[1] == 'x' && !braces:
		t.refuse(`\x` + digits + ", a byte of a character")
	case t.fold > 0:
		t.refuse(`(?i: with ` + t.in[:2])
	default:
		fmt.Fprintf(&t.out, `\x{%x}`, r)
		t.in = behind
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
	for first := t.in; t.err == nil; {
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
		case t.in != first && len(t.in) > 2 && t.in[:2] == `-\` && strings.IndexByte("sdwpSDWP", t.in[2]) >= 0:
			t.refuse("a range in brackets that ends in a class")
		default:
			_, n := utf8.DecodeRuneInString(t.in)
			t.take(n)
		}
	}
}
