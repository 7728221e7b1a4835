package apply

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
)

// Flags have the mask of the library, or an error that names them.
func TestMasks(t *testing.T) {
	at := func(n int) *int { return &n }
	documents := mask.Documents([]int{3, 7})
	for _, c := range []struct {
		m    Masks
		want attn.Mask
	}{
		{Masks{}, attn.Mask{}},
		{Masks{Causal: true}, mask.Causal()},
		{Masks{Causal: true, Offset: at(-2)}, mask.WindowAt(-1, 0, -2)},
		{Masks{Window: []int{2}}, mask.Window(2, 2)},
		{Masks{Window: []int{2}, Causal: true}, mask.Window(2, 0)},
		{Masks{Window: []int{2, 1}, Offset: at(0)}, mask.WindowAt(2, 1, 0)},
		{Masks{Window: []int{2, 1}, Sink: at(1), Documents: []int{3, 7}}, attn.And(documents, mask.WindowWithSinks(2, 1, 1))},
		{Masks{Documents: []int{3, 7}}, documents},
	} {
		draw := func(m attn.Mask) string {
			return m.Draw(attn.Sizes{Lq: 5, Lk: 7})
		}
		if err := c.m.Check(); err != nil || draw(c.m.Mask()) != draw(c.want) {
			t.Errorf("%+v: %v, mask\n%s\nwant\n%s", c.m, err, draw(c.m.Mask()), draw(c.want))
		}
	}
	for want, m := range map[string]Masks{
		"--window 1,2,3, want one number or two":                             {Window: []int{1, 2, 3}},
		"--window 1,2: with --causal, no key after the query is attended to": {Window: []int{1, 2}, Causal: true},
		"--documents 5,3, want cumulative lengths in ascending order":        {Documents: []int{5, 3}},
	} {
		if err := m.Check(); fmt.Sprint(err) != want {
			t.Errorf("%+v: %v, want %s", m, err, want)
		}
	}
}

// The list of scores names formulas and parameters, also optional ones.
func TestScores(t *testing.T) {
	lines := strings.Split(Scores(), "\n")
	for _, want := range []string{"  dot ", "  additive ", "score.wq [h Eq], score.wk [h Ek]", " or nothing"} {
		if !strings.Contains(Scores(), want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if want := []string{"scaled", "dot", "cosine"}; !reflect.DeepEqual(Scaled(), want) {
		t.Errorf("scores with a scale: %q, want %q", Scaled(), want)
	}
}
