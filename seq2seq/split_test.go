package seq2seq

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"

	"github.com/attn-go/attn/internal/par/partest"
)

// TestMain sets one thread; tests of threads set more.
func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// maxWord is the maximum length of a word in characters.
const maxWord = 64

var allUnits = []Units{Chars, Words, BPE}

// scripts has characters of every kind that the splitter distinguishes, for random texts.
var scripts = []rune("abcxyzABC019_ \t\n\u00a0\u202f\u3000.,!?'’\"-–…«»()<>&%$€▁\x00\x7f\u0301\u0308\u20e3éàœßıİ" +
	"абвЖ אבגשׁ ابتث\u200cم नमस्ते\u094d\u200d กขคำ 漢字ひらカタナー 한국어 ½²٣ 👍🏽👩\u200d👧🇫🇷\ufe0f\u200b\u202e\ufeff\U0010ffff\ufffd")

func randomText(rng *rand.Rand, from []rune, most int) string {
	text := make([]rune, rng.IntN(most+1))
	for i := range text {
		text[i] = from[rng.IntN(len(from))]
	}
	return string(text)
}

// plain returns the text that decoding can restore: one space for any white space, and none at the ends.
func plain(text string) string { return strings.Join(strings.Fields(text), " ") }

// cutters are empty vocabularies.
var cutters = sync.OnceValue(func() map[Units]*Vocabulary {
	all := map[Units]*Vocabulary{}
	for _, units := range allUnits {
		all[units] = BuildVocabulary(nil, units, 0)
	}
	return all
})

// cutBy returns the pieces that a vocabulary with these units looks up.
func cutBy(units Units, text string) []string {
	words := cutters()[units].words(text)
	if units == Chars {
		return strings.Split(strings.Join(words, ""), "")
	}
	return words
}

// sameBefore reports whether earlier versions split a text into the same words. They did not where a word
// of 64 characters is followed by a mark or ends in a joiner.
func sameBefore(words []string) bool {
	for i, word := range words {
		if !(i > 0 && len([]rune(strings.TrimPrefix(words[i-1], " "))) == maxWord) {
			continue
		}
		first, _ := utf8.DecodeRuneInString(word)
		if kindOf(first) == kindExtend || strings.HasSuffix(words[i-1], "\u200d") {
			return false
		}
	}
	return true
}

// assigned reports whether Unicode 15 has a character. All versions of Go that attn supports know that version, and so
// does package tokenizer; later characters are split by the version of either.
func assigned(r rune) bool { return unicode.Is(unicode15(), r) }

var unicode15 = sync.OnceValue(func() *unicode.RangeTable { return rangetable.Assigned("15.0.0") })

func checkCuts(t *testing.T, text string) {
	t.Helper()
	for _, units := range allUnits {
		want := slices.Collect(split(collapse(text), units))
		if got := cutBy(units, text); !slices.Equal(got, want) && sameBefore(want) {
			t.Fatalf("%s %q:\n got %q\nwant %q", units, text, got, want)
		}
	}
}

// Texts are split as in earlier versions: random ones, of which FuzzCut tries more in CI, and all characters.
func TestCutAsBefore(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	some := []rune("aé字ナ'’\u200d\u200c\u0301 \U0001F3FD.ー7_\u3099")
	rounds, step := 1500, rune(1)
	if testing.Short() {
		rounds, step = 1000, 61
	}
	for range rounds {
		checkCuts(t, randomText(rng, scripts, 200))
		checkCuts(t, randomText(rng, some, 200))
	}
	var around strings.Builder // characters among others, in texts that are longer than what a call costs
	for r := rune(0); r <= unicode.MaxRune; r += step {
		if c := string(r); utf8.ValidRune(r) && assigned(r) {
			around.WriteString("a" + c + "b'" + c + "'b " + c + "字" + c + c + "字. ")
		}
		if around.Len() > 500 || r+step > unicode.MaxRune {
			checkCuts(t, around.String())
			around.Reset()
		}
	}
}

