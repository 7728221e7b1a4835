package tokenizer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// goRanges converts a list of ranges for the brackets of package regexp.
func goRanges(list string) string {
	var b strings.Builder
	for first, last := range codeRanges(list) {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, first, last)
	}
	return b.String()
}

// properties maps the names after \p, in lower case and without separators, to the ranges of the reference.
// Package regexp uses another version of Unicode with each release of Go.
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

// propertyName returns a name in the form of the keys of properties.
func propertyName(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

// escapedClass returns the ranges of \s, \d or \w. Oniguruma looks \w up in a table of Latin-1 outside of brackets, and
// there the superior digits and the fractions are letters of words; in brackets it uses ranges without them.
func escapedClass(c byte, inside bool) string {
	p := properties()
	switch c {
	case 's':
		return spaces
	case 'd':
		return p["nd"]
	}
	all := []string{p["l"], p["m"], p["nd"], p["pc"], otherWords}
	if !inside {
		all = append(all, outsideWords)
	}
	return strings.Join(all, " ")
}

// dialect has the expressions of a translator, compiled when they are first used. Variables with initializers would
// link package regexp into every program with a tokenizer.
var dialect struct {
	sync.Once
	// quantifiers are *, +, ?, each with an optional ?, and {2,3}.
	quantifiers *regexp.Regexp
	// escapes matches a backslash with a class, a property, a sign that package regexp also escapes, a sign
	// that package regexp does not escape, or a code.
	escapes *regexp.Regexp
}

func compileDialect() {
	dialect.quantifiers = regexp.MustCompile(`^(?:[*+?]\??|\{[0-9][0-9,]*\})`)
	dialect.escapes = regexp.MustCompile(`^\\(?:([sdwSDW])|([pP])\{([^}^][^}]*)\}|([nrtfv\\.+*?()|[\]{}^$])|` +
		`([-/'"#&!,:;<=>@%~_ ` + "`" + `])|x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4}))`)
}

// translate converts an expression of Oniguruma for package regexp. It returns an error if a part of the
// expression has another meaning there or is not supported.
func translate(expr string) (string, error) {
	dialect.Do(compileDialect)
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

// take copies n bytes unchanged.
func (t *translator) take(n int) {
	t.out.WriteString(t.in[:n])
	t.in = t.in[n:]
}

// element translates the next element.
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
	case '^', '$': // ends of a line in Oniguruma, and of the text in package regexp
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
	default: // do not capture: the group for spaces must be the only one
		t.out.WriteString("(?:")
		t.in = t.in[1:]
	}
}

// foldable checks a literal without regard to case. It must not contain several letters that together are
// the other case of one character.
// Oniguruma folds ß and ss, and the ligatures, so that one matches the other; package regexp folds characters only.
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

// In Oniguruma, a+? is lazy as in package regexp, but a{2}+ repeats a repetition and a++ gives nothing back.
func (t *translator) quantifier() {
	n := len(dialect.quantifiers.FindString(t.in))
	if n == 0 {
		t.refuse("{ without a count")
		return
	}
	if t.take(n); t.in != "" && strings.IndexByte("*+?{", t.in[0]) >= 0 {
		t.refuse("a quantifier after a quantifier")
	}
}

func (t *translator) escape(inside bool) {
	m := dialect.escapes.FindStringSubmatch(t.in)
	if m == nil {
		t.refuse(noEscape(t.in))
		return
	}
	switch {
	case m[1] != "":
		t.class(escapedClass(m[1][0]|0x20, inside), m[1] < "a", inside)
	case m[2] != "":
		ranges, ok := properties()[propertyName(m[3])]
		if !ok {
			t.refuse(strconv.Quote(m[0]))
		}
		t.class(ranges, m[2] == "P", inside)
	case m[4] != "" || m[5] == "-" && inside:
		t.out.WriteString(m[0])
	case m[5] != "":
		t.out.WriteString(m[5])
	default:
		r, err := strconv.ParseUint(m[6]+m[7]+m[8], 16, 32)
		switch {
		case err != nil || r > unicode.MaxRune:
			t.refuse(noEscape(t.in))
		// Oniguruma takes \xe9 for a byte, which is no character of UTF-8, and joins \xc3\xa9 to one.
		case m[7] != "" && r >= utf8.RuneSelf:
			t.refuse(m[0] + ", a byte of a character")
		case t.fold > 0:
			t.refuse(`(?i: with ` + m[0][:2])
		}
		fmt.Fprintf(&t.out, `\x{%x}`, r)
	}
	t.in = t.in[len(m[0]):]
}

// noEscape describes the error in a text that begins with a backslash.
func noEscape(s string) string {
	char, n := utf8.DecodeRuneInString(s[1:])
	switch char {
	case 'p', 'P':
		return s[:2] + " without a name in braces"
	case 'x', 'u':
		return s[:2] + " without the digits of a character"
	}
	if n == 0 {
		return `\ at the end`
	}
	return s[:1+n]
}

// longestExpression is the maximum number of bytes of ranges in an expression; \p{L} has 11,000.
const longestExpression = 1 << 19

// class writes ranges, or their complement, in brackets or as a part of brackets. The reference does not
// apply case folding to classes.
func (t *translator) class(ranges string, not, inside bool) {
	if not {
		ranges = complement(ranges)
	}
	text := goRanges(ranges)
	if t.out.Len() > longestExpression {
		t.refuse("too many classes")
	}
	switch {
	case inside:
	case t.fold > 0:
		text = "(?-i:[" + text + "])"
	default:
		text = "[" + text + "]"
	}
	t.out.WriteString(text)
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
