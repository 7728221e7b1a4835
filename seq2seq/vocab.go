package seq2seq

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/tokenizer"
)

// Units says what a text is cut into before it becomes numbers.
type Units string

const (
	Chars Units = "char" // single characters (code points)
	Words Units = "word" // words and punctuation marks
	BPE   Units = "bpe"  // pieces of words, learnt by byte-pair encoding
)

// ParseUnits returns the units of that name: "char", "word" or "bpe".
func ParseUnits(name string) (Units, error) {
	switch u := Units(name); u {
	case Chars, Words, BPE:
		return u, nil
	}
	return "", fmt.Errorf("seq2seq: unknown units %s, want %s, %s or %s", quote.Text(name), Chars, Words, BPE)
}

// Ids that mean the same in every vocabulary.
const (
	Pad      = iota // fills a batch where a text has ended
	BOS             // begins a text
	EOS             // ends a text
	UNK             // stands for what the vocabulary does not have
	specials        // how many there are
)

var specialNames = [specials]string{"<pad>", "<bos>", "<eos>", "<unk>"}

const (
	// DefaultVocabularySize is the size that BuildVocabulary takes for 0.
	DefaultVocabularySize = 8000

	// maxVocabulary keeps a file from claiming more entries than a model could ever have rows.
	maxVocabulary = 1 << 20
)

// Vocabulary turns texts into numbers and back. A piece that follows a space begins with that space, so that decoding
// knows where the spaces were; the first word of a text counts as following one. One space is the same as many, and as
// tabs and newlines. Apart from that, and from pieces that are not known, decoding gives back the text exactly.
//
// Texts are taken as they are: an accented letter as one character is not the same as the letter and a combining accent.
// A Vocabulary never changes once it is made, so any number of goroutines may use it. The zero value knows nothing.
type Vocabulary struct {
	units  Units
	pieces []string
	ids    map[string]int32  // of pieces that are not special
	merges [][2]int32        // pairs of ids, in the order in which they apply
	rules  map[[2]int32]rule // of merges
}

// BuildVocabulary makes the vocabulary of texts with at most size entries, the four special ones included; 0 means
// DefaultVocabularySize. Characters and words get in by how often they occur, ties by their bytes. BPE takes all
// characters first and then pieces of words, see [tokenizer.TrainBPE]. The result depends on nothing but the arguments.
//
// Panics: units that ParseUnits would refuse.
func BuildVocabulary(texts []string, units Units, size int) *Vocabulary {
	if size <= 0 {
		size = DefaultVocabularySize
	}
	size = max(min(size, maxVocabulary), specials)

	counts := map[string]int{}
	for _, text := range texts {
		for piece := range split(collapse(text), units) {
			if n, seen := counts[piece]; seen {
				counts[piece] = n + 1
			} else {
				counts[strings.Clone(piece)] = 1 // a copy, because the piece would keep its whole text in memory
			}
		}
	}
	var pieces []string
	var merges [][2]int32
	if units == BPE {
		pieces, merges = tokenizer.TrainBPE(counts, specialNames[:], size)
	} else {
		pieces = tokenizer.TrainWords(counts, specialNames[:], size)
	}
	v, err := newVocabulary(units, pieces, merges)
	if err != nil {
		panic("seq2seq: BuildVocabulary: " + err.Error())
	}
	return v
}

// newVocabulary proves everything the methods rely on, for the parts may come from a file.
func newVocabulary(units Units, pieces []string, merges [][2]int32) (*Vocabulary, error) {
	if _, err := ParseUnits(string(units)); err != nil {
		return nil, fmt.Errorf("unknown units %s", quote.Text(string(units)))
	}
	if n := len(pieces); n < specials || n > maxVocabulary {
		return nil, fmt.Errorf("%d pieces, want %d to %d", n, specials, maxVocabulary)
	}
	v := &Vocabulary{units: units, pieces: pieces, ids: make(map[string]int32, len(pieces)), merges: merges}
	for id, piece := range pieces {
		if id < specials {
			if piece != specialNames[id] {
				return nil, fmt.Errorf("piece %d is %s, want %s", id, quote.Text(piece), quote.Text(specialNames[id]))
			}
			continue
		}
		if err := checkPiece(units, piece); err != nil {
			return nil, fmt.Errorf("piece %d, %s: %w", id, quote.Text(piece), err)
		}
		if first, twice := v.ids[piece]; twice {
			return nil, fmt.Errorf("piece %d, %s, is piece %d again", id, quote.Text(piece), first)
		}
		v.ids[piece] = int32(id)
	}
	if units != BPE && len(merges) > 0 {
		return nil, fmt.Errorf("%d merges, but units are %s", len(merges), quote.Text(string(units)))
	}
	var err error
	if units == BPE {
		v.rules, err = v.makeRules()
	}
	return v, err
}

// checkPiece reports why a text could never contain the piece.
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

