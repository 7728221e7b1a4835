package seq2seq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/attn-go/attn/internal/quote/hostile"
	"github.com/attn-go/attn/tokenizer"
)

func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		texts := make([]string, 40)
		for i := range texts {
			texts[i] = randomText(rng, scripts[:10+rng.IntN(len(scripts)-9)], 60)
		}
		for _, units := range allUnits {
			v := BuildVocabulary(texts, units, 100_000)
			known := texts
			if units == BPE { // any text of known characters, not only the training texts
				known = nil
				for range 40 {
					known = append(known, randomText(rng, []rune(strings.Join(texts, "")), 200))
				}
			}
			for _, text := range known {
				ids := v.Encode(text)
				if slices.Contains(ids, UNK) {
					t.Fatalf("round %d, %s: %q has unknown pieces", round, units, text)
				}
				if got, want := v.Decode(ids), plain(text); got != want {
					t.Fatalf("round %d, %s:\n got %q\nwant %q", round, units, got, want)
				}
			}
		}
	}
}

func TestBuildVocabulary(t *testing.T) {
	texts := []string{"b a b", "c a  b", "B d"}
	for _, c := range []struct {
		units Units
		size  int
		want  []string
	}{
		{Chars, 0, []string{" ", "b", "a", "B", "c", "d"}},
		{Chars, 7, []string{" ", "b", "a"}},
		{Chars, 1, nil},
		{Words, 0, []string{" b", " a", " B", " c", " d"}},
		{Words, 6, []string{" b", " a"}},
		{BPE, 11, []string{" ", "b", "a", "B", "c", "d", " b"}},
		{BPE, 0, []string{" ", "b", "a", "B", "c", "d", " b", " a"}},
		{BPE, 5, []string{" "}},
		{BPE, 4, nil},
	} {
		v := BuildVocabulary(texts, c.units, c.size)
		want := append(slices.Clone(specialNames[:]), c.want...)
		if !slices.Equal(v.pieces, want) || v.Len() != len(want) || v.Units() != c.units {
			t.Errorf("%s, %d: got %q, want %q", c.units, c.size, v.pieces, want)
		}
	}
	for _, units := range allUnits {
		v := BuildVocabulary(nil, units, 0)
		if v.Len() != specials || !slices.Equal(v.Encode(""), []int{}) || slices.ContainsFunc(v.Encode("any text"), func(id int) bool { return id != UNK }) {
			t.Errorf("%s without texts: %q", units, v.pieces)
		}
	}
}

func TestBuildVocabularyPanicsOnUnknownUnits(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	BuildVocabulary([]string{"a"}, "syllable", 10)
}

