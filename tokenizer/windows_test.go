package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// The tests in this file compare with the library tokenizers, see testdata/tokenizer_windows.py.

type windowGolden struct {
	Texts   []string `json:"texts"`
	Special []string `json:"special"`
	Windows []struct {
		Name      string           `json:"name"`
		Max       int              `json:"max"`
		Stride    int              `json:"stride"`
		Strategy  string           `json:"strategy"`
		Direction string           `json:"direction"`
		PairTexts [][2]string      `json:"pair_texts"`
		Texts     []windowEncoding `json:"texts"`
		Pairs     []windowEncoding `json:"pairs"`
	} `json:"windows"`
	AsText []struct {
		Name  string           `json:"name"`
		Texts []windowEncoding `json:"texts"`
	} `json:"as_text"`
}

type windowEncoding struct {
	IDs     []int            `json:"i"`
	Tokens  []string         `json:"t"`
	Offsets []int            `json:"o"` // in bytes
	Chars   []int            `json:"c"` // in characters, for overflowing encodings
	Words   []int            `json:"w"`
	Special []int            `json:"s"`
	Mask    []int            `json:"m"`
	Kinds   []int            `json:"k"`
	More    []windowEncoding `json:"more"`
	Error   string           `json:"error"`
}

func readWindowGolden(t *testing.T) *windowGolden {
	t.Helper()
	f, err := os.Open("../testdata/tokenizer/windows.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	g := new(windowGolden)
	if err := json.NewDecoder(z).Decode(g); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOverflow(t *testing.T) {
	g := readWindowGolden(t)
	for _, c := range g.Windows {
		o := Options{MaxLength: c.Max, Stride: c.Stride, Overflow: true, Strategy: map[string]Strategy{
			"longest_first": LongestFirst, "only_first": OnlyFirst, "only_second": OnlySecond}[c.Strategy]}
		t.Run(fmt.Sprint(c.Name, " ", c.Max, c.Stride, c.Strategy, c.Direction), func(t *testing.T) {
			tok := *readGolden().load(t, c.Name)
			cut := truncation{Direction: "Right"}
			if c.Direction == "left" {
				cut.Direction = "Left"
			}
			tok.truncation = &cut
			for i, text := range g.Texts {
				e, err := tok.Encode(text, o)
				compareWindows(t, e, err, c.Texts[i], text)
			}
			for i, pair := range c.PairTexts {
				e, err := tok.EncodePair(pair[0], pair[1], o)
				compareWindows(t, e, err, c.Pairs[i], pair[0], pair[1])
			}
		})
	}
}

func compareWindows(t *testing.T, e *Encoding, err error, want windowEncoding, texts ...string) {
	t.Helper()
	if err != nil || want.Error != "" {
		if err == nil || want.Error == "" {
			t.Errorf("%q: error %v, want %q", texts, err, want.Error)
		}
		return
	}
	if len(e.Overflow) != len(want.More) {
		t.Fatalf("%q: %d encodings overflow, want %d", texts, len(e.Overflow), len(want.More))
	}
	for i, x := range append([]*Encoding{e}, e.Overflow...) {
		w := want
		var bytes, chars []int
		for j, at := range x.Offsets {
			text := texts[max(x.Texts[j], 0)]
			bytes = append(bytes, at.Start, at.End)
			chars = append(chars, utf8.RuneCountInString(text[:at.Start]), utf8.RuneCountInString(text[:at.End]))
		}
		offsets, kinds := bytes, x.TypeIDs
		if i > 0 {
			w = want.More[i-1]
			w.Offsets, w.Kinds = w.Chars, x.TypeIDs
			offsets = chars
		}
		got := fmt.Sprintf("%v %q %v %v %v %v %v", x.IDs, x.Tokens, offsets, x.Words, numbers01(x.Special), numbers01(x.Mask), kinds)
		wanted := fmt.Sprintf("%v %q %v %v %v %v %v", w.IDs, w.Tokens, w.Offsets, w.Words, w.Special, w.Mask, w.Kinds)
		if got != wanted {
			t.Errorf("%q, encoding %d of %d: is\n%s, want\n%s", texts, i, len(want.More)+1, got, wanted)
		}
	}
}

// Overflow is ordered slot by slot, in the order of the template, as in version 0.23.3 of the library.
func TestOrderOfOverflow(t *testing.T) {
	vocab := []string{`"[S]": 0`}
	for i := range 26 {
		vocab = append(vocab, fmt.Sprintf(`"%c": %d`, 'a'+i, i+1))
	}
	a, b := `{"Sequence": {"id": "A", "type_id": 0}}`, `{"Sequence": {"id": "B", "type_id": 0}}`
	s := `{"SpecialToken": {"id": "[S]", "type_id": 0}}`
	for _, c := range []struct{ template, first, second, want string }{
		{b + "," + a, "a b c d e f g", "p q r s t u", "pqrabc stuabc studef stug pqrdef pqrg"},
		{b + "," + a, "a b", "p q r s t u v w x y", "pqrsab tuvwab xyab"},
		{b + "," + s + "," + a, "a b c d e f g", "p q r s t u",
			"pq[S]abc rs[S]abc rs[S]def rs[S]g tu[S]abc tu[S]def tu[S]g pq[S]def pq[S]g"},
		{a + "," + b + "," + a, "a b c d e f g h i j", "p", "abcdepabcde fghijpabcde fghijpfghij abcdepfghij"},
	} {
		file := `{"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"}, 
			"post_processor": {"type": "TemplateProcessing", "single": [` + a + `], "pair": [` + c.template + `],
			"special_tokens": {"[S]": {"id": "[S]", "ids": [0], "tokens": ["[S]"]}}},
			"model": {"type": "WordLevel", "vocab": {` + strings.Join(vocab, ", ") + `}, "unk_token": "[S]"}}`
		tok, err := Read(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		e, err := tok.EncodePair(c.first, c.second, Options{MaxLength: 6, Overflow: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range append([]*Encoding{e}, e.Overflow...) {
			got = append(got, strings.Join(x.Tokens, ""))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: is %q, want %q", c.template, got, c.want)
		}
		long := strings.Repeat("a ", 3000)
		want := "encodings overflow, want at most 65535"
		if _, err := tok.EncodePair(long, long, Options{MaxLength: 8, Overflow: true}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", c.template, err, want)
		}
	}
}

// Special tokens in a text are plain text: as in the reference, and also where the vocabulary of its model has them.
func TestSpecialAsText(t *testing.T) {
	g := readWindowGolden(t)
	differ := 0
	for _, c := range g.AsText {
		tok := readGolden().load(t, c.Name)
		typed := func(text string, ids []int, at func(i int) (int, int)) (found []string) {
			for i, id := range ids {
				token, _ := tok.Token(id)
				if from, to := at(i); tok.IsSpecial(id) && text[from:to] == token {
					found = append(found, token)
				}
			}
			return found
		}
		for i, text := range g.Special {
			e, err := tok.Encode(text, Options{SpecialAsText: true, Overflow: true})
			want := c.Texts[i]
			if typed(text, want.IDs, func(i int) (int, int) { return want.Offsets[2*i], want.Offsets[2*i+1] }) == nil {
				compareWindows(t, e, err, want, text)
				continue
			}
			differ++
			if err != nil {
				t.Errorf("%s, %q: %v", c.Name, text, err)
				continue
			}
			at := func(i int) (int, int) { return e.Offsets[i].Start, e.Offsets[i].End }
			if found := typed(text, e.IDs, at); found != nil {
				t.Errorf("%s: %q has the special tokens %q", c.Name, text, found)
			}
		}
	}
	if len(g.AsText) < 40 || differ != 4 {
		t.Errorf("%d tokenizers, %d texts differ, want 4", len(g.AsText), differ)
	}
}

func TestWindowsRefused(t *testing.T) {
	tok := readGolden().load(t, "bert uncased")
	for want, o := range map[string]Options{
		"Stride is -1":            {MaxLength: 8, Stride: -1},
		"Strategy is \"Longest\"": {MaxLength: 8, Strategy: "Longest"},
		"stride is 6, want less than the 6 tokens of a window": {MaxLength: 8, Stride: 6, Overflow: true},
	} {
		if _, err := tok.Encode(strings.Repeat("a ", 20), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}
