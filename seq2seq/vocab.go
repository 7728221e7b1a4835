package seq2seq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tokenizer"
)

// Units is the kind of pieces into which a text is split before they become numbers.
type Units string

const (
	Chars Units = "char" // single characters (code points)
	Words Units = "word" // words and punctuation marks
	BPE   Units = "bpe"  // pieces of words, learned by byte-pair encoding
)

// ParseUnits returns the units with the given name: "char", "word" or "bpe".
func ParseUnits(name string) (Units, error) {
	switch u := Units(name); u {
	case Chars, Words, BPE:
		return u, nil
	}
	return "", fmt.Errorf("seq2seq: unknown units %s, want %s, %s or %s", quote.Text(name), Chars, Words, BPE)
}

// Ids with the same meaning in every vocabulary.
const (
	Pad      = iota // fills the rest of a row of a batch after the end of its text
	BOS             // begins a text
	EOS             // ends a text
	UNK             // replaces pieces that the vocabulary does not have
	specials        // the number of special ids
)

var specialNames = [specials]string{"<pad>", "<bos>", "<eos>", "<unk>"}

const (
	// DefaultVocabularySize is the size that BuildVocabulary uses for 0.
	DefaultVocabularySize = 8000

	// maxWord is the maximum length of a word in characters.
	maxWord = 64

	// maxVocabulary limits the number of entries that a file can claim, to more than any model has.
	maxVocabulary = 1 << 20
)

// Vocabulary converts texts to numbers and back. A piece that follows a space begins with that space, so
// that decoding restores the spaces; the first word of a text counts as following a space. Any run of white
// space, including tabs and newlines, counts as one space. Apart from white space and unknown pieces,
// decoding returns the text exactly. [tokenizer.Trained] documents how texts are split.
//
// Texts are not normalized: an accented letter as one character differs from the letter and a combining
// accent. A Vocabulary is immutable and thread-safe.
type Vocabulary struct {
	units  Units
	pieces []string
	merges [][2]int32 // pairs of ids, in the order in which they apply
	tokens *tokenizer.Tokenizer
}

// BuildVocabulary builds a vocabulary from texts, with at most size entries including the four special
// ones; 0 means DefaultVocabularySize. The most frequent characters or words are included, ties in the
// order of their bytes. BPE includes characters first and then pieces of words, see [tokenizer.TrainBPE].
// The result depends only on the arguments.
//
// Panics: units that ParseUnits would reject; a text of 2 GiB.
func BuildVocabulary(texts []string, units Units, size int) *Vocabulary {
	if size <= 0 {
		size = DefaultVocabularySize
	}
	size = max(min(size, maxVocabulary), specials)

	empty := mustVocabulary(units, specialNames[:], nil)
	counts := map[string]int{}
	count := func(piece string) {
		if n, seen := counts[piece]; seen {
			counts[piece] = n + 1
		} else {
			counts[strings.Clone(piece)] = 1 // a copy, because the piece would keep its whole text in memory
		}
	}
	for _, text := range texts {
		for _, word := range empty.words(text) {
			if units != Chars {
				count(word)
				continue
			}
			for _, r := range word {
				count(string(r))
			}
		}
	}
	if units == BPE {
		pieces, merges := tokenizer.TrainBPE(counts, specialNames[:], size)
		return mustVocabulary(units, pieces, merges)
	}
	return mustVocabulary(units, tokenizer.TrainWords(counts, specialNames[:], size), nil)
}

// NewVocabulary returns a vocabulary of the given pieces, the special ones first, and with BPE of pairs of ids that are merged,
// in this order.
//
// Errors: units that ParseUnits would reject; pieces that no text can contain, or that occur twice; merges that do not make
// every piece.
func NewVocabulary(units Units, pieces []string, merges [][2]int32) (*Vocabulary, error) {
	v, err := newVocabulary(units, pieces, merges)
	if err != nil {
		return nil, fmt.Errorf("seq2seq: vocabulary: %w", err)
	}
	return v, nil
}

// Pieces returns the pieces by id.
func (v *Vocabulary) Pieces() []string { return slices.Clone(v.pieces) }

// Merges returns the pairs of ids that BPE merges, in the order in which they apply; nil for other units.
func (v *Vocabulary) Merges() [][2]int32 { return slices.Clone(v.merges) }

func mustVocabulary(units Units, pieces []string, merges [][2]int32) *Vocabulary {
	v, err := newVocabulary(units, pieces, merges)
	if err != nil {
		panic("seq2seq: BuildVocabulary: " + err.Error())
	}
	return v
}

