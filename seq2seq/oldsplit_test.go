package seq2seq

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file splits texts like earlier versions did, as a reference for the tokenizers.

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// collapse returns text as valid UTF-8, with one space before each word and no other white space.
func collapse(text string) string {
	fields := strings.Fields(strings.ToValidUTF8(text, "\uFFFD"))
	if len(fields) == 0 {
		return ""
	}
	return " " + strings.Join(fields, " ")
}

// split splits a collapsed text. The pieces concatenate to the text, except that Chars omits the first
// space.
//
// A word is a run of letters and digits. Every other character is a separate piece. An apostrophe between
// letters belongs to the piece before it: l' homme, don' t. Chinese and Japanese have no spaces, so each of
// their characters is a word, but BPE gets the whole run. Marks and joiners belong to the character before
// them, so emoji sequences are not split.
func split(text string, units Units) iter.Seq[string] {
	return func(yield func(string) bool) {
		var last rune
		var lastKind kind
		start, length := 0, 0 // of the current piece; the length does not count the space
		for i, r := range text {
			k := kindOf(r)
			var cut bool
			switch {
			case i == 0:
			case units == Chars, k == kindSpace, length >= maxWord:
				cut = true
			case lastKind == kindSpace, last == zeroWidthJoiner:
			case k == kindExtend:
				k = lastKind
			case k == kindLetter:
				cut = lastKind != kindLetter
			case k == kindIdeograph:
				cut = lastKind != kindIdeograph || units == Words
			case (r == '\'' || r == '’') && unicode.IsLetter(last):
				after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
				cut = !unicode.IsLetter(after)
			default:
				cut = true
			}
			if cut {
				if (units != Chars || start > 0) && !yield(text[start:i]) {
					return
				}
				start, length = i, 0
			}
			last, lastKind = r, k
			if k != kindSpace {
				length++
			}
		}
		if text != "" {
			yield(text[start:])
		}
	}
}

type kind int

const (
	kindSpace kind = iota
	kindLetter
	kindIdeograph
	kindExtend // belongs to the previous character
	kindOther
)

func kindOf(r rune) kind {
	switch {
	case r == ' ':
		return kindSpace
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' {
			return kindLetter
		}
		return kindOther
	case unicode.IsMark(r), r == zeroWidthJoiner, r == zeroWidthNonJoiner, '\U0001F3FB' <= r && r <= '\U0001F3FF': // skin tones
		return kindExtend
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana), r == 'ー': // this mark has no script
		return kindIdeograph
	case unicode.IsLetter(r), unicode.IsNumber(r):
		return kindLetter
	}
	return kindOther
}
