package tokenizer

import "strings"

// Stream decodes tokens as a model writes them, one after the other.
type Stream struct {
	t    *Tokenizer
	ids  []int  // the last tokens that were written out, and those that were not
	told int    // how many of them were
	text string // of those that were
}

// Stream returns an empty stream. Special tokens have no text in it.
func (t *Tokenizer) Stream() *Stream { return &Stream{t: t} }

// Next takes a token and returns the text that it completes. That is nothing while
// the last bytes of a character are missing.
func (s *Stream) Next(id int) string {
	s.ids = append(s.ids, id)
	text := s.t.Decode(s.ids)
	if strings.HasSuffix(text, "\ufffd") {
		return ""
	}
	return s.tell(text)
}

// Rest returns what Next has held back, with U+FFFD for characters that were not
// completed.
func (s *Stream) Rest() string { return s.tell(s.t.Decode(s.ids)) }

// tell returns what is new in a text. How a token is written depends on the one before
// it: spaces are put between tokens, and taken off the beginning. So the tokens that
// were told last stay, and with them what they are without others.
func (s *Stream) tell(text string) string {
	fresh, ok := strings.CutPrefix(text, s.text)
	if !ok || fresh == "" {
		return ""
	}
	s.ids = append(s.ids[:0], s.ids[s.told:]...)
	s.told, s.text = len(s.ids), s.t.Decode(s.ids)
	return fresh
}
