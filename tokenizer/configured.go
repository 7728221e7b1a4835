package tokenizer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// Classes of transformers that do not take everything from tokenizer.json.
var (
	bertClasses = []string{
		"BertTokenizer", "ElectraTokenizer", "DistilBertTokenizer", "MPNetTokenizer", "MobileBertTokenizer", "ConvBertTokenizer",
	}
	byteClasses = []string{
		"RobertaTokenizer", "GPT2Tokenizer", "BartTokenizer", "LongformerTokenizer", "DebertaTokenizer", "GPTNeoXTokenizer",
		"CodeGenTokenizer",
	}
	// typedClasses return token types, unless model_input_names leaves them out.
	typedClasses = []string{
		"BertTokenizer", "ElectraTokenizer", "MobileBertTokenizer", "ConvBertTokenizer", "DebertaTokenizer",
		"DebertaV2Tokenizer",
	}
	// modelClasses are the classes of models whose tokenizer_config.json names none.
	modelClasses = map[string]string{
		"bert": "BertTokenizer", "electra": "BertTokenizer", "distilbert": "BertTokenizer", "mpnet": "MPNetTokenizer",
		"roberta": "RobertaTokenizer", "bart": "RobertaTokenizer", "gpt2": "GPT2Tokenizer", "gpt_neox": "GPTNeoXTokenizer",
		"deberta-v2": "DebertaV2Tokenizer", "xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer",
	}
)

// configured applies the files beside a tokenizer.json, as transformers 5 does, and returns t.
//
// Differs: version 4 gives token types to PreTrainedTokenizerFast without model_input_names, too.
func (t *Tokenizer) configured(from *folder) (*Tokenizer, error) {
	s, path, err := from.settings()
	if err != nil {
		return nil, err
	}
	class := cmp.Or(s.class(), modelClasses[from.modelType()])
	bad := func(err error) (*Tokenizer, error) { return nil, &FormatError{path, err} }
	if slices.Contains(bertClasses, class) {
		lower := s.Lower == nil || *s.Lower
		if n, ok := t.normalizer.(*bertNormalizer); ok {
			t.normalizer = &bertNormalizer{n.Clean, s.Chinese == nil || *s.Chinese, s.Accents, lower}
		} else if p := newPiece("A"); s.Lower != nil {
			if t.normalizer != nil {
				t.normalizer.normalize(&p)
			}
			if (p.s == "a") != lower {
				return bad(fmt.Errorf("do_lower_case is %t, but the normalizer of tokenizer.json does otherwise, "+
					"want them to agree", lower))
			}
		}
		for _, name := range []string{"unk", "sep", "pad", "cls", "mask"} {
			text := "[" + strings.ToUpper(name) + "]"
			if raw := s.token(name + "_token"); len(*raw) == 0 && t.hasToken(text) {
				*raw, _ = json.Marshal(text)
			}
		}
	}
	if b, ok := t.preTokenizer.(*byteLevel); ok && slices.Contains(byteClasses, class) {
		own := *b
		own.PrefixSpace = s.PrefixSpace != nil && *s.PrefixSpace
		t.preTokenizer = &own
	}
	if s.Inputs == nil && class != "" && !slices.Contains(typedClasses, class) {
		t.post.untype()
	}
	if err := t.declare(from, s); err != nil {
		return bad(err)
	}
	if s.class() == "NllbTokenizer" { // which places the code of the language, whatever tokenizer.json says
		if t, err = t.in(cmp.Or(s.Source, "eng_Latn"), s.LegacyCode); err != nil {
			return bad(fmt.Errorf("src_lang: %w", err))
		}
	}
	return t, nil
}

func (t *Tokenizer) hasToken(text string) bool {
	_, ok := t.ID(text)
	return ok
}

// declare adds the tokens of the settings to those of tokenizer.json. Flags in added_tokens_decoder override those of
// tokenizer.json. special_tokens_map.json and added_tokens.json only count without it.
func (t *Tokenizer) declare(from *folder, s *settings) error {
	list := slices.SortedFunc(maps.Values(t.added.byID), func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	add := func(token addedToken, override bool) {
		if i := slices.IndexFunc(list, func(u addedToken) bool { return u.Content == token.Content }); i < 0 {
			list = append(list, token)
		} else if override {
			list[i] = token
		}
	}
	declared, err := s.added()
	if err != nil {
		return err
	}
	for _, token := range declared {
		add(token, true)
	}
	if s.Added == nil {
		var old map[string]json.RawMessage
		path, err := from.readIfThere("special_tokens_map.json", &old)
		if err != nil {
			return err
		}
		for _, name := range sorted(old) {
			switch to := s.token(name); {
			case absent(old[name]):
			case to != nil:
				*to = old[name]
			case name == "additional_special_tokens":
				err = s.setSpecial(name, old[name])
			case name == "extra_special_tokens":
				s.Extra = old[name]
			case !strings.HasSuffix(name, "_token"): // other tokens only count in tokenizer_config.json
				err = fmt.Errorf("has the unknown setting %s, want names of special tokens", quote.Text(name))
			}
			if err != nil {
				return &FormatError{path, err}
			}
		}
		var ids map[string]int
		if _, err := from.readIfThere("added_tokens.json", &ids); err != nil {
			return err
		}
		for _, text := range sorted(ids) {
			declared = append(declared, addedToken{ID: ids[text], Content: text, Normalized: true})
		}
		slices.SortFunc(declared, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
		for _, token := range declared {
			add(token, false)
		}
	}
	special, err := s.allSpecial()
	if err != nil {
		return err
	}
	for _, name := range sorted(s.all) { // such as image_token
		var text string
		other := strings.HasSuffix(name, "_token") && s.token(name) == nil
		if other && json.Unmarshal(s.all[name], &text) == nil && text != "" {
			special = append(special, addedToken{Content: text, Special: true})
		}
	}
	for _, token := range special {
		if token.free = true; token.Content != "" { // as in files that have no such token
			add(token, false)
		}
	}
	t.added, err = newAddedTokens(list, t.model, t.normalizer)
	return err
}
