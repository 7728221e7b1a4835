package tokenizer

import "unicode/utf8"

// GPT-2 writes the bytes of a text as printable characters: printable bytes of ASCII and Latin-1 as
// themselves, and the other 68 bytes as U+0100 and following.

// byteChars has the character of each byte, and charBytes the byte of each character.
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

// fromByteLevel appends the bytes that a token represents. It reports whether all characters of the token
// represent bytes.
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

// spaceChar is the character that represents a space.
var spaceChar, _ = utf8.DecodeRuneInString(byteChars[' '])