func newVocabulary(units Units, pieces []string, merges [][2]int32) (*Vocabulary, error) {
	if _, err := ParseUnits(string(units)); err != nil {
		return nil, fmt.Errorf("unknown units %s", quote.Text(string(units)))
	}
	if n := len(pieces); n < specials || n > maxVocabulary {
		return nil, fmt.Errorf("%d pieces, want %d to %d", n, specials, maxVocabulary)
	}
	ids := make(map[string]int, len(pieces))
	for id, piece := range pieces {
		if id < specials {
			if piece != specialNames[id] {
				return nil, fmt.Errorf("piece %d is %s, want %s", id, quote.Text(piece), quote.Text(specialNames[id]))
			}
		} else if err := checkPiece(units, piece); err != nil {
			return nil, fmt.Errorf("piece %d, %s: %w", id, quote.Text(piece), err)
		}
		if first, twice := ids[piece]; twice {
			return nil, fmt.Errorf("piece %d, %s, is a duplicate of piece %d", id, quote.Text(piece), first)
		}
		ids[piece] = id
	}
	switch {
	case units == BPE:
		if err := checkMerges(pieces, ids, merges); err != nil {
			return nil, err
		}
	case len(merges) > 0:
		return nil, fmt.Errorf("%d merges, but units are %s", len(merges), quote.Text(string(units)))
	}
	tokens, err := tokenizer.NewTrained(string(units), specials, EOS, pieces, merges)
	return &Vocabulary{units, pieces, merges, tokens}, err
}

// checkPiece returns an error if no text can contain the piece.
func checkPiece(units Units, piece string) error {
	body := piece
	if units != Chars {
		body = strings.TrimPrefix(piece, " ")
	}
	n := utf8.RuneCountInString(body)
	switch {
	case !utf8.ValidString(piece):
		return errors.New("invalid UTF-8")
	case units == Chars && n != 1:
		return errors.New("not one character")
	case piece == " " && units != Words:
		return nil
	case n == 0:
		return errors.New("empty")
	case n > maxWord:
		return fmt.Errorf("longer than %d characters", maxWord)
	case strings.ContainsFunc(body, unicode.IsSpace):
		return errors.New("white space inside")
	}
	return nil
}

// checkMerges returns an error unless merges build every piece from single characters, each merge from
// earlier pieces.
func checkMerges(pieces []string, ids map[string]int, merges [][2]int32) error {
	made := make([]bool, len(pieces))
	for id, piece := range pieces {
		made[id] = id >= specials && utf8.RuneCountInString(piece) == 1
	}
	seen := map[[2]int32]bool{}
	for i, m := range merges {
		for _, id := range m {
			if id < specials || int(id) >= len(pieces) {
				return fmt.Errorf("merge %d refers to piece %d, want %d to %d", i, id, specials, len(pieces)-1)
			}
		}
		a, b := pieces[m[0]], pieces[m[1]]
		id, known := ids[a+b]
		switch {
		case !made[m[0]] || !made[m[1]]:
			return fmt.Errorf("merge %d joins pieces %d and %d before both exist", i, m[0], m[1])
		case !known:
			return fmt.Errorf("merge %d of %s and %s gives no piece", i, quote.Text(a), quote.Text(b))
		case seen[m]:
			return fmt.Errorf("merge %d is a duplicate", i)
		}
		made[id], seen[m] = true, true
	}
	if i := slices.Index(made[specials:], false); i >= 0 {
		return fmt.Errorf("no merge gives piece %d, %s", specials+i, quote.Text(pieces[specials+i]))
	}
	return nil
}

// Tokenizer returns the tokenizer of the vocabulary, which adds EOS to a text.
func (v *Vocabulary) Tokenizer() *tokenizer.Tokenizer { return v.tokens }

// Len returns the number of entries. Ids are 0 to Len()-1.
func (v *Vocabulary) Len() int { return len(v.pieces) }

// Units returns the units of the vocabulary.
func (v *Vocabulary) Units() Units { return v.units }

// Encode returns the ids of text, with UNK for unknown pieces and without BOS and EOS.
//
// Panics: a text of 2 GiB.
func (v *Vocabulary) Encode(text string) []int {
	e, err := v.tokens.Encode(strings.ToValidUTF8(text, "\uFFFD"), tokenizer.Options{NoSpecial: true})
	if err != nil {
		panic("seq2seq: " + err.Error())
	}
	return e.IDs
}

// words returns the words of a text; with Chars, the whole text.
func (v *Vocabulary) words(text string) []string {
	words, err := v.tokens.Words(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		panic("seq2seq: " + err.Error())
	}
	return words
}

// Decode returns the text of ids up to the first EOS. Other special ids and invalid ids are left out. White
// space at the beginning and the end of the text and repeated white space are left out too.
func (v *Vocabulary) Decode(ids []int) string {
	if end := slices.Index(ids, EOS); end >= 0 {
		ids = ids[:end]
	}
	return strings.TrimSuffix(v.tokens.Decode(ids), " ")
}

// MarshalJSON writes the vocabulary as a tokenizer.json, which other programs can read: see
// [tokenizer.Trained].
func (v Vocabulary) MarshalJSON() ([]byte, error) {
	return tokenizer.Trained(string(v.units), specials, EOS, v.pieces, v.merges), nil
}
