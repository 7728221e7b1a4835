package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/attn-go/attn/internal/quote"
)

// vocabulary maps tokens to ids and back.
type vocabulary struct {
	ids    map[string]int
	tokens []string
	has    []bool // by id: ids may be missing
}

func (v *vocabulary) read(raw json.RawMessage) error {
	ids, err := readIDs(raw)
	if err == nil {
		*v, err = newVocabulary(ids)
	}
	return err
}

// newVocabulary checks the ids of tokens.
// Ids need not be consecutive: some files leave out numbers. But two tokens with one id would be the same in what a
// model writes, so they are refused.
func newVocabulary(ids map[string]int) (vocabulary, error) {
	limit := 16*len(ids) + 4096 // limits memory, because a file may have any id
	size := 0
	for token, id := range ids {
		if id < 0 || id > limit {
			return vocabulary{}, fmt.Errorf("token %s has id %d in a vocabulary of %d tokens", quote.Text(token), id, len(ids))
		}
		size = max(size, id+1)
	}
	v := vocabulary{ids, make([]string, size), make([]bool, size)}
	for token, id := range ids {
		if v.has[id] {
			a, b := min(token, v.tokens[id]), max(token, v.tokens[id])
			return vocabulary{}, fmt.Errorf("tokens %s and %s both have id %d", quote.Text(a), quote.Text(b), id)
		}
		v.tokens[id], v.has[id] = token, true
	}
	return v, nil
}

func (v *vocabulary) id(token string) (int, bool) {
	id, ok := v.ids[token]
	return id, ok
}

// idOr returns the id of a token, or none.
func (v *vocabulary) idOr(token string) int {
	if id, ok := v.ids[token]; ok {
		return id
	}
	return none
}

func (v *vocabulary) token(id int) (string, bool) {
	if id < 0 || id >= len(v.tokens) || !v.has[id] {
		return "", false
	}
	return v.tokens[id], true
}

func (v *vocabulary) size() int { return len(v.ids) }
