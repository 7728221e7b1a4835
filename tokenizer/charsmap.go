package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// charsMap is the normalizer Precompiled, which has the rules of sentencepiece: a trie in the form of a
// double array, and the replacement texts to which its leaves point.
//
// Differs: grapheme clusters are those of Unicode 17.
type charsMap struct {
	units []uint32
	texts string // each ends in a zero byte
}

// readCharsMap reads rules in sentencepiece's format: the size of the trie, the trie, and the texts.
func readCharsMap(data []byte) (charsMap, error) {
	if len(data) < 4 {
		return charsMap{}, errors.New("precompiled_charsmap ends before its size")
	}
	size := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(size) > uint64(len(data)) || size < 4 {
		return charsMap{}, fmt.Errorf("precompiled_charsmap has a trie of %d bytes, want 4 to %d", size, len(data))
	}
	m := charsMap{units: make([]uint32, size/4), texts: string(data[size/4*4:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if !utf8.ValidString(m.texts) {
		return charsMap{}, errors.New("precompiled_charsmap has texts that are not UTF-8")
	}
	return m, nil
}

// match returns the replacement of the shortest or longest prefix of s that has one, and the length of the prefix; 0 if
// there is none. more reports whether a longer text could have a longer prefix.
func (m charsMap) match(s string, longest bool) (found string, n int, more bool) {
	if len(m.units) == 0 {
		return "", 0, false
	}
	// A double array: the child of a node for a byte is at the node's offset xor the byte, and has this byte as its
	// label. Bit 8 says that the node has a value, which is in the child for 0. The units come from the file, so each
	// index is checked.
	offset := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	pos := offset(m.units[0])
	for i := range len(s) {
		c := uint32(s[i])
		pos ^= c
		if c == 0 || pos >= uint32(len(m.units)) {
			return found, n, false
		}
		unit := m.units[pos]
		if unit&(1<<31|0xff) != c {
			return found, n, false
		}
		pos ^= offset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if pos >= uint32(len(m.units)) {
			return found, n, false
		}
		text, ok := m.text(m.units[pos] & (1<<31 - 1))
		if ok {
			found, n = text, i+1
		}
		if !longest {
			return found, n, false
		}
	}
	return found, n, true
}

// text returns the text that begins at an index.
func (m charsMap) text(at uint32) (string, bool) {
	if at > uint32(len(m.texts)) || at < uint32(len(m.texts)) && !utf8.RuneStart(m.texts[at]) {
		return "", false
	}
	text, _, _ := strings.Cut(m.texts[at:], "\x00")
	return text, true
}

// normalize replaces grapheme clusters of less than six bytes as a whole. In longer clusters it replaces
// each character separately. As in the reference, a cluster is replaced if only a prefix of it has a rule,
// and the rest of the cluster is lost.
//
// The end of an open piece may be a part of a cluster, of which only six bytes or more are certain to be separate
// characters. Removed characters change the range of the character before them, so the last one is dropped.
func (m charsMap) normalize(p *piece) {
	var changes []change
	kept := 0 // first byte of unchanged text that is not yet in changes
	put := func(at, n int, text string) {
		if changes == nil {
			changes = make([]change, 0, len(p.s)+len(text))
		}
		for _, r := range p.s[kept:at] {
			changes = append(changes, change{r, 0})
		}
		kept = at + n
		first := len(changes)
		checkGrowth(len(p.s), first+len(text))
		for _, r := range text {
			changes = append(changes, change{r, 0})
		}
		diff := len(changes) - first - utf8.RuneCountInString(p.s[at:kept])
		for i := range max(diff, 0) {
			changes[len(changes)-1-i].n = 1
		}
		if diff < 0 && len(changes) > 0 {
			changes[len(changes)-1].n += diff
		}
	}
	for step, at := 0, 0; at < len(p.s); step++ {
		p.poll(step)
		n := clusterLen(p.s[at:])
		cluster := p.s[at : at+n]
		if n < 6 {
			if p.open && at+n == len(p.s) {
				p.cut(at)
				break
			}
			if text, found, _ := m.match(cluster, false); found > 0 {
				put(at, n, text)
				at += n
				continue
			}
		}
		for i, r := range cluster {
			size := utf8.RuneLen(r)
			if text, found, _ := m.match(cluster[i:i+size], false); found > 0 {
				put(at+i, size, text)
			}
		}
		at += n
	}
	if kept > 0 {
		put(len(p.s), 0, "")
		if p.open && len(changes) > 0 {
			changes = changes[:len(changes)-1]
		}
		p.transform(changes)
	}
}

// clusterLen returns the length of the first grapheme cluster in bytes.
func clusterLen(s string) int {
	if s[0] < utf8.RuneSelf && s[0] != '\r' && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1
	}
	return len(graphemes.FromString(s).First())
}
