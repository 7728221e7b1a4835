package lens

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
)

// Part is a kind of place in a model.
type Part uint8

// The parts of a model.
const (
	Head        Part = iota // the output of a head, before the output projection: [L V]
	Query                   // queries of a head, as the map returns them: [L E]
	Key                     // keys of a head of keys: [L E]
	Value                   // values of a head of values: [L V]
	Pattern                 // the weights of a head: [L L], a row for each query
	Residual                // what a block reads; the one after the last block has one, too: [L D]
	FeedForward             // what a block's feed-forward network adds to the residual: [L D]
)

var partNames = []string{"head", "query", "key", "value", "pattern", "residual", "mlp"}

// String returns the name of a part, such as "head". FeedForward is "mlp".
func (p Part) String() string { return partNames[p] }

// MarshalText returns the name.
func (p Part) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// PartNames returns the names of all parts.
func PartNames() []string { return slices.Clone(partNames) }

// ParsePart returns the part of a name, or an error that lists the names.
func ParsePart(name string) (Part, error) {
	for i, n := range partNames {
		if n == name {
			return Part(i), nil
		}
	}
	return 0, fmt.Errorf("lens: unknown part %s, want one of %s", quote.Text(name), strings.Join(partNames, ", "))
}

// OfBlock reports whether a part belongs to a block, not to a head.
func (p Part) OfBlock() bool { return p >= Residual }

// All means every position, as the Position of a Site.
const All = -1

// Site is a place in a model.
type Site struct {
	Part Part
	// Layer is the name of a layer of attention, "decoder.3.self", or of a block, "decoder.3", for the parts of blocks.
	Layer string
	// Head is the number of a head of queries, or of keys and values for Key and Value. Blocks have none: 0.
	Head int
	// Position is that of a token, or All.
	Position int
}

// String describes a site: "head 5.3 at position 2".
func (s Site) String() string {
	kind, layer := heads.Place(s.Layer)
	text := fmt.Sprintf("%s %d", s.Part, layer)
	if !s.Part.OfBlock() {
		text += fmt.Sprint(".", s.Head)
	}
	if kind == heads.Cross {
		text += " of cross-attention"
	}
	if s.Position != All {
		text += fmt.Sprint(" at position ", s.Position)
	}
	return text
}

// owner returns the name of the layer of attention or, for the parts of blocks, of the block.
func (s Site) owner() string {
	if !s.Part.OfBlock() {
		return s.Layer
	}
	name, _ := s.block()
	return name
}

// block returns the name and number of a site's block.
func (s Site) block() (name string, number int) {
	kind, number := heads.Place(s.Layer)
	if kind == heads.Encoder {
		return fmt.Sprintf("encoder.%d", number), number
	}
	return fmt.Sprintf("decoder.%d", number), number
}

// Sites returns all sites of a part of a model, at all positions: a head after another, a layer after another.
func Sites(m *models.Model, p Part) (all []Site) {
	if p.OfBlock() {
		for _, name := range blocks(m, p) {
			all = append(all, Site{Part: p, Layer: name, Position: All})
		}
		return all
	}
	for _, l := range m.HeadLayers() {
		for h := range headsOf(l, p) {
			all = append(all, Site{Part: p, Layer: l.Name, Head: h, Position: All})
		}
	}
	return all
}

// headsOf returns the number of heads that a layer has for a part.
func headsOf(l attn.LayerHeads, p Part) int {
	switch {
	case l.Signed && p == Pattern: // nothing is mixed with its weights
		return 0
	case l.Fused && (p == Query || p == Key || p == Value):
		return 0
	case p == Key, p == Value && !l.Signed, p == Query && l.Signed: // heads of a state share queries and keys
		return l.KeyHeads
	}
	return l.Heads
}

// blocks returns the names of the blocks that have a part.
func blocks(m *models.Model, p Part) (names []string) {
	z := m.Sizes()
	add := func(kind string, z models.Sizes) {
		n := z.Layers
		switch {
		case p == Residual:
			n++
		case z.Hidden == 0:
			return
		}
		for i := range n {
			names = append(names, fmt.Sprintf("%s.%d", kind, i))
		}
	}
	switch {
	case z.Decoder != nil:
		add("encoder", z)
		add("decoder", *z.Decoder)
	case z.Causal:
		add("decoder", z)
	default:
		add("encoder", z)
	}
	return names
}
