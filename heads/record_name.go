package heads

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// kindOf returns what a layer's name says of its kind: "cross", or both an
// encoder and a decoder, is Cross; else it is whichever of the two is named.
func kindOf(name string) (Kind, bool) {
	name = strings.ToLower(name)
	has := func(s string) bool { return strings.Contains(name, s) }
	switch decoder := has("decoder"); {
	case has("cross"), decoder && (has("encoder") || has("encdec")):
		return Cross, true
	case decoder:
		return Decoder, true
	case has("encoder"):
		return Encoder, true
	}
	return 0, false
}

// guessKind returns the kind of a layer whose name does not say it: the axes of
// Cross differ in length, and no query of a Decoder attends to a later key.
func guessKind(l *Layer) Kind {
	lq, lk := len(l.Queries), len(l.Keys)
	if lq != lk {
		return Cross
	}
	if lq == 1 {
		return Encoder
	}
	for h := range l.Heads {
		weights := l.Head(h)
		for i := range lq {
			if slices.ContainsFunc(weights[i*lk+i+1:(i+1)*lk], func(w float32) bool { return w != 0 }) {
				return Encoder
			}
		}
	}
	return Decoder
}

// maxIndex bounds the number of a layer.
const maxIndex = 1 << 20

// indexOf returns the first part of a layer's name that is a number.
func indexOf(name string) (int, bool) {
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("._-/: []", r) }) {
		if n, err := strconv.ParseUint(part, 10, 32); err == nil && n <= maxIndex {
			return int(n), true
		}
	}
	return 0, false
}

// place gives a layer its kind and index, as far as they are not known, from its
// name and weights; others are the layers that came before it.
func place(l *Layer, others []Layer, hasKind, hasIndex bool) {
	if !hasKind {
		var said bool
		if l.Kind, said = kindOf(l.Name); !said {
			l.Kind = guessKind(l)
		}
	}
	if hasIndex {
		return
	}
	var said bool
	if l.Index, said = indexOf(l.Name); said {
		return
	}
	for i := range others {
		if others[i].Kind == l.Kind {
			l.Index++
		}
	}
}

// arrange puts layers in the order of kinds and indices.
func arrange(layers []Layer) {
	slices.SortStableFunc(layers, func(a, b Layer) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Index, b.Index))
	})
}

// Place returns the kind and index of a layer as its name says them: Encoder and
// 0 where it says nothing.
func Place(name string) (Kind, int) {
	kind, _ := kindOf(name)
	index, _ := indexOf(name)
	return kind, index
}
