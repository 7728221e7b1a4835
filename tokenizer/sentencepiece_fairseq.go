package tokenizer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// XLM-R and CamemBERT number the pieces of a sentencepiece.bpe.model like their programs in fairseq did:
// special tokens first, then the pieces, then <mask>.

// fairseqClass has the numbering of a class of tokenizers.
type fairseqClass struct {
	// front are the first tokens, numbered from 0.
	front []string
	// shift is added to the numbers of pieces that are not in front.
	shift int
}

var fairseqClasses = map[string]fairseqClass{
	"XLMRobertaTokenizer": {[]string{"<s>", "<pad>", "</s>", "<unk>"}, 1},
	"CamembertTokenizer":  {[]string{"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"}, 4},
}

// specials renumbers the pieces, and adds <s> and </s> around texts.
func (c fairseqClass) specials(s *settings, t *Tokenizer) ([]addedToken, error) {
	m, err := c.number(t.model, t.decoder.(*pieceDecoder).model)
	if err != nil {
		return nil, err
	}
	t.model = m
	uses := []use{
		{"bos_token", "<s>"}, {"cls_token", "<s>"}, {"eos_token", "</s>"}, {"sep_token", "</s>"},
		{"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"mask_token", "<mask>"},
	}
	all, err := s.specials(m, uses...)
	if err != nil {
		return nil, err
	}
	var list []addedToken
	for _, token := range c.front {
		list = append(list, addedToken{ID: m.ids[token], Content: token, Special: true})
	}
	for i, token := range all {
		if token.Content != uses[i].usual { // the numbers above belong to these names
			return nil, fmt.Errorf("tokenizer_config.json has the special token %s in place of %s, "+
				"want a tokenizer.json", quote.Text(token.Content), uses[i].usual)
		}
		if uses[i].name == "mask_token" {
			token.LStrip = s.stripsMask(token)
		}
		if i := slices.IndexFunc(list, func(u addedToken) bool { return u.ID == token.ID }); i >= 0 {
			list[i] = token
		} else {
			list = append(list, token)
		}
	}
	t.post = robertaTemplate(all[0].token(), all[2].token())
	return list, nil
}

// number maps the pieces of a file to their numbers in the vocabulary.
func (c fairseqClass) number(pieces model, file *pieceModel) (*renumbered, error) {
	for id, want := range []string{"<unk>", "<s>", "</s>"} {
		if got, _ := file.token(id); got != want {
			return nil, fmt.Errorf("has the piece %s with number %d, want %s", quote.Text(got), id, want)
		}
	}
	if file.unknown != 0 || file.pieces[1].kind != controlPiece || file.pieces[2].kind != controlPiece {
		return nil, errors.New("begins with pieces of other kinds, want an unknown piece and two control pieces")
	}
	n := len(file.tokens)
	numbers := make([]int, n)
	m := &renumbered{pieces: pieces, number: func(piece token) int { return numbers[piece.id] }}
	ids := make(map[string]int, n+len(c.front)+1)
	for id, token := range c.front {
		ids[token] = id
	}
	mask := "<mask>"
	for id, token := range file.tokens {
		number, there := ids[token]
		switch {
		case token == mask || there && id > 2:
			return nil, fmt.Errorf("has the piece %s with number %d, which is not allowed in this class",
				quote.Text(token), id)
		case !there:
			number = id + c.shift
			ids[token] = number
		}
		numbers[id] = number
	}
	ids[mask], m.unknown = n+c.shift, numbers[0]
	var err error
	m.vocabulary, err = newVocabulary(ids)
	return m, err
}
