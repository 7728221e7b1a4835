package npy

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// array is what a header says of the numbers behind it.
type array struct {
	kind    byte // 'b', 'i', 'u' or 'f'
	width   int  // bytes of a number
	big     bool // the most significant byte comes first
	fortran bool // the first index runs fastest
	shape   []int
	count   int // of numbers
}

// parseHeader reads the dictionary of a header:
//
//	dict  = '{' [ item { ',' item } [ ',' ] ] '}' { ' ' } [ '\n' ]
//	item  = string ':' ( string | 'True' | 'False' | tuple )
//	tuple = '(' [ number ',' [ number { ',' number } [ ',' ] ] ] ')'
//
// with spaces between any two of its parts. It has the keys 'descr',
// 'fortran_order' and 'shape', each once.
func parseHeader(text string) (array, error) {
	p := &parser{rest: text}
	var h array
	seen := map[string]bool{}
	if err := p.expect("{"); err != nil {
		return h, err
	}
	for !p.take("}") {
		if len(seen) > 0 {
			if err := p.expect(","); err != nil {
				return h, err
			}
			if p.take("}") {
				break
			}
		}
		key, err := p.string("a key")
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("it has the key %s twice", quote.Text(key))
		}
		seen[key] = true
		if err := p.expect(":"); err != nil {
			return h, err
		}
		switch key {
		case "descr":
			err = p.descr(&h)
		case "fortran_order":
			err = p.boolean(&h)
		case "shape":
			h.shape, err = p.tuple()
		default:
			err = fmt.Errorf("unknown key %s", quote.Text(key))
		}
		if err != nil {
			return h, err
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("it has no %s", key)
		}
	}
	if rest := strings.TrimSuffix(strings.TrimLeft(p.rest, " "), "\n"); rest != "" {
		return h, fmt.Errorf("it goes on with %s after its end, want spaces", quote.Text(rest))
	}
	return h, h.size()
}

// size works out the number of elements.
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

// parser reads what is left of a header.
type parser struct{ rest string }

// take reads a token, if it comes next.
func (p *parser) take(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) expect(token string) error {
	if !p.take(token) {
		return p.unexpected(quote.Text(token))
	}
	return nil
}

// unexpected says what stands where something else was wanted.
func (p *parser) unexpected(want string) error {
	if p.rest == "" {
		return fmt.Errorf("it ends where %s should be", want)
	}
	return fmt.Errorf("it goes on with %s, want %s", quote.Text(p.rest), want)
}

// string reads a string without escapes, which none of ours needs.
func (p *parser) string(what string) (string, error) {
	for _, q := range []string{"'", `"`} {
		if p.take(q) {
			s, rest, ok := strings.Cut(p.rest, q)
			if !ok || strings.ContainsAny(s, "\\\n") {
				return "", fmt.Errorf("%s is no plain string: %s", what, quote.Text(q+p.rest))
			}
			p.rest = rest
			return s, nil
		}
	}
	return "", p.unexpected(what)
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

// descr reads the type of the numbers: '<f4'.
func (p *parser) descr(h *array) error {
	const want = "one type of numbers: bool, an integer, or float16, float32 or float64"
	if p.take("[") {
		return errors.New("descr is a list of fields, want " + want)
	}
	s, err := p.string("descr")
	if err != nil {
		return err
	}
	if s == "" {
		return errors.New("descr is empty, want " + want)
	}
	t, ok := types[s[1:]]
	if !ok {
		return fmt.Errorf("descr is %s, want %s", quote.Text(s), want)
	}
	h.kind, h.width = t.kind, t.width
	switch s[0] {
	case '<':
	case '>':
		h.big = true
	case '|':
		ok = t.width == 1
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("descr is %s, want a byte order, '<' or '>', in front of %s", quote.Text(s), s[1:])
	}
	return nil
}

func (p *parser) boolean(h *array) error {
	switch {
	case p.take("True"):
		h.fortran = true
	case p.take("False"):
	default:
		return p.unexpected("fortran_order, True or False")
	}
	return nil
}

// tuple reads the shape.
func (p *parser) tuple() ([]int, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	shape := []int{}
	for comma := true; !p.take(")"); {
		if !comma {
			return nil, p.unexpected("a comma or the end of the shape")
		}
		digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		number := p.rest[:digits]
		if number == "" || (number[0] == '0' && digits > 1) {
			return nil, p.unexpected("a number of the shape")
		}
		n, err := strconv.ParseUint(number, 10, strconv.IntSize-1)
		if err != nil {
			return nil, fmt.Errorf("shape has an axis of %s, which overflows", quote.Text(number))
		}
		if len(shape) == maxRank {
			return nil, fmt.Errorf("shape has more than %d axes", maxRank)
		}
		p.rest = strings.TrimPrefix(p.rest[digits:], "L") // as Python 2 wrote them
		shape = append(shape, int(n))
		comma = p.take(",")
		if !comma && len(shape) == 1 {
			return nil, p.unexpected("a comma, without which it is no tuple")
		}
	}
	return slices.Clip(shape), nil
}
