package tokenizer

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// A piece is a part of a text during tokenization. It has the normalized characters so far, and for each
// byte the range of the original text that it came from.
// The range of each byte, and not of each character, because components cut texts at bytes: a token of BPE may be a
// part of a character. While a text is as it was, its ranges follow from base, and cost nothing; most texts stay so.
type piece struct {
	s    string
	at   []span // of each byte of s; nil while s is the original text from base on
	base int    // position of the piece in the original text
	// token is the id of the added token that this piece is, or none.
	token int
	// byteLevel says that s represents its byte-level form, in which each byte is a character. Models with
	// tokens for bytes use s directly; plain converts s to the byte-level form.
	byteLevel bool
	// open says that the text continues after the piece with characters that are not known. What a component
	// returns for an open piece is a prefix of what it returns for every text that begins with the piece.
	open bool
	// need is the number of tokens of the text after which further ones are not used, or 0.
	need int
	// keep is the number of the last tokens of the text that are used, or 0 for all; dropped is the number of those before
	// that were removed.
	keep, dropped int
	// ended returns an error if the caller has left, or is nil.
	ended func() error
}

// enough reports whether no tokens of the piece are used behind those of the text so far.
func (p *piece) enough(out []token) bool { return p.need > 0 && len(out) >= p.need }

// drop removes tokens that truncation at the left would remove, some thousands at a time.
func (p *piece) drop(out []token) []token {
	if p.keep == 0 || len(out) < 2*p.keep+mostReserved {
		return out
	}
	n := len(out) - p.keep
	p.dropped += n
	return out[:copy(out, out[n:])]
}

// left is the panic value for a caller that has left; catchGrowth catches it.
type left struct{ error }

// poll is called in each step of a loop over the characters of a piece, which may be a whole text, with the number of the
// step or the position of the character. It ends the tokenization if the caller has left.
func (p *piece) poll(step int) {
	at := step & (1<<13 - 1) // characters may begin at odd positions only
	if (at == 0 || at < utf8.UTFMax && at < step) && p != nil && p.ended != nil {
		if err := p.ended(); err != nil {
			panic(left{err})
		}
	}
}

const none = -1

// errGrowth is the panic value for a text that becomes too long, which checkGrowth raises and catchGrowth catches.
var errGrowth = errors.New("the text becomes too long when it is normalized")

// checkGrowth limits the length of a text of n bytes after normalization. Otherwise a file with many replacements
// could exhaust memory.
// It panics, because normalizers call each other in many ways and none of them can do anything about it.
func checkGrowth(n, after int) {
	if after > 64*n+1<<16 {
		panic(errGrowth)
	}
}

func catchGrowth(err *error) {
	switch r := recover().(type) {
	case nil:
	case left:
		*err = r.error
	default:
		if r != error(errGrowth) {
			panic(r)
		}
		*err = errGrowth
	}
}

// span is a range of bytes of the original text.
type span struct{ start, end int32 }

// appendTimes appends a range or a position n times, for as many bytes.
func appendTimes[T any](at []T, x T, n int) []T {
	for range n {
		at = append(at, x)
	}
	return at
}

// cut removes everything after n bytes.
func (p *piece) cut(n int) {
	p.s = p.s[:n]
	if p.at != nil {
		p.at = p.at[:n]
	}
}

// newPiece returns a whole text as a piece. Each byte that is not UTF-8 becomes U+FFFD.
func newPiece(text string) piece {
	p := piece{s: text, token: none}
	if utf8.ValidString(text) {
		return p
	}
	size := 0
	for _, r := range text {
		size += utf8.RuneLen(r)
	}
	var b strings.Builder
	b.Grow(size)
	p.at = make([]span, 0, size)
	for i, r := range text {
		n := utf8.RuneLen(r)
		end := i + n
		if r == utf8.RuneError {
			_, width := utf8.DecodeRuneInString(text[i:])
			end = i + width
		}
		b.WriteRune(r)
		p.at = appendTimes(p.at, span{int32(i), int32(end)}, n)
	}
	p.s = b.String()
	return p
}

// slice returns a part of a piece.
func (p *piece) slice(start, end int) piece {
	part := piece{s: p.s[start:end], base: p.base + start, token: none, byteLevel: p.byteLevel, ended: p.ended}
	if p.at != nil {
		part.at = p.at[start:end]
		if start < end {
			part.base = int(p.at[start].start)
		}
	}
	return part
}

// align returns the original range of byte i.
func (p *piece) align(i int) span {
	if p.at != nil {
		return p.at[i]
	}
	for !utf8.RuneStart(p.s[i]) {
		i--
	}
	_, n := utf8.DecodeRuneInString(p.s[i:])
	return span{int32(p.base + i), int32(p.base + i + n)}
}

// offsets returns the bytes of the original text that a token of the piece covers. An empty token, which is
// a byte of BPE's prefix or suffix, gets the range of the character at its position.
//
// Differs: the Python package counts these bytes, so that its offsets can be outside of the text.
func (p *piece) offsets(start, end int) Span {
	if start == end {
		start = min(start, len(p.s)-1)
		end = start + 1
	}
	if p.at == nil && utf8.RuneStart(p.s[start]) && (end == len(p.s) || utf8.RuneStart(p.s[end])) {
		return Span{p.base + start, p.base + end}
	}
	return Span{int(p.align(start).start), int(p.align(end - 1).end)}
}

