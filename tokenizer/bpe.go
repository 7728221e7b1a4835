package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// bpe merges the characters of a word, pair by pair, in the order in which training found the pairs.
// Three tables are kept beside the vocabulary, because most of the time of tokenizing is spent on finding the token
// of a character and the merge of a pair: those of ASCII by index, those of other characters by rune, and merges by
// number.
type bpe struct {
	vocabulary
	merges map[uint64]merge // by pairOf
	ascii  [utf8.RuneSelf]int32
	chars  map[rune]int32 // tokens of one character; ASCII characters are in the table ascii

	prefix, suffix string  // prefix of characters after the first in a word, suffix of the last
	unknown        *string // nil if unknown characters are dropped
	fuseUnknown    bool    // one token for consecutive unknown characters
	ignoreMerges   bool    // a word that is in the vocabulary is one token
	// fallback has the tokens <0x00> to <0xFF> for unknown characters, or none for a missing token. It is
	// nil without byte fallback.
	fallback []int
	// bytes has the tokens of single bytes in byte-level form. It is nil unless every byte has a token.
	bytes []int32
	// longest is the length of the longest token.
	longest int

	scratch sync.Pool // of *bpeScratch
}

// pairOf packs a pair of tokens into one number, which is a faster key of a map than two numbers.
func pairOf(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

type bpeSettings struct {
	Vocab        vocabulary `json:"vocab"`
	Merges       mergeList  `json:"merges"`
	Dropout      float64    `json:"dropout,omitempty"`
	Unknown      *string    `json:"unk_token,omitempty"`
	Prefix       string     `json:"continuing_subword_prefix,omitempty"`
	Suffix       string     `json:"end_of_word_suffix,omitempty"`
	FuseUnknown  bool       `json:"fuse_unk,omitempty"`
	Fallback     bool       `json:"byte_fallback,omitempty"`
	IgnoreMerges bool       `json:"ignore_merges,omitempty"`
}

func (s bpeSettings) finish() (model, error) {
	m := &bpe{
		vocabulary: s.Vocab, prefix: s.Prefix, suffix: s.Suffix, unknown: s.Unknown,
		fuseUnknown: s.FuseUnknown, ignoreMerges: s.IgnoreMerges,
	}
	if s.Dropout != 0 {
		return nil, fmt.Errorf("dropout is %g, want 0: tokens would be random", s.Dropout)
	}
	if s.Fallback {
		m.fallback = byteTokens(&m.vocabulary)
	}
	m.setChars()
	return m, m.setMerges(s.Merges)
}

// byteTokens returns the ids of <0x00> to <0xFF>, or none for missing tokens.
func byteTokens(v *vocabulary) []int {
	ids := make([]int, 256)
	for i := range ids {
		ids[i] = v.idOr(fmt.Sprintf("<0x%02X>", i))
	}
	return ids
}

// splitMerges parses the lines of a merges.txt.
func splitMerges(lines []string) (mergeList, error) {
	merges := make(mergeList, 0, len(lines))
	for _, line := range lines {
		if strings.HasPrefix(line, "#version") {
			continue
		}
		a, b, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(b, " ") {
			return nil, fmt.Errorf("merge %d is %s, want two tokens with a space between them",
				len(merges), quote.Text(line))
		}
		merges = append(merges, mergePair{a, b})
	}
	return merges, nil
}

func (m *bpe) unk() int {
	if m.unknown == nil {
		return none
	}
	return m.idOr(*m.unknown)
}

func (m *bpe) setMerges(merges mergeList) error {
	m.merges = make(map[uint64]merge, len(merges))
	for rank, pair := range merges {
		a, okA := m.id(pair[0])
		b, okB := m.id(pair[1])
		joined, ok := m.id(pair[0] + pair[1][min(len(m.prefix), len(pair[1])):])
		if !okA || !okB || !ok || len(pair[1]) < len(m.prefix) {
			return fmt.Errorf("merge %d joins %s and %s, want both and the result in the vocabulary",
				rank, quote.Text(pair[0]), quote.Text(pair[1]))
		}
		m.merges[pairOf(int32(a), int32(b))] = merge{int32(rank), int32(joined)}
	}
	return nil
}

// setChars finds the tokens of single characters and the longest token. If every byte has a token, it also
// prepares for pieces in byte-level form.
func (m *bpe) setChars() {
	m.chars = map[rune]int32{}
	for i := range m.ascii {
		m.ascii[i] = none
	}
	for token, id := range m.ids {
		m.longest = max(m.longest, len(token))
		r, n := utf8.DecodeRuneInString(token)
		if token == "" || n != len(token) {
			continue
		}
		if m.chars[r] = int32(id); r < utf8.RuneSelf {
			m.ascii[r] = int32(id)
		}
	}
	if m.prefix != "" || m.suffix != "" {
		return
	}
	ids := make([]int32, 256)
	for i, char := range byteChars {
		id, ok := m.id(char)
		if !ok {
			return
		}
		ids[i] = int32(id)
	}
	m.bytes = ids
}

// bpeScratch has buffers for tokenizing a word, and a cache of words. One goroutine at a time uses a bpeScratch.
type bpeScratch struct {
	symbols
	words map[string][]symbol // by text; words of bytes have a separate cache
	bytes map[string][]symbol
	plain []byte
}

// Maximum number of cached words, and their maximum length.
const (
	wordsKept  = 1 << 14
	wordLength = 64
)

// tokenize looks a word up among those that were tokenized before, because most words of a text come again and
// again. The caches are per scratch, so that goroutines need no lock, and are emptied when full, which is cheaper
// than to know which word was used last.
func (m *bpe) tokenize(out []token, p *piece) ([]token, error) {
	isBytes := p.byteLevel && m.bytes != nil
	if !isBytes {
		p.plain()
	}
	s, _ := m.scratch.Get().(*bpeScratch)
	if s == nil {
		s = &bpeScratch{words: map[string][]symbol{}, bytes: map[string][]symbol{}}
	}
	s.in = p
	defer func() { // also if the caller has left
		s.in, s.ahead = nil, nil
		m.scratch.Put(s)
	}()
	words := s.words
	if isBytes {
		words = s.bytes
	}
	word, ok := words[p.s]
	if !ok || p.open {
		var err error
		if p.open {
			word, err = m.first(s, p.s, isBytes)
		} else {
			word, err = m.cut(s, p.s, isBytes)
		}
		if err != nil {
			return nil, err
		}
		if len(p.s) <= wordLength && !p.open {
			if len(words) == wordsKept {
				clear(words)
			}
			words[strings.Clone(p.s)] = slices.Clone(word)
		}
	}
	for _, part := range word {
		at := Span{int(part.at), int(part.at + part.len)}
		out = p.drop(append(out, token{id: int(part.id), text: m.tokens[part.id], at: at}))
	}
	return out, nil
}

// cut returns the tokens of a word. The next call overwrites the result.
func (m *bpe) cut(s *bpeScratch, word string, isBytes bool) ([]symbol, error) {
	if !m.ignoreMerges {
		return m.join(s, word, isBytes)
	}
	id, ok := 0, false
	if isBytes {
		s.plain = s.plain[:0]
		for i := range len(word) {
			s.plain = append(s.plain, byteChars[word[i]]...)
		}
		id, ok = m.ids[string(s.plain)]
	} else {
		id, ok = m.ids[word]
	}
	if !ok {
		return m.join(s, word, isBytes)
	}
	s.list = append(s.list[:0], symbol{id: int32(id), len: int32(len(word))})
	return s.list, nil
}

// join returns the tokens of a word by merging. The next call overwrites the result.
func (m *bpe) join(s *bpeScratch, word string, isBytes bool) ([]symbol, error) {
	if err := m.split(s, word, isBytes, false); err != nil {
		return nil, err
	}
	s.joinAll(m.merge)
	return s.list, nil
}

// first returns the tokens of a word as far as they do not depend on what follows it. The next call overwrites the
// result.
func (m *bpe) first(s *bpeScratch, word string, isBytes bool) ([]symbol, error) {
	if err := m.split(s, word, isBytes, true); err != nil {
		return nil, err
	}
	// Near the end of a beginning, a character may be merged with one that is not known. Two things bound what that
	// can change. No token is longer than m.longest, so characters further from the end are only in tokens that are
	// known as a whole. And joinAll, by s.ahead, gives up each symbol at the end that could be merged with what
	// follows before it is merged with what is before it. A token that is shorter than the prefix of inner tokens has
	// no such bound.
	ids := make([]int32, len(s.list))
	whole := m.ignoreMerges && len(word) <= m.longest // it may be one token
	for i, part := range s.list {
		s.in.poll(i)
		ids[i] = part.id
		whole = whole || i > 0 && len(m.tokens[part.id]) < len(m.prefix)
	}
	if whole {
		return nil, nil
	}
	// The last characters are only used to see which tokens may follow.
	n := len(ids) // no token that begins before ids[n] has parts that are not in ids
	for size := 0; size <= m.longest; {
		if n == 0 {
			return nil, nil
		}
		n--
		size += len(m.tokens[ids[n]]) - len(m.prefix)
	}
	s.list = s.list[:n]
	s.ahead = func(last *symbol) (lowest int32, ok bool) {
		var next []byte // tokens that may follow
		for i, id := range ids[last.next:] {
			part := m.tokens[id]
			if i > 0 {
				part = part[len(m.prefix):]
			}
			if next = append(next, part...); len(next) > m.longest {
				break
			}
			if id, known := m.ids[string(next)]; known {
				if to, merges := m.merges[pairOf(last.id, int32(id))]; merges && (!ok || to.rank < lowest) {
					lowest, ok = to.rank, true
				}
			}
		}
		return lowest, ok
	}
	s.joinAll(m.merge)
	s.ahead = nil
	return s.list, nil
}

// merge returns the result of merging two symbols.
func (m *bpe) merge(left, right *symbol, _ bool) (merge, bool) {
	to, ok := m.merges[pairOf(left.id, right.id)]
	return to, ok
}

// split sets the symbols of a word to its characters or bytes; if open, without those that depend on what follows.
func (m *bpe) split(s *bpeScratch, word string, isBytes, open bool) error {
	s.list = s.list[:0]
	if !isBytes {
		return m.addChars(s, word, open)
	}
	s.list = slices.Grow(s.list, len(word))
	for i := range len(word) {
		s.in.poll(i)
		s.add(m.bytes[word[i]], 1)
	}
	return nil
}

// addChars adds a symbol for each character; if open, except the last. A character that is not in the vocabulary
// becomes bytes or an unknown token; without an unknown token it is dropped.
func (m *bpe) addChars(s *bpeScratch, word string, open bool) error {
	unknown := int32(0) // number of unknown bytes that are not yet added
	flush := func() {
		if unknown > 0 {
			s.add(int32(m.ids[*m.unknown]), unknown)
			unknown = 0
		}
	}
	for i, r := range word {
		s.in.poll(i)
		n := utf8.RuneLen(r)
		if open && i+n == len(word) {
			return nil
		}
		char, before, id := word[i:i+n], 0, int32(none)
		switch first, last := i == 0 || m.prefix == "", i+n < len(word) || m.suffix == ""; {
		case first && last:
			id = m.char(r)
		default:
			if !first {
				char, before = m.prefix+char, len(m.prefix)
			}
			if !last {
				char += m.suffix
			}
			id = int32(m.idOr(char))
		}
		if id != none {
			flush()
			s.add(id, int32(n))
			continue
		}
		// Where only some bytes have tokens, the reference adds these before the pending unknown characters, so that the
		// order is not that of the text.
		if m.fallback != nil && s.addBytes(m.fallback, char, before, n) {
			continue
		}
		if m.unknown == nil {
			continue
		}
		if _, ok := m.id(*m.unknown); !ok {
			return fmt.Errorf("%s is not in the vocabulary, and neither is unk_token %s",
				quote.Text(char), quote.Text(*m.unknown))
		}
		if !m.fuseUnknown {
			flush()
		}
		unknown += int32(n)
	}
	flush()
	return nil
}

// char returns the token of a character, or none.
func (m *bpe) char(r rune) int32 {
	if r < utf8.RuneSelf {
		return m.ascii[r]
	}
	if id, ok := m.chars[r]; ok {
		return id
	}
	return none
}

// addBytes adds the bytes of a character with its prefix and suffix, if all these bytes have tokens. The
// character itself is n bytes from before on; only these bytes are part of the word.
func (s *bpeScratch) addBytes(ids []int, char string, before, n int) bool {
	for i := range len(char) {
		if ids[char[i]] == none {
			return false
		}
	}
	for i := range len(char) {
		length := int32(0)
		if before <= i && i < before+n {
			length = 1
		}
		s.add(int32(ids[char[i]]), length)
	}
	return true
}
