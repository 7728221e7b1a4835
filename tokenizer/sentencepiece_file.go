package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// pieceFile is the content of a SentencePiece model: spiece.model, tokenizer.model, source.spm. The format
// is a message of protobuf, sentencepiece_model.proto.
type pieceFile struct {
	pieces       []filePiece
	kind         uint64      // pieceUnigram or pieceBPE
	fallback     bool        // unknown characters are written as bytes
	suffix       bool        // ▁ is after a word instead of before it
	unknownText  string      // text of <unk> when decoding
	normalizer   pieceRules  // normalizes texts before they are encoded
	denormalizer *pieceRules // normalizes decoded texts; may be nil
}

// filePiece is a piece of the vocabulary.
type filePiece struct {
	text  string
	score float32
	kind  pieceKind
}

type pieceKind uint8

// Kinds of pieces, as numbered in a file.
const (
	normalPiece  pieceKind = 1
	unknownPiece pieceKind = 2
	controlPiece pieceKind = 3 // never occurs in a text
	userPiece    pieceKind = 4 // is always one token
	unusedPiece  pieceKind = 5 // is split again into smaller pieces
	bytePiece    pieceKind = 6
)

// Supported kinds of models, as numbered in a file.
const (
	pieceUnigram = 1
	pieceBPE     = 2
)

// pieceRules are the rules for normalizing a text.
type pieceRules struct {
	chars       charsMap
	dummyPrefix bool // adds a space before a text
	extraSpaces bool // removes spaces at the ends, and all but one between words
	escape      bool // writes spaces as ▁
}

// wireField is a field of a protobuf message.
type wireField struct {
	number int
	kind   uint64 // wireNumber, wireBytes or one of fixed size
	value  uint64
	bytes  []byte
}

