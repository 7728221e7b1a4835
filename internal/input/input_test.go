package input

import (
	"errors"
	"io"
	"testing"
)

func TestError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{Errorf("a.tsv", "has %d lines", 3), "a.tsv: has 3 lines"},
		{&Error{Name: "a.tsv", Line: 7, Err: io.EOF}, "a.tsv:7: EOF"},
		{&Error{Name: "a\nb", Line: 7, Err: io.EOF}, `"a\nb":7: EOF`},
		{&Error{Name: "a"}, "a: <nil>"},
		{&Error{Err: io.EOF}, "EOF"},
		{&Error{Line: 7, Err: io.EOF}, `"":7: EOF`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if err := Errorf("a", "reading: %w", io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("%v does not wrap its reason", err)
	}
}
