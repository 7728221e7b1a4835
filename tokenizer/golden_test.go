package tokenizer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The tests in this file compare with Hugging Face's library tokenizers, see testdata/tokenizer.py.

var allRandom = flag.Bool("random", false, "encode all random texts, not one block of them in five")

// golden is the content of golden.json.gz.
type golden struct {
	Texts     []string                   `json:"texts"`
	Pairs     [][2]string                `json:"pair_texts"`
	Alphabets [][]string                 `json:"alphabets"`
	Models    map[string]json.RawMessage `json:"models"`
	Cases     []goldenCase               `json:"cases"`
}

type goldenCase struct {
	Name      string                     `json:"name"`
	Tokenizer map[string]json.RawMessage `json:"tokenizer"`
	Texts     []goldenEncoding           `json:"texts"`
	Pairs     []goldenEncoding           `json:"pairs"`
	Random    string                     `json:"random"`
	Every     string                     `json:"every"`
}

// goldenEncoding omits defaults.
type goldenEncoding struct {
	IDs     []int          `json:"i"`
	Offsets []int          `json:"o"`
	Words   []int          `json:"w"`
	Kinds   []int          `json:"k"` // 0
	Special []int          `json:"s"` // 0
	Mask    []int          `json:"m"` // 1
	Odd     map[int]string `json:"t"` // tokens that do not follow from their ids
	Decoded string         `json:"d"`
	Whole   *string        `json:"D"` // with special tokens, if different
}

