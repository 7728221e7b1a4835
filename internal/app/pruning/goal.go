package pruning

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/lens"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

// Target is a goal in the flags of attn prune, of which at most one is given. Without one, the metric may drop by 1%.
type Target struct {
	Keep    string   `help:"Total number of heads to keep; or a file with these heads: a circuit, of attn lens --save, EAP-IG or MIB, or a list such as 5.3, 7.* or, with several kinds of attention, cross.5.3." placeholder:"N|FILE" group:"Goal (at most one)" excludes:"share,max-drop,speed"`
	Share   *float64 `help:"Share of the heads to remove, 0 to 1." placeholder:"P" group:"Goal (at most one)" want:"0 to 1" excludes:"max-drop,speed"`
	MaxDrop *float64 `help:"Maximum relative drop of the metric, or relative increase of the loss, 0 to 1 (default 0.01 if no other goal is given)." placeholder:"P" group:"Goal (at most one)" want:"0 to 1" excludes:"speed"`
	Speed   *float64 `help:"Speed-up to reach, such as 1.5, with a batch of 32 texts: of translation, or of the forward pass of a model that does not translate." placeholder:"X" group:"Goal (at most one)" want:"more than 1 and at most 1000" excludes:"speed-time=0s"`
}

// kept returns the heads of the file of --keep, or nil for a number: with a head, all that share its keys and values.
func (t Target) kept(m *models.Model) (list []prune.Head, err error) {
	if n, err := strconv.Atoi(t.Keep); err == nil || t.Keep == "" {
		if t.Keep != "" && n < 1 {
			return nil, flags.Errorf("--keep %d, want at least 1", n)
		}
		return nil, nil
	}
	text, err := os.ReadFile(t.Keep)
	if err != nil {
		return nil, err
	}
	var named []prune.Head
	if bytes.HasPrefix(text, []byte("{")) {
		c, err := lens.ReadCircuit(t.Keep, m)
		if err != nil {
			return nil, err
		}
		named = c.Heads()
	} else {
		sites, err := lens.ParseHeads(m, strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }))
		if err != nil {
			return nil, input.Errorf(t.Keep, "%v", err)
		}
		for _, at := range sites {
			named = append(named, prune.Head{Layer: at.Layer, Number: at.Head})
		}
	}
	for _, l := range m.HeadLayers() {
		for h := range l.Heads {
			if slices.ContainsFunc(named, func(other prune.Head) bool { return other.Layer == l.Name && other.Number/l.Group == h/l.Group }) {
				list = append(list, prune.Head{Layer: l.Name, Number: h})
			}
		}
	}
	if list == nil {
		return nil, input.Errorf(t.Keep, "has no heads that can be kept")
	}
	return list, nil
}

// goal returns the goal for a model of a directory. A goal that its layers cannot reach is a *flags.Error.
func (t Target) goal(layers []attn.LayerHeads, e *Experiment, dir string) (Goal, error) {
	all, least := 0, 0     // heads; heads that must stay
	closed := 0            // heads of layers from which none may be removed
	kinds := []string{}    // from which heads may be removed
	even := map[bool]int{} // heads of a layer, by Signed
	for i, l := range layers {
		if slices.ContainsFunc(layers[:i], func(other attn.LayerHeads) bool { return l.Out != nil && other.Out == l.Out }) {
			return Goal{}, flags.Errorf("no head of %s can be removed from one layer: its layers share their parameters", quote.Shell(dir))
		}
		all += l.Heads
		if !e.open(l.Name) {
			closed += l.Heads
			continue
		}
		if !e.Empty {
			least += l.Group
		}
		if n, ok := even[l.Signed]; ok && n != l.Heads && e.Even {
			return Goal{}, flags.Errorf("--even requires layers of equally many heads, "+
				"and those of %s have different numbers", quote.Shell(dir))
		}
		even[l.Signed] = l.Heads
	}
	least += closed
	if all == 0 {
		return Goal{}, flags.Errorf("no head of %s can be removed: its layers have none", quote.Shell(dir))
	}
	for _, k := range e.Kinds {
		kinds = append(kinds, k.String())
	}
	if len(kinds) > 0 && least == all {
		return Goal{}, flags.Errorf("no head of kind %s can be removed", strings.Join(kinds, " or "))
	}
	left := 0
	switch {
	case e.Given != nil:
		left = len(e.Given)
		for _, l := range layers {
			if gone := !slices.ContainsFunc(e.Given, func(h prune.Head) bool { return h.Layer == l.Name }); gone && !e.Empty && e.open(l.Name) {
				return Goal{}, flags.Errorf("--keep %s has no head of %s; --empty-layers lets a layer lose its last", quote.Shell(t.Keep), l.Name)
			}
		}
	case t.Keep != "":
		if left, _ = strconv.Atoi(t.Keep); left > all {
			return Goal{}, flags.Errorf("--keep %d, but the model has %d heads", left, all)
		}
	case t.Share != nil:
		left = all - int(float64(*t.Share*float64(all))+0.5)
	case t.Speed != nil:
		return Goal{Speed: *t.Speed}, nil
	case t.MaxDrop != nil:
		return Goal{Drop: *t.MaxDrop}, nil
	default:
		return Goal{Drop: 0.01}, nil
	}
	if least = max(least, 1); left < least {
		hint := ""
		if !e.Empty && left >= max(closed, 1) {
			hint = "; --empty-layers lets a layer lose its last"
		}
		return Goal{}, flags.Errorf("the goal leaves %d of %d heads, but at least %d must stay%s", left, all, least, hint)
	}
	return Goal{Left: left}, nil
}
