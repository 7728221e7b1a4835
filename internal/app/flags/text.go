package flags

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

// Error is the error of an invalid command line. It determines the exit code.
type Error struct{ err error }

// Errorf returns an *Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Error returns the message.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.err }

// FillIn replaces ${name} in help and enumerations. The parser's own variables are expanded again for
// each flag, which takes half of the time of a short command.
func FillIn(vars map[string]string) kong.Option {
	var pairs []string
	for name, text := range vars {
		pairs = append(pairs, "${"+name+"}", text)
	}
	texts := strings.NewReplacer(pairs...)
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model.Node, func(node kong.Visitable, next kong.Next) error {
			if v, ok := node.(*kong.Value); ok {
				v.Help, v.Enum = texts.Replace(v.Help), texts.Replace(v.Enum)
			}
			return next(nil)
		})
	})
}

// Listed returns "a, b or c", with word before the last item.
func Listed(list []string, word string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " " + word + " " + list[last]
}

// WithDefault returns the help of a flag or argument with its default, if any.
func WithDefault(v *kong.Value) string {
	if !v.HasDefault || v.Default == "" {
		return v.Help
	}
	help, period := strings.CutSuffix(v.Help, ".")
	help += fmt.Sprintf(" (default %s)", v.Default)
	if period {
		help += "."
	}
	return help
}

// JoinNegative rewrites "--offset -3" as "--offset=-3": the parser reads an argument with a leading
// dash as a flag.
func JoinNegative(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" { // texts follow
			return append(joined, args[i:]...)
		}
		if strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=") && i+1 < len(args) {
			if _, err := strconv.ParseFloat(args[i+1], 64); err == nil && args[i+1][0] == '-' {
				i++
				arg += "=" + args[i]
			}
		}
		joined = append(joined, arg)
	}
	return joined
}

type message struct {
	parser *regexp.Regexp
	want   string
}

// messages returns the parser's messages about a value beside attn's form: the flag, its value and the expected
// values.
var messages = sync.OnceValue(func() []message {
	return []message{
		{regexp.MustCompile(`^(--[a-z-]+): expected .* but got "EOL" \(<EOL>\)$`), "$1 needs a value"},
		{regexp.MustCompile(`^(--[a-z-]+): missing value, expecting .*`), "$1 needs a value"},
		{regexp.MustCompile(`^expected "(<[a-z]+>)"$`), "$1 is missing"},
		{regexp.MustCompile(`^(--[a-z-]+): expected a valid \d+ bit u?int but got "(\d+)"$`), "$1 $2 is too large"},
		{regexp.MustCompile(`^(--[a-z-]+): expected a valid \d+ bit int but got (".*")$`), "$1 $2, want a whole number"},
		{regexp.MustCompile(`^(--[a-z-]+): expected a valid \d+ bit uint but got (".*")$`), "$1 $2, want a whole number, at least 0"},
		{regexp.MustCompile(`^(--[a-z-]+): expected a float but got (".*") \(string\)$`), "$1 $2, want a number"},
		{regexp.MustCompile(`^(--[a-z-]+): expected duration but got (".*"): .*`), "$1 $2, want a duration such as 500ms or 2s"},
		{regexp.MustCompile(`^(--[a-z-]+): bool value must be .* but got (".*")$`), "$1 $2, want true or false"},
	}
})

var notOneOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(--[a-z-]+|<[a-z]+>) must be one of (.*) but got (".*")$`)
})

// Plain rewrites an error of the parser in attn's form.
func Plain(err error) error {
	text := err.Error()
	for _, m := range messages() {
		if m.parser.MatchString(text) {
			return fmt.Errorf("%s", m.parser.ReplaceAllString(text, m.want))
		}
	}
	if m := notOneOf().FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s %s, want %s", m[1], m[3], Listed(strings.Split(strings.ReplaceAll(m[2], `"`, ""), ","), "or"))
	}
	return err
}

// Parse parses a command line. commands points to a struct whose fields are the commands, by their names. exited is the
// exit code if the parser has printed the help, otherwise −1. Errors are *Error.
func Parse(commands any, args []string, options ...kong.Option) (parsed *kong.Context, exited int, err error) {
	exited = -1
	root, command := Only(commands, args)
	parser := kong.Must(root, append(options, command, kong.Exit(func(code int) { exited = code }))...)
	if parsed, err = parser.Parse(JoinNegative(args)); err != nil {
		err = Errorf("%w", Plain(err))
	}
	return parsed, exited, err
}

// Only returns the parser's root and an option for a command line. If the first argument is a command, they contain
// only this one, unless it has the tag whole. Reading the tags of all commands takes half of the time of a short run.
func Only(commands any, args []string) (root any, command kong.Option) {
	for field, value := range reflect.ValueOf(commands).Elem().Fields() {
		if _, whole := field.Tag.Lookup("whole"); !whole && len(args) > 0 && strings.ToLower(field.Name) == args[0] {
			help, group := field.Tag.Get("help"), field.Tag.Get("group")
			return &one{}, kong.DynamicCommand(args[0], help, group, value.Addr().Interface())
		}
	}
	return commands, kong.OptionFunc(func(*kong.Kong) error { return nil })
}

// one is the root of a single command.
type one struct{}

// Validate is called by the parser.
func (*one) Validate(parsed *kong.Context) error { return Check(parsed) }