func TestParseUnits(t *testing.T) {
	for _, u := range allUnits {
		if got, err := ParseUnits(string(u)); got != u || err != nil {
			t.Errorf("%s: %v, %v", u, got, err)
		}
	}
	for _, name := range []string{"", "Char", "chars", "bpe "} {
		want := fmt.Sprintf("seq2seq: unknown units %q, want char, word or bpe", name)
		if _, err := ParseUnits(name); err == nil || err.Error() != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestUnknownAndSpecial(t *testing.T) {
	v := BuildVocabulary([]string{"the cat <eos>"}, Words, 0)
	the, cat := v.Encode("the")[0], v.Encode(" cat")[0]
	if got := v.Encode("the dog cat"); !slices.Equal(got, []int{the, UNK, cat}) {
		t.Errorf("unknown word: %v", got)
	}
	if got := v.Encode("<eos>"); len(got) != 3 || slices.Contains(got, EOS) {
		t.Errorf("a text that spells a special name gives %v", got)
	}
	for _, c := range []struct {
		ids  []int
		want string
	}{
		{[]int{BOS, the, UNK, Pad, cat, EOS, the}, "the cat"},
		{[]int{-1, the, 1 << 30, v.Len()}, "the"},
		{[]int{EOS}, ""},
		{nil, ""},
	} {
		if got := v.Decode(c.ids); got != c.want {
			t.Errorf("%v: got %q, want %q", c.ids, got, c.want)
		}
	}
	bpe := BuildVocabulary([]string{"abab abab cc"}, BPE, 0)
	if ids := bpe.Encode("abxab"); !slices.Contains(ids, UNK) || bpe.Decode(ids) != "abab" {
		t.Errorf("unknown character: %v, %q", ids, bpe.Decode(ids))
	}
}

func TestUnknown(t *testing.T) {
	known := []string{"le chat, le chat", "est là"}
	for _, c := range []struct {
		units Units
		text  string
		want  []string
	}{
		{Chars, "le chat est là", nil},
		{Chars, "", nil},
		{Chars, "你好 le 你 x", []string{"你", "好", "x"}},
		{Chars, "a\xffb", nil}, // refused
		{Words, "le chien est là, chien!", []string{"chien", "!"}},
		{BPE, "你好 le 你 X", []string{"你", "好", "X"}},
		{BPE, "tel", nil}, // a word of known characters
	} {
		v := BuildVocabulary(known, c.units, 0)
		if got := v.Tokenizer().Unknown(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s %q: unknown are %q, want %q", c.units, c.text, got, c.want)
		}
	}
	if got := BuildVocabulary([]string{"a"}, Chars, 0).Tokenizer().Unknown("a a"); !slices.Equal(got, []string{" "}) {
		t.Errorf("unknown are %q, want the space", got)
	}

	// Unknown returns exactly the pieces that are not in the vocabulary.
	rng := rand.New(rand.NewPCG(2, 1))
	for _, units := range allUnits {
		v := BuildVocabulary([]string{randomText(rng, scripts, 100)}, units, 0)
		told := 0
		for range 500 {
			text := randomText(rng, scripts, 7)
			unknown := v.Tokenizer().Unknown(text)
			if got, want := len(unknown) > 0, slices.Contains(v.Encode(text), UNK); got != want {
				t.Fatalf("%s %q: unknown are %q, but Encode gives %v", units, text, unknown, v.Encode(text))
			}
			if len(unknown) > 0 {
				told++
			}
		}
		if told == 0 || told == 500 {
			t.Errorf("%s: %d of 500 texts have unknown pieces", units, told)
		}
	}
}

// MarshalJSON writes what the package tokenizer reads, with the ids of the vocabulary.
func TestVocabularyJSON(t *testing.T) {
	texts := []string{"the cat sat on the mat <pad> & \u2028", "là, l'été ▁ \x00 漢字漢字 " + string(scripts)}
	for _, units := range allUnits {
		v := BuildVocabulary(texts, units, 0)
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		read, err := tokenizer.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			e, err := read.Encode(text, tokenizer.Options{NoSpecial: true})
			if err != nil || !slices.Equal(e.IDs, v.Encode(text)) {
				t.Errorf("%s: %q is read as %v, %v, want %v", units, text, e.IDs, err, v.Encode(text))
			}
		}
		if byValue, err := json.Marshal(struct{ V Vocabulary }{*v}); err != nil || string(byValue) != `{"V":`+string(data)+`}` {
			t.Errorf("%s by value: %s, %v", units, byValue, err)
		}
	}
}

func TestNewVocabularyErrors(t *testing.T) {
	four := specialNames[:]
	with := func(pieces ...string) []string { return append(slices.Clone(four), pieces...) }
	for _, c := range []struct {
		units  Units
		pieces []string
		merges [][2]int32
		want   string
	}{
		{"", four, nil, `words "", want char, word or bpe`},
		{"chars", four, nil, `words "chars", want char, word or bpe`},
		{Chars, nil, nil, "vocabulary of , want [<pad> <bos> <eos> <unk>] first"},
		{Chars, four[:3], nil, "want [<pad> <bos> <eos> <unk>] first"},
		{Chars, []string{"<bos>", "<pad>", "<eos>", "<unk>"}, nil, `vocabulary of "<bos>", "<pad>", "<eos>" and 1 more, want`},
		{Chars, with("a", "b", "a"), nil, `tokens 4 and 6 are both "a"`},
		{Words, with("a", "b", "ab"), [][2]int32{{4, 5}}, "1 merges, but words word"},
		{BPE, with("a", "b", "ab"), [][2]int32{{4, 7}}, "merge 0 joins tokens 4 and 7 of 7"},
		{BPE, with("a", "b", "ab"), [][2]int32{{-1, 4}}, "merge 0 joins tokens -1 and 4 of 7"},
		{BPE, with("a", "b", "ab"), [][2]int32{{4, 5}, {5, 4}}, `merge 1 joins "b" and "a", want both and the result in the vocabulary`},
	} {
		_, err := NewVocabulary(c.units, c.pieces, c.merges)
		if err == nil || !strings.HasPrefix(err.Error(), "seq2seq: vocabulary") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q %v:\n got %v\nwant %s", c.units, c.pieces, c.merges, err, c.want)
		}
	}
	if _, err := NewVocabulary(BPE, with("a", "b", "ab"), [][2]int32{{4, 5}}); err != nil {
		t.Error(err)
	}
}

func TestVocabularyConcurrently(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	v := BuildVocabulary([]string{"the cat sat on the mat", "a dog on the mat"}, BPE, 0)
	want := v.Encode("the dog sat on the cat")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got := v.Encode("the dog sat on the cat"); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	all.Wait()
}

// An error about any piece is one line without control characters for a terminal.
func TestHostileText(t *testing.T) {
	for _, text := range []string{hostile.Text, hostile.Long} {
		for _, units := range append(allUnits, Units(text)) {
			for _, pieces := range [][]string{{text}, {text, text}, {"a", "b", text}} {
				_, err := NewVocabulary(units, append(slices.Clone(specialNames[:]), pieces...), [][2]int32{{4, 5}})
				if err == nil {
					t.Errorf("%s: no error for %q", units, pieces)
				} else if bad := hostile.Check(err.Error()); bad != nil {
					t.Error(bad)
				}
			}
		}
	}
}
