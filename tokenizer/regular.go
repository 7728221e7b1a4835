package tokenizer

import (
	"encoding/binary"
	"fmt"
	"regexp/syntax"
	"slices"
	"sync"
	"unicode/utf8"
)

// expression is a regular expression. It is matched in two passes, which together take linear time, also where the
// expression selects short matches after it has looked for longer ones up to the end of the text, as [a-z]+x|[a-z] does.
//
// The first pass reads the text backwards. For each position, it finds the instructions from which a match can be
// completed, as a deterministic automaton whose states are made when they are first needed. The second reads the text
// forwards, and follows the first of the instructions, in the order that the expression prefers, of which this is known.
// It never goes back. See Frisch and Cardelli, Greedy regular expression matching, 2004.
type expression struct {
	chars []syntax.Inst // the instructions that read a character
	first []int32       // the numbers of those that begin a match, in the order that the expression prefers
	then  [][]int32     // and of those that follow each; matched and matchedSpaces end a list
	meets []reach       // the same as bits
	pool  sync.Pool     // of *backward
}

// Ends of a match. One in the only group of the expression leaves one white space to the next word.
const (
	matched       = -1
	matchedSpaces = -2
	noMatch       = -3
)

// mostInstructions is the maximum size of an expression. The expressions of published tokenizers have fewer than 100.
const mostInstructions = 2000

// newExpression compiles an expression in the dialect of Go, without assertions.
func newExpression(expr string) (*expression, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(prog.Inst); n > mostInstructions {
		return nil, fmt.Errorf("it has %d instructions, want at most %d", n, mostInstructions)
	}
	e, numbers := &expression{}, make([]int32, len(prog.Inst))
	for pc, in := range prog.Inst {
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			numbers[pc] = int32(len(e.chars))
			e.chars = append(e.chars, in)
		}
	}
	// from returns the instructions that are reached without reading a character.
	from := func(pc uint32) (list []int32) {
		seen := make([]bool, len(prog.Inst))
		var add func(pc uint32, end int32) (more bool) // after the end of a match, no others are tried
		add = func(pc uint32, end int32) bool {
			if seen[pc] {
				return true
			}
			seen[pc] = true
			switch in := prog.Inst[pc]; in.Op {
			case syntax.InstFail:
				return true
			case syntax.InstAlt:
				return add(in.Out, end) && add(in.Arg, end)
			case syntax.InstNop:
				return add(in.Out, end)
			case syntax.InstCapture:
				return add(in.Out, matchedSpaces)
			case syntax.InstMatch:
				list = append(list, end)
				return false
			}
			list = append(list, numbers[pc])
			return true
		}
		add(pc, matched)
		return list
	}
	e.first = from(uint32(prog.Start))
	if slices.Contains(e.first, matched) || slices.Contains(e.first, matchedSpaces) {
		return nil, fmt.Errorf("it matches the empty text")
	}
	for _, in := range e.chars {
		list := from(in.Out)
		bits := e.none()
		for _, id := range list {
			bits.add(id)
		}
		e.then, e.meets = append(e.then, list), append(e.meets, bits)
	}
	return e, nil
}

// reach is a set of the instructions of an expression, as bits, at a position of a text: in the first half those that
// complete a match in the text, in the second those that read all of an open text, which may complete one.
type reach []uint64

// none returns the empty set, which is the one at the end of a text.
func (e *expression) none() reach { return make(reach, 2*(len(e.chars)/64+1)) }

func (r reach) sure(id int32) bool { return id < 0 || r[id/64]>>(id%64)&1 == 1 }

func (r reach) maybe(id int32) bool { return id >= 0 && r[len(r)/2+int(id)/64]>>(id%64)&1 == 1 }

// add adds an instruction to the first half, and to the second.
func (r reach) add(id int32) {
	if id >= 0 {
		r[id/64] |= 1 << (id % 64)
		r[len(r)/2+int(id)/64] |= 1 << (id % 64)
	}
}

// backward is the automaton of the first pass.
type backward struct {
	e      *expression
	states map[string]*backState
	steps  int // number of steps that are known
}

type backState struct {
	reach
	ascii [utf8.RuneSelf]*backState
	other map[rune]*backState
}

// mostSteps is the number of steps with which an automaton begins anew, so that no expression and text exhausts memory.
const mostSteps = 1 << 14

// state returns the state for a set.
func (b *backward) state(r reach) *backState {
	key := make([]byte, 0, 8*len(r))
	for _, bits := range r {
		key = binary.LittleEndian.AppendUint64(key, bits)
	}
	s := b.states[string(key)]
	if s == nil {
		s = &backState{reach: r, other: map[rune]*backState{}}
		b.states[string(key)] = s
	}
	return s
}

