package seq2seq

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/attn-go/attn/internal/quote/hostile"
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

func TestVocabularyJSON(t *testing.T) {
	texts := []string{"the cat sat on the mat <pad> & \u2028", "là, l'été ▁ \x00 漢字漢字 " + string(scripts)}
	for _, units := range allUnits {
		v := BuildVocabulary(texts, units, 0)
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var read Vocabulary
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		if read.Hash() != v.Hash() {
			t.Errorf("%s: read %+v, want %+v", units, read, v)
		}
		if byValue, err := json.Marshal(struct{ V Vocabulary }{*v}); err != nil || string(byValue) != `{"V":`+string(data)+`}` {
			t.Errorf("%s by value: %s, %v", units, byValue, err)
		}
	}
}

// The format of earlier versions can be read, and translators identify the vocabulary by its hash.
func TestVocabularyOfBefore(t *testing.T) {
	for _, units := range allUnits {
		v := BuildVocabulary([]string{"l'été 漢字 aab aab"}, units, 0)
		data, err := json.Marshal(v.old())
		var read Vocabulary
		if err == nil {
			err = json.Unmarshal(data, &read)
		}
		if err != nil {
			t.Fatal(err)
		}
		if read.Hash() != v.Hash() || !strings.HasPrefix(string(data), fmt.Sprintf(`{"units":%q,"pieces":["\u003cpad\u003e",`, units)) {
			t.Errorf("%s: %s is read as %+v, want %+v", units, data, read, v)
		}
	}
	v := Vocabulary{units: BPE, pieces: append(specialNames[:4:4], "a", "b", "ab"), merges: [][2]int32{{4, 5}}}
	if got, want := v.Hash(), "29ed3d28656e3eabd19d0fc8804eee6592af34b6787b03cb55b6dd75577c584e"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestVocabularyJSONRefuses(t *testing.T) {
	const four = `"<pad>","<bos>","<eos>","<unk>"`
	for _, c := range []struct{ in, want string }{
		{`[]`, "has an array where an object is wanted"},
		{`{}`, `unknown units ""`},
		{`{"units":"char"}`, "0 pieces, want 4 to"},
		{`{"units":"chars","pieces":[` + four + `]}`, `unknown units "chars"`},
		{`{"units":"char","pieces":[` + four + `],"size":4}`, `unknown field "size"`},
		{`{"units":"char","pieces":["<pad>","<bos>","<eos>"]}`, "3 pieces"},
		{`{"units":"char","pieces":["<bos>","<pad>","<eos>","<unk>"]}`, `piece 0 is "<bos>", want "<pad>"`},
		{`{"units":"char","pieces":[` + four + `,"a","b","a"]}`, `piece 6, "a", is a duplicate of piece 4`},
		{`{"units":"char","pieces":[` + four + `,"ab"]}`, "not one character"},
		{`{"units":"char","pieces":[` + four + `,""]}`, "not one character"},
		{`{"units":"char","pieces":[` + four + `,"\n"]}`, "white space inside"},
		{`{"units":"char","pieces":[` + four + `,null]}`, "not one character"},
		{`{"units":"char","pieces":[` + four + `,7]}`, `field "pieces[4]" has a number where a string is wanted`},
		{`{"units":"char","pieces":{"a":4}}`, `field "pieces" has an object where an array is wanted`},
		{`{"units":"word","pieces":[` + four + `," "]}`, "empty"},
		{`{"units":"word","pieces":[` + four + `,"  a"]}`, "white space inside"},
		{`{"units":"word","pieces":[` + four + `,"a b"]}`, "white space inside"},
		{`{"units":"word","pieces":[` + four + `,"` + strings.Repeat("a", maxWord+1) + `"]}`, "longer than 64 characters"},
		{`{"units":"word","pieces":[` + four + `,"a","b","ab"],"merges":[[4,5]]}`, `1 merges, but units are "word"`},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"]}`, `no merge gives piece 6, "ab"`},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"],"merges":[[4,5,6]]}`, "merge 0 has 3 parts"},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"],"merges":[[4]]}`, "merge 0 has 1 parts"},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"],"merges":[[4,7]]}`, "merge 0 refers to piece 7, want 4 to 6"},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"],"merges":[[-1,4]]}`, "merge 0 refers to piece -1"},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"],"merges":[[3,4]]}`, "merge 0 refers to piece 3"},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"],"merges":[[4,5],[5,4]]}`, `merge 1 of "b" and "a" gives no piece`},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab"],"merges":[[4,5],[4,5]]}`, "merge 1 is a duplicate"},
		{`{"units":"bpe","pieces":[` + four + `,"a","b","ab","abb"],"merges":[[6,5],[4,5]]}`, "merge 0 joins pieces 6 and 5 before both exist"},
		{`{"version":"1.0"}`, "0 pieces, want 4 to"},
		{`{"version":"1.0","model":{"type":"BPE","vocab":{"a":1}}}`, `piece "a" has id 1, want 0 to 0`},
		{`{"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":[["a","b"]]}}`, `merge 0 of "a" and "b" is not of two pieces`},
		{strings.Replace(string(BuildVocabulary(nil, Words, 0).file()), "{1,64}", "{1,65}", 1), "whose settings differ from a translator"},
		{`{"units":"bpe","pieces":[` + four + `,"a"],"merges":[[4.5,4]]}`, `field "merges[0][0]" has 4.5 where a whole number is wanted`},
		{`{"units":"bpe","pieces":[` + four + `,"a"],"merges":[[99999999999999999999,4]]}`, `field "merges[0][0]" has 99999999999999999999 where a whole number is wanted`},
	} {
		v := BuildVocabulary([]string{"keep me"}, Words, 0)
		err := json.Unmarshal([]byte(c.in), v)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.in, err, c.want)
		}
		if v.Decode(v.Encode("keep me")) != "keep me" || v.Len() != 6 {
			t.Errorf("%s: an error has changed the vocabulary", c.in)
		}
	}
	if err := new(Vocabulary).UnmarshalJSON([]byte(`{"units":"char","pieces":[` + four + `]} {}`)); err == nil {
		t.Error("a second object was ignored")
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

func FuzzVocabularyJSON(f *testing.F) {
	for _, units := range allUnits {
		data, err := json.Marshal(BuildVocabulary([]string{"l'été 漢字 aab aab", "\x00"}, units, 0))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "l'été aabaa\xff")
	}
	f.Add([]byte(`{"units":"bpe","pieces":["<pad>","<bos>","<eos>","<unk>","a","aa"],"merges":[[4,4],[4,4]]}`), "aaa")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		var v Vocabulary
		if json.Unmarshal(data, &v) != nil {
			return
		}
		again, err := json.Marshal(v)
		var read Vocabulary
		if err == nil {
			err = json.Unmarshal(again, &read)
		}
		if err != nil || read.Hash() != v.Hash() {
			t.Fatalf("%s does not come back: %v", again, err)
		}
		ids := v.Encode(text)
		for _, id := range ids {
			if id < UNK || id >= v.Len() {
				t.Fatalf("id %d of %d", id, v.Len())
			}
		}
		if got := v.Decode(ids); !slices.Contains(ids, UNK) && got != plain(strings.ToValidUTF8(text, "\uFFFD")) {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}

// An error about any content of a model's files is one line without control characters for a terminal.
func TestHostileText(t *testing.T) {
	for file, read := range map[string]func([]byte) error{
		`{"units": "bpe", "pieces": ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b", "ab"], "merges": [[4, 5]]}`: func(data []byte) error {
			return json.Unmarshal(data, new(Vocabulary))
		},
	} {
		for _, text := range []string{hostile.Text, hostile.Long} {
			for changed := range hostile.Files([]byte(file), text) {
				if err := read(changed); err != nil {
					if bad := hostile.Check(err.Error()); bad != nil {
						t.Error(bad)
					}
				}
			}
		}
	}
}
