package seq2seq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The paper's own example, with a mark at the beginning of words instead of the paper's mark at the end.
func TestLearnBPEOfThePaper(t *testing.T) {
	texts := []string{strings.Repeat("low ", 5) + strings.Repeat("lower ", 2) + strings.Repeat("newest ", 6) + strings.Repeat("widest ", 3)}
	v := BuildVocabulary(texts, BPE, 4+11+4)
	if got, want := v.pieces[15:], []string{"es", "est", " l", " lo"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var pieces []string
	for _, id := range v.Encode("lowest") {
		pieces = append(pieces, v.pieces[id])
	}
	if want := []string{" lo", "w", "est"}; !slices.Equal(pieces, want) {
		t.Errorf("lowest gives %q, want %q", pieces, want)
	}
}

func TestLearnBPEIsDeterministic(t *testing.T) {
	texts := englishLike(300)
	first := BuildVocabulary(texts, BPE, 400)
	for range 3 {
		if again := BuildVocabulary(texts, BPE, 400); !slices.Equal(first.pieces, again.pieces) || !slices.Equal(first.merges, again.merges) {
			t.Fatal("two runs differ")
		}
	}
}

// If the size is less than the number of characters, the rarest ones are unknown and merges do not cross
// them.
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

// The time for a text without spaces must not grow with the square of its length.
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

// englishLike makes sentences from words with very different frequencies.
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
