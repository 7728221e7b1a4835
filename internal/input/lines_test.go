package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Lines are numbered and checked, and a byte order mark is removed from the start of each line and column.
func TestEachLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "[] <nil>",
		"a\nb":                             "[1:a 2:b] <nil>",
		"\n\na\r\r\n \n":                   "[1: 2: 3:a 4: ] <nil>",
		"\ufeffa\n\ufeffb\n\ufeff\n\ufeff": "[1:a 2:b 3: 4:] <nil>",
		"a\ufeff\n\ufeff\ufeffb":           "[1:a\ufeff 2:b] <nil>",
		"a\t\ufeffb\n\ufeff\t\ufeff\tc":    "[1:a\tb 2:\t\tc] <nil>",
		"\t\ufeff\xff":                     "[] in:1: invalid UTF-8",
		"\ufeffabcdef\r\n\ufeffabcdef":     "[1:abcdef 2:abcdef] <nil>",
		"a\nabcdefg":                       "[1:a] in:2: longer than 6 bytes",
		"a\n\xef\xbb\xbe\xff":              "[1:a] in:2: invalid UTF-8",
		"a\rb\n":                           "[] in:1: carriage return inside the line, want lines that end in LF or CRLF",
		"a\nend\nb":                        "[1:a] <nil>",
		"a\nbad\nb":                        "[1:a] in:2: is bad",
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			lines := []string{}
			err := EachLine(r, "in", 6, func(number int, text string) error {
				switch text {
				case "end":
					return io.EOF
				case "bad":
					return errors.New("is bad")
				}
				lines = append(lines, fmt.Sprintf("%d:%s", number, text))
				return nil
			})
			if got := fmt.Sprint(lines, " ", err); got != want {
				t.Errorf("%q: %q, want %q", in, got, want)
			}
			if err != nil && !errors.As(err, new(*Error)) {
				t.Errorf("%q: the error is a %T", in, err)
			}
		}
	}
	failing := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(context.Canceled))
	if err := EachLine(failing, "in", 6, func(int, string) error { return nil }); !errors.Is(err, context.Canceled) || errors.As(err, new(*Error)) {
		t.Errorf("error %v, want that of the reader", err)
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"": "<nil>", "ab\n\r": "<nil>", "abcde": "in:3: longer than 4 bytes", "\xff": "in:3: invalid UTF-8",
	} {
		if got := fmt.Sprint(Check("in", 3, text, 4)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
