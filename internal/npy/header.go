package npy

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/attn-go/attn/internal/quote"
)

// array is the header's description of the numbers that follow.
type array struct {
	kind    byte // 'b', 'i', 'u' or 'f'
	width   int  // bytes of a number
	big     bool // the most significant byte comes first
	fortran bool // the first index runs fastest
	shape   []int
	count   int // number of elements
}

// The dictionary of a header, with spaces between any two tokens and its keys in any order.
const (
	number = ` *(?:0|[1-9][0-9]*) *`
	descr  = `(?:'descr'|"descr") *: *(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(\[[^\]\n]*\]))`
	order  = `(?:'fortran_order'|"fortran_order") *: *(True|False)`
	shape  = `(?:'shape'|"shape") *: *\(( *|(?:` + number + `,)+(?:` + number + `| *))\)`
	member = ` *(?:` + descr + `|` + order + `|` + shape + `) *`
	groups = 5 // per member
)

// compiled is the expression of dictionary. A sync.OnceValue would have an initializer, which would link package
// regexp into every program that has arrays.
var compiled struct {
	sync.Once
	*regexp.Regexp
}

// dictionary returns the expression of a header. It is compiled when the first file is read.
func dictionary() *regexp.Regexp {
	compiled.Do(func() {
		compiled.Regexp = regexp.MustCompile(`^ *\{` + member + `,` + member + `,` + member + `(?:, *)?\} *\n?$`)
	})
	return compiled.Regexp
}

// parseHeader parses the dictionary of a header, which must have each of its three keys exactly once.
func parseHeader(text string) (h array, err error) {
	var found [groups]*string
	members := 0
	at := dictionary().FindStringSubmatchIndex(text)
	for g := 2; g < len(at); g += 2 {
		if at[g] < 0 {
			continue
		}
		if value := text[at[g]:at[g+1]]; found[(g/2-1)%groups] == nil {
			found[(g/2-1)%groups] = &value
			members++
		}
	}
	for _, form := range found[1:3] { // the other forms of descr
		if form != nil {
			found[0] = form
		}
	}
	if members != 3 || found[0] == nil || found[3] == nil || found[4] == nil {
		const want = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } or the like"
		return h, fmt.Errorf("it is %s, want %s", quote.Text(text), want)
	}
	if err := h.setType(*found[0]); err != nil {
		return h, err
	}
	h.fortran = *found[3] == "True"
	h.shape = []int{}
	for axis := range strings.SplitSeq(*found[4], ",") {
		if axis = strings.Trim(axis, " "); axis == "" {
			continue // after the last comma
		}
		n, err := strconv.ParseUint(axis, 10, strconv.IntSize-1)
		if err != nil {
			return h, fmt.Errorf("shape has an axis of %s, which overflows", quote.Text(axis))
		}
		if len(h.shape) == maxRank {
			return h, fmt.Errorf("shape has more than %d axes", maxRank)
		}
		h.shape = append(h.shape, int(n))
	}
	h.shape = slices.Clip(h.shape)
	return h, h.size()
}

// types are the kinds of numbers and their widths.
var types = map[string]struct {
	kind  byte
	width int
}{
	"b1": {'b', 1},
	"i1": {'i', 1}, "i2": {'i', 2}, "i4": {'i', 4}, "i8": {'i', 8},
	"u1": {'u', 1}, "u2": {'u', 2}, "u4": {'u', 4}, "u8": {'u', 8},
	"f2": {'f', 2}, "f4": {'f', 4}, "f8": {'f', 8},
}

// setType parses the type of the numbers, such as <f4.
func (h *array) setType(s string) error {
	t, ok := types[s[min(1, len(s)):]]
	if !ok {
		const want = "one type of numbers: bool, an integer, or float16, float32 or float64"
		return fmt.Errorf("descr is %s, want %s", quote.Text(s), want)
	}
	h.kind, h.width, h.big = t.kind, t.width, s[0] == '>'
	if s[0] != '<' && s[0] != '>' && (s[0] != '|' || t.width > 1) {
		return fmt.Errorf("descr is %s, want a byte order, '<' or '>', in front of %s", quote.Text(s), s[1:])
	}
	return nil
}

// size computes the number of elements.
func (h *array) size() error {
	count, empty := uint64(1), false
	for _, n := range h.shape {
		if n == 0 {
			empty = true
			continue
		}
		over, low := bits.Mul64(count, uint64(n))
		if over != 0 || low > maxCount {
			return fmt.Errorf("shape %v is that of more than %d numbers", h.shape, maxCount)
		}
		count = low
	}
	if h.count = int(count); empty {
		h.count = 0
	}
	return nil
}
