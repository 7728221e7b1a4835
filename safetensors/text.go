package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/attn-go/attn/internal/quote"
)

// describe describes the token found in place of the expected one, for errors.
func describe(token json.Token) string {
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return "an object"
		}
		return "an array"
	case string:
		return "the string " + quote.Text(v)
	case json.Number:
		return "the number " + quote.JSON([]byte(v))
	case nil:
		return "null"
	}
	return fmt.Sprint(token) // true or false
}

// loneSurrogate reports whether a string of valid JSON escapes half of a surrogate pair, which is not a character.
func loneSurrogate(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return false
		}
		text = text[i:]
		r, ok := escaped(text)
		switch {
		case !ok:
			text = text[2:] // \n, \\ and the like
		case !utf16.IsSurrogate(r):
			text = text[6:]
		default:
			low, ok := escaped(text[6:])
			if !ok || utf16.DecodeRune(r, low) == '\uFFFD' {
				return true
			}
			text = text[12:]
		}
	}
}

// escaped returns the code unit of the escape at the beginning of text, \u and four hex digits, and whether there is
// one.
func escaped(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// appendString appends valid UTF-8 as a JSON string. It escapes only the characters that must be escaped, as the
// reference implementation does; package json escapes more.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ':
			b = append(b, c)
		default:
			if j := strings.IndexByte("\b\f\n\r\t", c); j >= 0 {
				b = append(b, '\\', "bfnrt"[j])
			} else {
				b = fmt.Appendf(b, "\\u%04x", c)
			}
		}
	}
	return append(b, '"')
}
