package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Stream decodes tokens one by one, as a model generates them.
type Stream struct {
	t    *Tokenizer
	ids  []int  // the last tokens that were returned as text, then the pending ones
	told int    // how many of ids were returned
	text string // text of the returned ids
}

// Stream returns an empty stream. It skips special tokens.
func (t *Tokenizer) Stream() *Stream { return &Stream{t: t} }

// Next decodes a token and returns the text that it completes. The text is empty while bytes of a character
// are missing.
func (s *Stream) Next(id int) string {
	s.ids = append(s.ids, id)
	text := s.t.Decode(s.ids)
	if strings.HasSuffix(text, "\ufffd") {
		return ""
	}
	return s.tell(text)
}

// Rest returns the pending text, with U+FFFD for incomplete characters.
func (s *Stream) Rest() string { return s.tell(s.t.Decode(s.ids)) }

// tell returns the new part of a text. The text of a token depends on the token before it, because spaces
// are added between tokens and removed at the beginning. So ids keeps the tokens that were returned last,
// and text has their text without other tokens.
func (s *Stream) tell(text string) string {
	// A token can change the text of the one before it, such as a byte that makes a character invalid. The
	// changed part is returned again.
	same := 0
	for i, r := range text {
		if same = i; !strings.HasPrefix(s.text[i:], string(r)) {
			break
		}
		same += utf8.RuneLen(r)
	}
	fresh := text[same:]
	if fresh == "" {
		return ""
	}
	s.ids = append(s.ids[:0], s.ids[s.told:]...)
	s.told, s.text = len(s.ids), s.t.Decode(s.ids)
	return fresh
}