// step returns the state before a character.
func (b *backward) step(s *backState, r rune) *backState {
	var before *backState
	if r < utf8.RuneSelf {
		before = s.ascii[r]
	} else {
		before = s.other[r]
	}
	if before != nil {
		return before
	}
	if b.steps++; b.steps > mostSteps {
		b.steps, b.states = 0, map[string]*backState{}
		s = b.state(s.reach)
	}
	set, half := b.e.none(), len(s.reach)/2
	for i, in := range b.e.chars {
		if !in.MatchRune(r) {
			continue
		}
		sure := b.e.then[i][len(b.e.then[i])-1] < 0
		for j, bits := range b.e.meets[i] {
			if j < half {
				sure = sure || bits&s.reach[j] != 0
			} else if bits&s.reach[j] != 0 {
				set[half+i/64] |= 1 << (i % 64)
			}
		}
		if sure {
			set[i/64] |= 1 << (i % 64)
		}
	}
	before = b.state(set)
	if r < utf8.RuneSelf {
		s.ascii[r] = before
	} else {
		s.other[r] = before
	}
	return before
}

// backPart is the number of bytes for which the sets of each position are kept. Of the rest of a text, only those
// between parts are.
const backPart = 1 << 12

// matching is the search of an expression in a piece.
type matching struct {
	e     *expression
	p     *piece
	ends  []reach // the set at the end of each part
	at    []reach // the sets of a part, from its position start up to stop
	start int
	stop  int
}

func (e *expression) in(p *piece) search {
	m := &matching{e: e, p: p}
	end := e.none()
	if p.open {
		for i := range e.chars {
			end[len(end)/2+i/64] |= 1 << (i % 64)
		}
	}
	m.ends = make([]reach, max(1, (len(p.s)+backPart-1)/backPart))
	m.ends[len(m.ends)-1] = end
	for k := len(m.ends) - 1; k > 0; k-- {
		m.read(k)
		m.ends[k-1] = m.at[0]
	}
	m.read(0)
	return m.find
}

// part returns the position at which a part begins.
func (m *matching) part(k int) int { return beginning(m.p.s, min(k*backPart, len(m.p.s))) }

// read finds the sets of a part.
func (m *matching) read(k int) {
	m.p.poll(0)
	m.start, m.stop = m.part(k), m.part(k+1)
	m.at = slices.Grow(m.at[:0], m.stop-m.start+1)[:m.stop-m.start+1]
	m.at[m.stop-m.start] = m.ends[k]
	b, _ := m.e.pool.Get().(*backward)
	if b == nil {
		b = &backward{e: m.e, states: map[string]*backState{}}
	}
	s := b.state(m.ends[k])
	for i := m.stop; i > m.start; {
		r, n := utf8.DecodeLastRuneInString(m.p.s[m.start:i])
		s = b.step(s, r)
		i -= n
		m.at[i-m.start] = s.reach
	}
	m.e.pool.Put(b)
}

// choose returns the first of some instructions, which are tried at a position, that leads to a match. It may depend on
// the text after an open piece.
func (m *matching) choose(list []int32, at int) (id int32, known bool) {
	if at < m.start || at > m.stop {
		k := at / backPart
		if k+1 < len(m.ends) && at >= m.part(k+1) { // the part begins before a character
			k++
		}
		m.read(min(k, len(m.ends)-1))
	}
	set := m.at[at-m.start]
	for _, id := range list {
		if set.sure(id) {
			return id, true
		}
		if set.maybe(id) {
			return id, false
		}
	}
	return noMatch, true
}

func (m *matching) find(from int) (start, end int, whole bool) {
	for start = from; start < len(m.p.s); {
		_, size := utf8.DecodeRuneInString(m.p.s[start:])
		id, known := m.choose(m.e.first, start)
		if !known {
			return start, start, false
		}
		if id != noMatch {
			end, whole = m.follow(id, start, start+size)
			return start, end, whole
		}
		start += size
	}
	return len(m.p.s), len(m.p.s), false
}

// follow returns the end of the match that begins at a position with an instruction, which reads up to at.
func (m *matching) follow(id int32, start, at int) (end int, whole bool) {
	for {
		next, known := m.choose(m.e.then[id], at)
		switch {
		case !known && slices.Contains(m.e.then[id], matchedSpaces):
			_, last := utf8.DecodeLastRuneInString(m.p.s[start:at])
			return at - last, false
		case !known || next == matched:
			return at, known
		case next == matchedSpaces:
			return leaveOne(m.p.s, start, at), true
		}
		id = next
		_, size := utf8.DecodeRuneInString(m.p.s[at:])
		at += size
	}
}