// A change adds a character to the normalized text, unless it is drop.
type change struct {
	r rune
	// n is 0 if the character replaces one character, −k if it replaces k+1 characters, and 1 if it is new
	// and belongs to the character before it.
	n int
}

// drop is the change of a character that is removed.
const drop = -1

// transform rewrites the piece by changes in order.
// Normalization by Unicode moves, splits and joins characters. The reference describes this by such changes, and
// gives a character that is composed of several the range of the first, so this is done in the same way.
func (p *piece) transform(changes []change) {
	read := 0 // number of bytes of the old text that were processed
	skip := func() int {
		_, n := utf8.DecodeRuneInString(p.s[read:])
		read += n
		return n
	}
	same, size := true, 0 // same: no byte moves
	for _, c := range changes {
		size += max(utf8.RuneLen(c.r), 0)
	}
	var b strings.Builder
	b.Grow(size)
	at := make([]span, 0, size)
	for i, c := range changes {
		p.poll(i)
		var align span
		n := max(utf8.RuneLen(c.r), 0)
		switch {
		case c.n <= 0:
			align = p.align(read)
			same = skip() == n && c.n == 0 && same
			for range -c.n {
				skip()
			}
		case read > 0:
			align = p.align(read - 1)
			same = false
		default:
			align = span{int32(p.base), int32(p.base)}
			same = false
		}
		if c.r != drop {
			b.WriteRune(c.r)
		}
		at = appendTimes(at, align, n)
	}
	if !same || read < len(p.s) {
		p.at = at
	}
	p.s = b.String()
}

// rewrite replaces each character by another one, or drop, and some text. All of it gets the range of the character.
func (p *piece) rewrite(f func(rune) (rune, string)) {
	differs, same, size := false, true, 0 // same: no byte moves
	for i, r := range p.s {
		p.poll(i)
		to, more := f(r)
		differs = differs || to != r || more != ""
		n := max(utf8.RuneLen(to), 0) + len(more)
		same = same && more == "" && n == utf8.RuneLen(r)
		size += n
	}
	if !differs {
		return
	}
	var b strings.Builder
	b.Grow(size)
	at := make([]span, 0, size)
	for i, r := range p.s {
		p.poll(i)
		start := b.Len()
		to, more := f(r)
		if to != drop {
			b.WriteRune(to)
		}
		b.WriteString(more)
		at = appendTimes(at, p.align(i), b.Len()-start)
	}
	if p.s = b.String(); !same {
		p.at = at
	}
}

// prepend adds a text before the piece. The text gets the range of the first character.
func (p *piece) prepend(text string) {
	if p.s == "" {
		return
	}
	checkGrowth(len(p.s), len(text))
	at := appendTimes(make([]span, 0, len(text)+len(p.s)), p.align(0), len(text))
	p.at = p.appendAlign(at, 0, len(p.s))
	p.s = text + p.s
}

// appendAlign appends the original ranges of the bytes from start to end.
func (p *piece) appendAlign(at []span, start, end int) []span {
	if p.at != nil {
		return append(at, p.at[start:end]...)
	}
	for i := start; i < end; {
		p.poll(i - start)
		_, n := utf8.DecodeRuneInString(p.s[i:])
		at = appendTimes(at, span{int32(p.base + i), int32(p.base + i + n)}, n)
		i += n
	}
	return at
}

// replace replaces each match by a text. The text gets the range of the last matched character.
func (p *piece) replace(pat pattern, with string) {
	find := pat.in(p)
	start, end, whole := find(0)
	if !whole {
		p.cut(start)
		return
	}
	var b strings.Builder
	b.Grow(len(p.s) + len(p.s)/8)
	at := make([]span, 0, len(p.s)+len(p.s)/4)
	read := 0
	for step := 0; whole; step++ {
		p.poll(step)
		b.WriteString(p.s[read:start])
		at = p.appendAlign(at, read, start)
		b.WriteString(with)
		checkGrowth(len(p.s), b.Len())
		at = appendTimes(at, p.align(end-1), len(with))
		read = end
		start, end, whole = find(read)
	}
	b.WriteString(p.s[read:start])
	p.at = p.appendAlign(at, read, start)
	p.s = b.String()
}

// strip removes white space from the ends.
func (p *piece) strip(left, right bool) {
	kept := p.s
	if left {
		kept = strings.TrimLeftFunc(kept, isSpace)
	}
	start := len(p.s) - len(kept)
	if right {
		kept = strings.TrimRightFunc(kept, isSpace)
	}
	if len(kept) < len(p.s) {
		p.at = p.appendAlign(make([]span, 0, len(kept)), start, start+len(kept))
		p.s = kept
	}
}

// plain converts the piece to its byte-level form, for code that does not support bytes.
func (p *piece) plain() {
	if !p.byteLevel {
		return
	}
	p.byteLevel = false
	var b strings.Builder
	b.Grow(2 * len(p.s))
	at := make([]span, 0, 2*len(p.s))
	for i := range len(p.s) {
		p.poll(i)
		n, _ := b.WriteString(byteChars[p.s[i]])
		at = appendTimes(at, p.align(i), n)
	}
	p.s, p.at = b.String(), at
}
