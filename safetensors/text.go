package safetensors

import (
	"encoding/json"
	"fmt"
	"strings"

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
