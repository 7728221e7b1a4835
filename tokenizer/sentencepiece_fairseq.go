package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// XLM-R and CamemBERT number the pieces of a sentencepiece.bpe.model as their programs in
// fairseq did: special tokens first, the pieces behind them, <mask> last.

// fairseqPieces gives the pieces of a model these numbers.
type fairseqPieces struct {
	vocabulary
	pieces  model
	numbers []int // by the piece's number in the file
}

func (m *fairseqPieces) tokenize(out []token, p *piece) ([]token, error) {
	first := len(out)
	out, err := m.pieces.tokenize(out, p)
	for i := range out[first:] {
		tok := &out[first+i]
		tok.id = m.numbers[tok.id]
	}
	return out, err
}

// fairseqClass says which numbers a class of tokenizers gives.
type fairseqClass struct {
	// front are the tokens 0, 1, ….
	front []string
	// shift is added to the numbers of pieces that are not in front.
	shift int
}

var fairseqClasses = map[string]fairseqClass{
	"XLMRobertaTokenizer": {[]string{"<s>", "<pad>", "</s>", "<unk>"}, 1},
	"CamembertTokenizer":  {[]string{"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"}, 4},
}

// fairseqFamilies are the classes of models whose tokenizer_config.json does not say one.
var fairseqFamilies = map[string]string{"xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer"}

// readFairseq makes the tokenizer of a sentencepiece.bpe.model.
func readFairseq(from *folder, data []byte) (*Tokenizer, error) {
	s, err := readSettings(from)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(s.Class, "Fast")
	if name == "" {
		name = fairseqFamilies[from.modelType()]
	}
	class, ok := fairseqClasses[name]
	if !ok {
		return nil, fmt.Errorf("belongs to a tokenizer of class %s, want tokenizer_config.json with tokenizer_class %s, or a tokenizer.json",
			quote.Text(s.Class), strings.Join(sorted(fairseqClasses), " or "))
	}
	if err := s.usual(); err != nil {
		return nil, err
	}
	t, err := pieceTokenizer(data)
	if err != nil {
		return nil, err
	}
	pieces := t.decoder.(*pieceDecoder).model
	if p := t.normalizer.(*pieceNormalizer); s.PrefixSpace != nil && *s.PrefixSpace != p.dummyPrefix {
		return nil, fmt.Errorf("has add_dummy_prefix %t, but tokenizer_config.json add_prefix_space %t", p.dummyPrefix, *s.PrefixSpace)
	}
	m, err := class.number(t.model, pieces)
	if err != nil {
		return nil, err
	}
	t.model = m
	var list []addedToken
	for _, token := range class.front {
		list = append(list, addedToken{ID: m.ids[token], Content: token, Special: true})
	}
	byUse := map[string]numbered{}
	for _, x := range []struct {
		raw   json.RawMessage
		usual string
	}{{s.Bos, "<s>"}, {s.Cls, "<s>"}, {s.Eos, "</s>"}, {s.Sep, "</s>"}, {s.Unknown, "<unk>"}, {s.Pad, "<pad>"}, {s.Mask, "<mask>"}} {
		token, err := specialID(x.raw, x.usual, m)
		if err != nil {
			return nil, err
		}
		if token.Content != x.usual { // the numbers above are those of these names
			return nil, fmt.Errorf("tokenizer_config.json has the special token %s in place of %s, want a tokenizer.json",
				quote.Text(token.Content), x.usual)
		}
		token.LStrip = x.usual == "<mask>"
		byUse[x.usual] = numbered{token.Content, token.ID}
		if !slices.ContainsFunc(list, func(u addedToken) bool { return u.ID == token.ID }) {
			list = append(list, token)
		}
	}
	begin, end := byUse["<s>"].slot(0), byUse["</s>"].slot(0)
	t.post = postProcessor{
		single: []slot{begin, {text: 0}, end},
		pair:   []slot{begin, {text: 0}, end, end, {text: 1}, end},
	}
	if list, err = s.addedTo(from, t.model, list); err != nil {
		return nil, err
	}
	t.decoder.(*pieceDecoder).cleanup = s.Cleanup
	return t, t.setSpecial(list)
}

// number gives the pieces of a file their numbers.
func (c fairseqClass) number(pieces model, file *pieceModel) (*fairseqPieces, error) {
	for id, want := range []string{"<unk>", "<s>", "</s>"} {
		if got, _ := file.token(id); got != want {
			return nil, fmt.Errorf("has the piece %s with number %d, want %s", quote.Text(got), id, want)
		}
	}
	if file.unknown != 0 || file.kinds[1] != controlPiece || file.kinds[2] != controlPiece {
		return nil, errors.New("has other kinds of pieces than one that is unknown and two that control at its beginning")
	}
	n := len(file.tokens)
	m := &fairseqPieces{pieces: pieces, numbers: make([]int, n)}
	ids := make(map[string]int, n+len(c.front)+1)
	for id, token := range c.front {
		ids[token] = id
	}
	mask := "<mask>"
	for id, token := range file.tokens {
		number, there := ids[token]
		switch {
		case token == mask || there && id > 2:
			return nil, fmt.Errorf("has the piece %s with number %d, which stands outside of the pieces in this class",
				quote.Text(token), id)
		case !there:
			number = id + c.shift
			ids[token] = number
		}
		m.numbers[id] = number
	}
	ids[mask] = n + c.shift
	var err error
	m.vocabulary, err = readVocabulary(ids)
	return m, err
}
