package seq2seq

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plainBPE is algorithm 1 of Sennrich et al. as it stands in the paper: count everything anew for every merge.
func plainBPE(texts []string, size int) []string {
	var words [][]string
	chars := map[string]int{}
	for _, text := range texts {
		for word := range split(collapse(text), BPE) {
			words = append(words, strings.Split(word, ""))
			for _, r := range word {
				chars[string(r)]++
			}
		}
	}
	chars[" "] = 1 << 30
	pieces := append(slices.Clone(specialNames[:]), mostFrequent(chars, size-specials)...)
	for len(pieces) < size {
		counts := map[[2]string]int{}
		for _, w := range words {
			for i := 1; i < len(w); i++ {
				counts[[2]string{w[i-1], w[i]}]++
			}
		}
		var best [2]string
		for p, n := range counts {
			if c := cmp.Or(cmp.Compare(n, counts[best]), strings.Compare(best[0], p[0]), strings.Compare(best[1], p[1])); c > 0 {
				best = p
			}
		}
		if counts[best] < 2 {
			break
		}
		for k, w := range words {
			var out []string
			for i := 0; i < len(w); i++ {
				if i+1 < len(w) && w[i] == best[0] && w[i+1] == best[1] {
					out = append(out, best[0]+best[1])
					i++
				} else {
					out = append(out, w[i])
				}
			}
			words[k] = out
		}
		if piece := best[0] + best[1]; !slices.Contains(pieces, piece) {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// Few letters make many overlaps, many ways to the same piece, and pairs that come back after they were merged.
func TestLearnBPEAgainstPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for round := range 400 {
		alphabet := []rune("aabcd  é")[:2+rng.IntN(7)]
		texts := make([]string, 1+rng.IntN(20))
		for i := range texts {
			texts[i] = randomText(rng, alphabet, 1+rng.IntN(60))
		}
		if strings.TrimSpace(strings.Join(texts, "")) == "" {
			continue
		}
		size := 12 + rng.IntN(150) // below 12 the plain version would have to know of characters without an id
		got, want := BuildVocabulary(texts, BPE, size).pieces, plainBPE(texts, size)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d, size %d, texts %q:\n got %q\nwant %q", round, size, texts, got[specials:], want[specials:])
		}
	}
}

// The paper's own example, with our mark at the start of words in place of its mark at the end.
func TestLearnBPEOfThePaper(t *testing.T) {
	texts := []string{strings.Repeat("low ", 5) + strings.Repeat("lower ", 2) + strings.Repeat("newest ", 6) + strings.Repeat("widest ", 3)}
	v := BuildVocabulary(texts, BPE, 4+11+4)
	if got, want := v.pieces[15:], []string{"es", "est", " l", " lo"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var pieces []string
	for _, id := range v.Encode("lowest") {
		pieces = append(pieces, v.Token(id))
	}
	if want := []string{"▁lo", "w", "est"}; !slices.Equal(pieces, want) {
		t.Errorf("lowest gives %q, want %q", pieces, want)
	}
}

func TestLearnBPEIsDeterministic(t *testing.T) {
	texts := englishLike(300)
	first := BuildVocabulary(texts, BPE, 400)
	for range 3 {
		if again := BuildVocabulary(texts, BPE, 400); !reflect.DeepEqual(first, again) {
			t.Fatal("two runs differ")
		}
	}
}

// With less room than there are characters, the rarest ones are unknown and merges do not cross them.
func TestLearnBPEWithRareCharacters(t *testing.T) {
	v := BuildVocabulary([]string{"aaaa aaaa abbb abbb acb"}, BPE, 7)
	if want := []string{" ", "a", "b"}; !slices.Equal(v.pieces[specials:], want) {
		t.Errorf("got %q, want %q", v.pieces[specials:], want)
	}
	for _, p := range BuildVocabulary([]string{strings.Repeat("acacac ", 5) + strings.Repeat("a ", 20)}, BPE, 6).pieces[specials:] {
		if strings.Contains(p, "c") {
			t.Errorf("piece %q of a character that had no room", p)
		}
	}
}

// A text without a single space must not cost the square of its length.
func TestBPEOfOneEndlessWord(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: 300,000 letters")
	}
	rng := rand.New(rand.NewPCG(5, 5))
	text := randomText(rng, []rune("abcde"), 1)
	for len(text) < 300_000 {
		text += randomText(rng, []rune("abcde"), 5000)
	}
	v := BuildVocabulary([]string{text}, BPE, 500)
	if got := v.Decode(v.Encode(text)); got != text {
		t.Error("the text did not come back")
	}
}

// englishLike makes sentences of words that are drawn with very different frequencies.
func englishLike(n int) []string {
	rng := rand.New(rand.NewPCG(6, 6))
	syllables := strings.Fields("the ing ed er re un con ta to mo ri ka li so na ne sh qu est ly é ç ou ai")
	words := make([]string, 5000)
	for i := range words {
		for range 1 + rng.IntN(4) {
			words[i] += syllables[rng.IntN(len(syllables))]
		}
	}
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range 3 + rng.IntN(8) {
			fmt.Fprintf(&b, "%s ", words[int(float64(len(words))*rng.Float64()*rng.Float64()*rng.Float64())])
		}
		texts[i] = b.String() + "."
	}
	return texts
}

func BenchmarkBuildVocabulary(b *testing.B) {
	texts := englishLike(20_000)
	for _, units := range allUnits {
		b.Run(string(units), func(b *testing.B) {
			for b.Loop() {
				BuildVocabulary(texts, units, 0)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	texts := englishLike(1000)
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	for _, units := range allUnits {
		v := BuildVocabulary(texts, units, 2000)
		b.Run(string(units), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range texts {
					v.Encode(text)
				}
			}
		})
	}
}
