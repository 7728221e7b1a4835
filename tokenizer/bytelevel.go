package tokenizer

import "unicode/utf8"

// GPT-2 writes the bytes of a text as characters that can be printed: those of ASCII
// and Latin-1 that have a shape as themselves, and the other 68 as U+0100 and on.

// byteChars are the characters of all bytes, and charBytes the bytes of characters.
var byteChars, charBytes = func() (chars [256]string, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	next := rune(256)
	for i := range 256 {
		r := rune(i)
		if i < '!' || '~' < i && i < 0xa1 || i == 0xad {
			r = next
			next++
		}
		chars[i], bytes[r] = string(r), byte(i)
	}
	return chars, bytes
}()

// fromByteLevel appends the bytes that a token stands for. It reports whether all of
// its characters are bytes.
func fromByteLevel(b []byte, token string) ([]byte, bool) {
	n := len(b)
	for _, r := range token {
		c, ok := charBytes[r]
		if !ok {
			return b[:n], false
		}
		b = append(b, c)
	}
	return b, true
}

// spaceChar is the character of a space.
var spaceChar, _ = utf8.DecodeRuneInString(byteChars[' '])