// Wire types of a field.
const (
	wireNumber  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// readWire calls a function for each field of a message, without copying the fields.
func readWire(data []byte, field func(wireField) error) error {
	number := func() (uint64, bool) {
		v, n := binary.Uvarint(data)
		data = data[max(n, 0):]
		return v, n > 0
	}
	for len(data) > 0 {
		key, ok := number()
		if !ok || key>>3 == 0 || key>>3 > math.MaxInt32 {
			return errors.New("is not a model of SentencePiece: a field without a number")
		}
		f := wireField{number: int(key >> 3), kind: key & 7}
		var size uint64
		switch f.kind {
		case wireNumber:
			if f.value, ok = number(); !ok {
				return fmt.Errorf("ends in the middle of field %d", f.number)
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			if size, ok = number(); !ok {
				return fmt.Errorf("ends in the middle of field %d", f.number)
			}
		default:
			return fmt.Errorf("is not a model of SentencePiece: field %d has form %d", f.number, f.kind)
		}
		if size > uint64(len(data)) {
			return fmt.Errorf("ends in the middle of field %d", f.number)
		}
		f.bytes, data = data[:size], data[size:]
		if err := field(f); err != nil {
			return err
		}
	}
	return nil
}

// want returns an error unless the field has the wire type kind.
func (f wireField) want(kind uint64) error {
	if f.kind != kind {
		return fmt.Errorf("field %d has form %d, want %d", f.number, f.kind, kind)
	}
	return nil
}

// flag reads a boolean field.
func (f wireField) flag(to *bool) error {
	*to = f.value != 0
	return f.want(wireNumber)
}

// readPieceFile parses a SentencePiece model. An unknown field is an error, because it may change tokens.
func readPieceFile(data []byte) (*pieceFile, error) {
	p := &pieceFile{kind: pieceUnigram, unknownText: " \u2047 "}
	rules := pieceRules{dummyPrefix: true, extraSpaces: true, escape: true}
	p.normalizer = rules
	err := readWire(data, func(f wireField) error {
		if err := f.want(wireBytes); err != nil {
			return err
		}
		switch f.number {
		case 1:
			piece, err := readPiece(f.bytes)
			if err != nil {
				return fmt.Errorf("piece %d: %w", len(p.pieces), err)
			}
			p.pieces = append(p.pieces, piece)
			return nil
		case 2:
			return p.readTraining(f.bytes)
		case 3:
			return within("normalizer_spec", p.normalizer.read(f.bytes))
		case 4: // sentences for testing the model
			return nil
		case 5:
			if p.denormalizer == nil {
				p.denormalizer = new(pieceRules)
				*p.denormalizer = rules
			}
			return within("denormalizer_spec", p.denormalizer.read(f.bytes))
		}
		return fmt.Errorf("has the unknown field %d", f.number)
	})
	if err != nil {
		return nil, err
	}
	if len(p.pieces) == 0 {
		return nil, errors.New("is not a model of SentencePiece: it has no pieces")
	}
	if p.denormalizer == nil || p.denormalizer.chars.units == nil {
		p.denormalizer = nil // as in the reference
		return p, nil
	}
	return p, within("denormalizer_spec", p.denormalizer.checkDecoding())
}

// checkDecoding limits the length of decoded texts, because Decode cannot fail.
func (r *pieceRules) checkDecoding() error {
	for text := range strings.SplitSeq(r.chars.texts, "\x00") {
		if len(text) > mostGrowth {
			return fmt.Errorf("replaces a text by one of %d bytes, want at most %d", len(text), mostGrowth)
		}
	}
	return nil
}

func readPiece(data []byte) (filePiece, error) {
	p := filePiece{kind: normalPiece}
	err := readWire(data, func(f wireField) error {
		switch f.number {
		case 1:
			p.text = string(f.bytes)
			return f.want(wireBytes)
		case 2:
			if err := f.want(wireFixed32); err != nil {
				return err
			}
			p.score = math.Float32frombits(binary.LittleEndian.Uint32(f.bytes))
			return nil
		case 3:
			if f.value < uint64(normalPiece) || f.value > uint64(bytePiece) {
				return fmt.Errorf("has type %d, want %d to %d", f.value, normalPiece, bytePiece)
			}
			p.kind = pieceKind(f.value)
			return f.want(wireNumber)
		}
		return fmt.Errorf("has the unknown field %d", f.number)
	})
	switch {
	case err != nil:
		return p, err
	case p.text == "" || !utf8.ValidString(p.text):
		return p, fmt.Errorf("is %s, want a text in UTF-8", quote.Text(p.text))
	case math.IsNaN(float64(p.score)) || math.IsInf(float64(p.score), 0):
		return p, fmt.Errorf("%s has score %v", quote.Text(p.text), p.score)
	}
	return p, nil
}

// trainingFields are fields of trainer_spec that describe the training and do not affect the use of a model.
var trainingFields = []int{
	1, 2, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 26, 30, 31, 32, 33, 34, 36,
	40, 41, 42, 43, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54,
}

// readTraining reads trainer_spec. Only a few of its settings are used.
func (p *pieceFile) readTraining(data []byte) error {
	return within("trainer_spec", readWire(data, func(f wireField) error {
		switch f.number {
		case 3:
			if f.value != pieceUnigram && f.value != pieceBPE {
				return fmt.Errorf("model_type is %d, want %d (unigram) or %d (BPE)", f.value, pieceUnigram, pieceBPE)
			}
			p.kind = f.value
			return f.want(wireNumber)
		case 24:
			return f.flag(&p.suffix)
		case 35:
			return f.flag(&p.fallback)
		case 44:
			if p.unknownText = string(f.bytes); !utf8.ValidString(p.unknownText) {
				return fmt.Errorf("unk_surface is %s, want a text in UTF-8", quote.Text(p.unknownText))
			}
			return f.want(wireBytes)
		}
		if !slices.Contains(trainingFields, f.number) {
			return fmt.Errorf("has the unknown field %d", f.number)
		}
		return nil
	}))
}

// read reads normalizer_spec or denormalizer_spec.
func (r *pieceRules) read(data []byte) error {
	return readWire(data, func(f wireField) (err error) {
		switch f.number {
		case 1, 6: // names of the rules and of their source file
			return nil
		case 2:
			if err = f.want(wireBytes); err == nil && len(f.bytes) > 0 {
				r.chars, err = readCharsMap(f.bytes)
			}
			return err
		case 3:
			return f.flag(&r.dummyPrefix)
		case 4:
			return f.flag(&r.extraSpaces)
		case 5:
			return f.flag(&r.escape)
		}
		return fmt.Errorf("has the unknown field %d", f.number)
	})
}