// Hugging Face's tokenizers 0.23.3 gives these ids with the files of these vocabularies. The test compares
// the hash of the ids, with one line of ids for each text.
func TestIDsOfTokenizers(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	some := []rune("aé字ナ'’\u200d\u200c\u0301 \U0001F3FD.ー7_\u3099")
	var texts []string
	for range 500 {
		texts = append(texts, randomText(rng, scripts, 200), randomText(rng, some, 200))
	}
	for units, want := range map[Units]string{
		Chars: "f1fe355bc1b6d089fb637b7fbcb638d6370b9560fcb731dde94775e3fecf3b32",
		Words: "35acfb81af252b9d04c166bfad65e67e124cc4ee01cd90657f0398560eb65088",
		BPE:   "f0ef381ad5b2e53c754aaf6d79850d7538d31d48eb940c3430593176c25d929f",
	} {
		v := BuildVocabulary(append(texts[:500:500], englishLike(200)...), units, 3000)
		h := sha256.New()
		for _, text := range texts {
			fmt.Fprintln(h, strings.Trim(fmt.Sprint(v.Encode(text)), "[]"))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%s: %s, want %s", units, got, want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("l'été\u200d 漢字 n\u0303'a")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range text {
			if !assigned(r) {
				return
			}
		}
		checkCuts(t, text)
	})
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		units      Units
		text, want string // pieces between bars
	}{
		{Chars, " a  b\t\u0301\x00c ", "a| |b| |\u0301|\x00|c"},
		{Words, "I don't know.", " I| don'|t| know|."},
		{Words, "L’homme qu'il a vu ?", " L’|homme| qu'|il| a| vu| ?"},
		{Words, "'so' rock'n'roll the boys' 90's 5'6", " '|so|'| rock'|n'|roll| the| boys|'| 90|'|s| 5|'|6"},
		{Words, "1,000.50$ (a_b)...", " 1|,|000|.|50|$| (|a_b|)|.|.|."},
		{Words, "n\u0303a e\u0301té", " n\u0303a| e\u0301té"},
		{Words, "नमस्ते, दुनिया", " नमस्ते|,| दुनिया"},
		{Words, "می\u200cخواهم", " می\u200cخواهم"},
		{Words, "a👍🏽b 👩\u200d👩\u200d👧!", " a|👍🏽|b| 👩\u200d👩\u200d👧|!"},
		{Words, "漢字とabcラーメン。", " 漢|字|と|abc|ラ|ー|メ|ン|。"},
		{BPE, "漢字とabcラーメン。", " 漢字と|abc|ラーメン|。"},
		{BPE, "\u0301a \u0301", " \u0301|a| \u0301"},
		{Words, strings.Repeat("x", 130) + "!", " " + strings.Repeat("x", 64) + "|" + strings.Repeat("x", 64) + "|xx|!"},
		{BPE, "a\xff\xfeb", " a|\uFFFD|b"},
		{Words, " \n ", ""},
		{Chars, "", ""},
	} {
		got := strings.Join(cutBy(c.units, c.text), "|")
		if got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.units, c.text, got, c.want)
		}
	}
}

// The pieces of any text concatenate to the text, and no piece is too long or has a space inside.
func TestSplitLosesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		text := collapse(randomText(rng, scripts, 200))
		for _, units := range allUnits {
			pieces := cutBy(units, text)
			joined := strings.Join(pieces, "")
			if units == Chars {
				joined = " " + joined
			}
			if text != "" && joined != text {
				t.Fatalf("%s %q: pieces %q", units, text, pieces)
			}
			for _, p := range pieces {
				body := p
				if units != Chars {
					body = strings.TrimPrefix(p, " ")
				}
				n := utf8.RuneCountInString(body)
				if !utf8.ValidString(p) || n < 1 || n > maxWord || units == Chars && n > 1 || p != " " && strings.ContainsFunc(body, unicode.IsSpace) {
					t.Fatalf("%s %q: piece %q", units, text, p)
				}
			}
		}
	}
}
