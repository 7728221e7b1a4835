package heads

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
)

// kindOf derives the kind of a layer from its name: Cross if the name contains "cross", or both "encoder" and "decoder";
// Mamba if it contains "decoder" and ".mamba"; otherwise the kind whose name it contains.
func kindOf(name string) (Kind, bool) {
	name = strings.ToLower(name)
	has := func(s string) bool { return strings.Contains(name, s) }
	switch decoder := has("decoder"); {
	case has("cross"), decoder && (has("encoder") || has("encdec")):
		return Cross, true
	case decoder && has(".mamba"):
		return Mamba, true
	case decoder:
		return Decoder, true
	case has("encoder"):
		return Encoder, true
	case has("alignment"):
		return Alignment, true
	}
	return 0, false
}

// guessKind returns the kind of a layer whose name does not have it. The axes of Cross differ in length,
// and no query of a Decoder attends to a later key.
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

// maxIndex limits the number of a layer.
const maxIndex = 1 << 20

// indexOf returns the first number among the parts of a layer's name.
func indexOf(name string) (int, bool) {
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("._-/: []", r) }) {
		if n, err := strconv.ParseUint(part, 10, 32); err == nil && n <= maxIndex {
			return int(n), true
		}
	}
	return 0, false
}

// identify sets the kind and index of a layer from its name and weights, if they are not known yet. others are
// the layers before it.
func identify(l *Layer, others []Layer, hasKind, hasIndex bool) {
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

// arrange sorts layers by kind and index.
func arrange(layers []Layer) {
	slices.SortStableFunc(layers, func(a, b Layer) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Index, b.Index))
	})
}

// Place derives the kind and index of a layer from its name. The defaults are Encoder and 0.
func Place(name string) (Kind, int) {
	kind, _ := kindOf(name)
	index, _ := indexOf(name)
	return kind, index
}

// Select returns the numbers of the heads that are named, by layer: "5.3" is head 3 of layer 5, "7.*" all heads of layer 7,
// "*.0" head 0 of all layers, and "cross.5.3" is of that kind only.
//
// Errors: a name that no head has.
func Select(layers []attn.LayerHeads, names ...string) (map[string][]int, error) {
	selected := map[string][]int{}
	for _, name := range names {
		parts, found := strings.Split(name, "."), false
		if len(parts) == 2 {
			parts = append([]string{"*"}, parts...)
		}
		for _, l := range layers {
			kind, index := Place(l.Name)
			for h := range l.Heads {
				is := len(parts) == 3
				for i, part := range parts {
					is = is && (part == "*" || part == []string{kind.String(), strconv.Itoa(index), strconv.Itoa(h)}[i])
				}
				if found = found || is; is && !slices.Contains(selected[l.Name], h) {
					selected[l.Name] = append(selected[l.Name], h)
				}
			}
		}
		if !found {
			example := "0.0"
			for _, l := range layers { // the last head of all: a hybrid may have none in layer 0
				if _, index := Place(l.Name); l.Heads > 0 {
					example = fmt.Sprintf("%d.%d", index, l.Heads-1)
				}
			}
			return nil, fmt.Errorf("no head is named %s, want LAYER.HEAD such as %s, or KIND.LAYER.HEAD, where * is any", quote.Text(name), example)
		}
	}
	return selected, nil
}