// Len returns the number of entries; ids go from 0 to Len()-1.
func (v *Vocabulary) Len() int { return len(v.pieces) }

// Units returns what the vocabulary cuts texts into.
func (v *Vocabulary) Units() Units { return v.units }

// Encode returns the ids of text, UNK for what is not known, without BOS and EOS.
func (v *Vocabulary) Encode(text string) []int {
	text = collapse(text)
	ids := make([]int, 0, len(text)/3+1)
	for piece := range split(text, v.units) {
		if v.units == BPE {
			ids = v.appendMerged(ids, piece)
		} else if id, known := v.ids[piece]; known {
			ids = append(ids, int(id))
		} else {
			ids = append(ids, UNK)
		}
	}
	return ids
}

// Unknown returns the pieces of text that the vocabulary does not have and that Encode
// gives as UNK, each once, in the order of the text: characters, or with Words the
// words, without the space before them. It returns nil if everything is known.
func (v *Vocabulary) Unknown(text string) []string {
	var list []string
	add := func(piece string) {
		if _, known := v.ids[piece]; known {
			return
		}
		if bare := strings.TrimPrefix(piece, " "); bare != "" {
			piece = bare
		}
		if !slices.Contains(list, piece) {
			list = append(list, piece)
		}
	}
	for piece := range split(collapse(text), v.units) {
		if v.units != BPE {
			add(piece)
			continue
		}
		for i, r := range piece {
			add(piece[i : i+utf8.RuneLen(r)])
		}
	}
	return list
}

// Decode returns the text of ids up to the first EOS. Other special ids and ids that do not exist are left out, and so
// is white space that no text would start, end or go on with.
func (v *Vocabulary) Decode(ids []int) string {
	var text strings.Builder
	for _, id := range ids {
		if id == EOS {
			break
		}
		if specials <= id && id < len(v.pieces) {
			text.WriteString(v.pieces[id])
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// Token returns a label for id, for people to read: "▁" shows a space, a combining mark alone gets a dotted circle to
// sit on, and characters that cannot be seen are spelt as U+200B. An id that does not exist gives "<#99>".
func (v *Vocabulary) Token(id int) string {
	if id < 0 || id >= len(v.pieces) {
		return fmt.Sprintf("<#%d>", id)
	}
	if id < specials {
		return v.pieces[id]
	}
	var label strings.Builder
	body, space := strings.CutPrefix(v.pieces[id], " ")
	if space {
		label.WriteRune('▁')
	}
	for i, r := range body {
		joiner := (r == zeroWidthJoiner || r == zeroWidthNonJoiner) && len(body) > utf8.RuneLen(r)
		switch {
		case i == 0 && unicode.IsMark(r):
			label.WriteString("◌" + string(r))
		case unicode.IsPrint(r) || joiner: // a joiner changes how its neighbours look
			label.WriteRune(r)
		default:
			fmt.Fprintf(&label, "U+%04X", r)
		}
	}
	return label.String()
}

// vocabularyJSON is the form in files. Ids are places in the list, so they cannot have gaps.
type vocabularyJSON struct {
	Units  Units    `json:"units"`
	Pieces []string `json:"pieces"`
	Merges [][]int  `json:"merges,omitempty"` // two ids each, in the order in which they were learnt
}

// MarshalJSON writes all that UnmarshalJSON needs.
func (v Vocabulary) MarshalJSON() ([]byte, error) {
	out := vocabularyJSON{Units: v.units, Pieces: v.pieces}
	for _, m := range v.merges {
		out.Merges = append(out.Merges, []int{int(m[0]), int(m[1])})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
//
// Errors: everything else, unknown fields included; v is then as it was.
func (v *Vocabulary) UnmarshalJSON(data []byte) error {
	if err := v.read(data); err != nil {
		return &vocabularyError{err}
	}
	return nil
}

// vocabularyError says what keeps bytes from being a vocabulary. Who read them from a
// file tells of the file instead.
type vocabularyError struct{ err error }

func (e *vocabularyError) Error() string { return "seq2seq: vocabulary: " + e.err.Error() }

func (e *vocabularyError) Unwrap() error { return e.err }

// read is UnmarshalJSON.
func (v *Vocabulary) read(data []byte) error {
	var in vocabularyJSON
	if err := strictjson.Unmarshal(data, &in); err != nil {
		return err
	}
	var merges [][2]int32
	for i, m := range in.Merges {
		if len(m) != 2 {
			return fmt.Errorf("merge %d has %d parts, want 2", i, len(m))
		}
		for _, id := range m {
			if id < specials || id >= len(in.Pieces) {
				return fmt.Errorf("merge %d refers to piece %d, want %d to %d", i, id, specials, len(in.Pieces)-1)
			}
		}
		merges = append(merges, [2]int32{int32(m[0]), int32(m[1])})
	}
	read, err := newVocabulary(in.Units, in.Pieces, merges)
	if err != nil {
		return err
	}
	*v = *read
	return nil
}
