package texts

import (
	"testing"

	"github.com/attn-go/attn/tokenizer"
)

// Rows of tokens fit in the terminal, and no token moves the cursor.
func TestTokenRows(t *testing.T) {
	e := &tokenizer.Encoding{
		IDs:    []int{101, 30522, 7, 8, 9, 123456, 11},
		Tokens: []string{"[CLS]", "▁日本", "a b", "\x1b[2J\u202e", `"\`, "e", "\n"},
	}
	for columns, want := range map[int]string{
		80: "[CLS]  ▁日本  a␣b  \\x1b[2J\\u202e  \"\\\\  e       \\n\n101    30522  7    8              9    123456  11",
		13: "[CLS]  ▁日本\n101    30522\n\na␣b\n7\n\n\\x1b[2J\\u202e\n8\n\n\"\\\\  e\n9    123456\n\n\\n\n11",
	} {
		if got := tokenRows(e, columns); got != want {
			t.Errorf("%d columns: is\n%s\nwant\n%s", columns, got, want)
		}
	}
	if got := tokenRows(&tokenizer.Encoding{}, 80); got != "\n" {
		t.Errorf("no tokens are %q", got)
	}
}
