package flags

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

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
