package seq2seq

import (
	"fmt"
	"slices"
	"strings"

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

	// maxVocabulary is more than any model has.
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
// Errors: units that ParseUnits would reject; other special pieces; pieces that occur twice; merges of units other than BPE, or
// that do not make a piece.
func NewVocabulary(units Units, pieces []string, merges [][2]int32) (*Vocabulary, error) {
	if !slices.Equal(pieces[:min(specials, len(pieces))], specialNames[:]) {
		return nil, fmt.Errorf("seq2seq: vocabulary of %s, want %s first", quote.Texts(pieces), specialNames)
	}
	tokens, err := tokenizer.NewTrained(string(units), specials, EOS, pieces, merges)
	if err != nil {
		return nil, fmt.Errorf("seq2seq: vocabulary: %w", err)
	}
	return &Vocabulary{units, pieces, merges, tokens}, nil
}

// mustVocabulary is NewVocabulary without errors.
func mustVocabulary(units Units, pieces []string, merges [][2]int32) *Vocabulary {
	v, err := NewVocabulary(units, pieces, merges)
	if err != nil {
		panic("seq2seq: BuildVocabulary: " + err.Error())
	}
	return v
}

// Pieces returns the pieces by id.
func (v *Vocabulary) Pieces() []string { return slices.Clone(v.pieces) }

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
