package flags

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
)

type parsedCommands struct {
	First  tested `cmd:""`
	Second struct {
		N int `want:"at least 1"`
	} `cmd:""`
	List struct{} `cmd:"" whole:""`
}

// A parser has the command of the line only, unless that lists the others.
func TestParse(t *testing.T) {
	silent := kong.Writers(io.Discard, io.Discard)
	for _, c := range []struct {
		args     []string
		commands []string
		want     string // the error
	}{
		{[]string{"second", "--n", "3"}, []string{"second"}, ""},
		{[]string{"second", "--n", "-3"}, []string{"second"}, "--n -3, want at least 1"}, // no flag -3
		{[]string{"second", "--n", "x"}, []string{"second"}, `--n "x", want a whole number`},
		{[]string{"first", "--model", "m", "--weights", "w"}, []string{"first"}, "want either --model or --weights"},
		{[]string{"list"}, []string{"first", "second", "list"}, ""},
		{[]string{"third"}, nil, "unexpected argument third"},
		{nil, nil, `expected one of "first", "second", "list"`},
	} {
		parsed, exited, err := Parse(&parsedCommands{}, c.args, silent)
		got := ""
		if err != nil {
			got = err.Error()
			if !errors.As(err, new(*Error)) {
				t.Errorf("%q: %v is no *Error", c.args, err)
			}
		}
		if got != c.want || exited != -1 {
			t.Errorf("%q: error %q, want %q; exited with %d", c.args, got, c.want, exited)
		}
		if err != nil {
			continue
		}
		var names []string
		for _, node := range parsed.Model.Leaves(true) {
			names = append(names, node.Name)
		}
		if !slices.Equal(names, c.commands) {
			t.Errorf("%q: the parser has %q, want %q", c.args, names, c.commands)
		}
	}
	if _, exited, _ := Parse(&parsedCommands{}, []string{"second", "--help"}, silent); exited != 0 {
		t.Errorf("help: exit code %d", exited)
	}
}