var readGolden = sync.OnceValue(func() *golden {
	data, err := os.ReadFile("../testdata/tokenizer/golden.json.gz")
	if err != nil {
		panic(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	g := new(golden)
	if err := json.NewDecoder(z).Decode(g); err != nil {
		panic(err)
	}
	return g
})

// file returns a case as a tokenizer.json.
func (g *golden) file(t testing.TB, c *goldenCase) []byte {
	t.Helper()
	parts := map[string]json.RawMessage{}
	for name, raw := range c.Tokenizer {
		parts[name] = raw
	}
	var model string
	if err := json.Unmarshal(parts["model"], &model); err != nil {
		t.Fatal(err)
	}
	parts["model"] = g.Models[model]
	data, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// load returns the tokenizer of a case.
func (g *golden) load(t testing.TB, name string) *Tokenizer {
	t.Helper()
	for i := range g.Cases {
		if c := &g.Cases[i]; c.Name == name {
			tok, err := Read(bytes.NewReader(g.file(t, c)))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return tok
		}
	}
	t.Fatalf("no case %q", name)
	return nil
}

func TestGolden(t *testing.T) {
	g := readGolden()
	for i := range g.Cases {
		c := &g.Cases[i]
		t.Run(c.Name, func(t *testing.T) {
			tok := g.load(t, c.Name)
			if len(c.Texts) != len(g.Texts) {
				t.Fatalf("%d texts, want %d", len(c.Texts), len(g.Texts))
			}
			for i, text := range g.Texts {
				e, err := tok.Encode(text, Options{})
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				compare(t, tok, fmt.Sprintf("%q", text), e, c.Texts[i])
			}
			for i := range c.Pairs {
				e, err := tok.EncodePair(g.Pairs[i][0], g.Pairs[i][1], Options{})
				if err != nil {
					t.Fatalf("%q: %v", g.Pairs[i], err)
				}
				compare(t, tok, fmt.Sprintf("%q", g.Pairs[i]), e, c.Pairs[i])
			}
			if testing.Short() {
				return
			}
			if c.Every == "" {
				compareRandom(t, c.Random, g.random(1600), hashed(t, tok))
				return
			}
			compareRandom(t, c.Random, g.random(10000), hashed(t, tok))
			compareBlocks(t, c.Every, everyCharacter(), 0, 1, hashed(t, tok))
		})
	}
}

// compare reports the differences of an encoding.
func compare(t *testing.T, tok *Tokenizer, text string, e *Encoding, want goldenEncoding) {
	t.Helper()
	var offsets []int
	for _, o := range e.Offsets {
		offsets = append(offsets, o.Start, o.End)
	}
	var tokens, wantTokens []string
	for i, id := range want.IDs {
		token, ok := want.Odd[i]
		if !ok {
			token, _ = tok.written(id)
		}
		wantTokens = append(wantTokens, token)
	}
	tokens = append(tokens, e.Tokens...)
	usual := func(got []int, want []int, value int) ([]int, []int) {
		if want == nil {
			for range got {
				want = append(want, value)
			}
		}
		return got, want
	}
	kinds, wantKinds := usual(e.TypeIDs, want.Kinds, 0)
	special, wantSpecial := usual(numbers01(e.Special), want.Special, 0)
	mask, wantMask := usual(numbers01(e.Mask), want.Mask, 1)
	whole := want.Decoded
	if want.Whole != nil {
		whole = *want.Whole
	}
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"ids", e.IDs, want.IDs}, {"tokens", tokens, wantTokens}, {"offsets", offsets, want.Offsets}, {"words", e.Words, want.Words},
		{"types", kinds, wantKinds}, {"special", special, wantSpecial}, {"mask", mask, wantMask},
		{"decoded", tok.Decode(want.IDs), want.Decoded}, {"decoded whole", tok.DecodeSpecial(want.IDs), whole},
	} {
		if got, want := fmt.Sprintf("%q", x.got), fmt.Sprintf("%q", x.want); got != want {
			t.Errorf("%s: %s are\n%v, want\n%v", text, x.name, got, want)
		}
	}
}

func numbers01(flags []bool) []int {
	out := make([]int, len(flags))
	for i, f := range flags {
		if f {
			out[i] = 1
		}
	}
	return out
}

// hashed returns a function that appends the line of a text's encoding.
func hashed(t *testing.T, tok *Tokenizer) func([]byte, string) []byte {
	return func(b []byte, text string) []byte {
		e, err := tok.Encode(text, Options{})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return appendLine(b, tok, e)
	}
}

// compareRandom compares one block of random texts in five, other ones for each case. CI compares all of them.
func compareRandom(t *testing.T, encoded string, texts []string, line func([]byte, string) []byte) {
	t.Helper()
	first, step := int(crc32.ChecksumIEEE([]byte(t.Name()))%5), 5
	if *allRandom {
		first, step = 0, 1
	}
	compareBlocks(t, encoded, texts, first, step, line)
}

// compareBlocks compares the hashes of the lines of every 32 texts, from block first in steps of step, and reports
// each block that differs.
func compareBlocks(t *testing.T, encoded string, texts []string, first, step int, line func([]byte, string) []byte) {
	t.Helper()
	want, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	const block, size = 32, 4
	if len(want) != (len(texts)+block-1)/block*size {
		t.Fatalf("hashes of %d blocks for %d texts", len(want)/size, len(texts))
	}
	bad := 0
	for i := first * block; i < len(texts); i += step * block {
		group := texts[i:min(i+block, len(texts))]
		var buf []byte
		for _, text := range group {
			buf = line(buf, text)
		}
		sum := sha256.Sum256(buf)
		if n := i / block * size; !bytes.Equal(sum[:size], want[n:n+size]) {
			if bad++; bad <= 2 {
				t.Errorf("texts %d to %d have other tokens", i, i+len(group)-1)
			}
		}
	}
	if bad > 2 {
		t.Errorf("%d blocks differ", bad)
	}
}

// appendLine appends the text of an encoding that is hashed.
func appendLine(b []byte, tok *Tokenizer, e *Encoding) []byte {
	for i, id := range e.IDs {
		if i > 0 {
			b = append(b, 0x1e)
		}
		b = strconv.AppendInt(b, int64(id), 10)
		b = append(append(b, 0x1f), e.Tokens[i]...)
		for _, n := range [...]int{e.Offsets[i].Start, e.Offsets[i].End, e.TypeIDs[i], e.Words[i]} {
			b = strconv.AppendInt(append(b, 0x1f), int64(n), 10)
		}
	}
	b = append(append(b, 0x1d), tok.Decode(e.IDs)...)
	return append(b, 0x1c)
}

// draws returns a generator of the same random numbers as testdata/tokenizer.py.
func draws(seed int) func(n int) int {
	state := uint64(seed)
	return func(n int) int {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return int((z ^ z>>31) % uint64(n))
	}
}

// random returns the same random texts as testdata/tokenizer.py.
func (g *golden) random(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		draw := draws(i)
		alphabet := 0
		var b strings.Builder
		for range 1 + draw(28) {
			if draw(3) == 0 {
				alphabet = draw(len(g.Alphabets))
			}
			letters := g.Alphabets[alphabet]
			b.WriteString(letters[draw(len(letters))])
		}
		texts[i] = b.String()
	}
	return texts
}

// everyCharacter returns texts with each character of the relevant ranges: alone, between letters and after
// a space.
func everyCharacter() []string {
	var texts []string
	var b strings.Builder
	n := 0
	for _, r := range [][2]rune{
		{0, 0x3400}, {0x4db0, 0x4e10}, {0x9ff0, 0xac10}, {0xd7a0, 0xd800}, {0xe000, 0xe010}, {0xf8f0, 0x13440}, {0x16800, 0x16ff0},
		{0x1aff0, 0x1fbff}, {0x2a6d0, 0x2a710}, {0x2b730, 0x2b930}, {0x2cea0, 0x2cec0}, {0x2ebe0, 0x2ec00}, {0x2f800, 0x2fa30}, {0xe0000, 0xe0200},
	} {
		for c := r[0]; c < r[1]; c++ {
			fmt.Fprintf(&b, "a%cb %c ", c, c)
			if n++; n == 512 {
				texts = append(texts, b.String())
				b.Reset()
				n = 0
			}
		}
	}
	return append(texts, b.String())
}
