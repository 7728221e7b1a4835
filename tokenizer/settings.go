package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// settings are the settings in tokenizer_config.json that affect tokens.
// A file of this kind has dozens of keys, most of which name other files, or settings of Python. Those that are not
// here are read too, and refused if they might change tokens: see configured.go.
type settings struct {
	Class       any             `json:"tokenizer_class"` // of another type in a file that does not need it
	Lower       *bool           `json:"do_lower_case"`
	Accents     *bool           `json:"strip_accents"`
	Chinese     *bool           `json:"tokenize_chinese_chars"`
	PrefixSpace *bool           `json:"add_prefix_space"`
	TrimOffsets *bool           `json:"trim_offsets"`
	Cleanup     bool            `json:"clean_up_tokenization_spaces"`
	Split       bool            `json:"split_special_tokens"`
	AddBos      *bool           `json:"add_bos_token"`
	AddEos      bool            `json:"add_eos_token"`
	Unknown     json.RawMessage `json:"unk_token"`
	Bos         json.RawMessage `json:"bos_token"`
	Eos         json.RawMessage `json:"eos_token"`
	Cls         json.RawMessage `json:"cls_token"`
	Sep         json.RawMessage `json:"sep_token"`
	Pad         json.RawMessage `json:"pad_token"`
	Mask        json.RawMessage `json:"mask_token"`

	Additional []json.RawMessage     `json:"additional_special_tokens"`
	Extra      json.RawMessage       `json:"extra_special_tokens"`
	Added      map[string]addedToken `json:"added_tokens_decoder"`

	Inputs []string `json:"model_input_names"`
	Side   string   `json:"truncation_side"`

	// For models with languages:
	Source     string `json:"src_lang"`
	LegacyCode bool   `json:"legacy_behaviour"`

	// For models of SentencePiece:
	ExtraIDs *int                       `json:"extra_ids"`
	Legacy   *bool                      `json:"legacy"`
	Separate bool                       `json:"separate_vocabs"`
	Library  map[string]json.RawMessage `json:"sp_model_kwargs"`

	all map[string]json.RawMessage // every key
}

// settings reads tokenizer_config.json, if it exists.
func (f *folder) settings() (s *settings, path string, err error) {
	s = &settings{all: map[string]json.RawMessage{}}
	var raw json.RawMessage
	if path, err = f.readIfThere("tokenizer_config.json", &raw); err != nil || raw == nil {
		return s, path, err
	}
	err = cmp.Or(strictjson.Lenient(raw, &s.all), strictjson.Lenient(raw, s))
	switch {
	case err != nil:
	case s.Split:
		err = errors.New("split_special_tokens is true, want false")
	case s.Side != "" && s.Side != "left" && s.Side != "right":
		err = fmt.Errorf("truncation_side is %s, want left or right", quote.Text(s.Side))
	}
	if err != nil {
		err = &FormatError{path, err}
	}
	f.configured = s
	return s, path, err
}

// follow applies the settings that concern tokenizers of every format; s may be nil.
func (t *Tokenizer) follow(s *settings) {
	if s == nil {
		return
	}
	if s.Inputs != nil && !slices.Contains(s.Inputs, "token_type_ids") {
		t.post.untype()
	}
	if s.Side != "" {
		t.side = strings.ToUpper(s.Side[:1]) + s.Side[1:]
	}
}

// class returns the name of the class of transformers, without Fast.
func (s *settings) class() string {
	name, _ := s.Class.(string)
	return strings.TrimSuffix(name, "Fast")
}

// readSettings reads tokenizer_config.json and special_tokens_map.json, if they exist, and returns the class of the
// tokenizer, one of known.
func readSettings(from *folder, known ...string) (s *settings, class string, err error) {
	if s, _, err = from.settings(); err != nil {
		return s, "", err
	}
	var m map[string]json.RawMessage
	path, err := from.readIfThere("special_tokens_map.json", &m)
	if err != nil {
		return s, "", err
	}
	for _, name := range sorted(m) {
		if err := s.setSpecial(name, m[name]); err != nil {
			return s, "", &FormatError{path, err}
		}
	}
	class, err = s.known(from, known...)
	return s, class, err
}

// setSpecial adds a special token of special_tokens_map.json to the settings. Older versions of the library
// stored special tokens only in that file.
func (s *settings) setSpecial(name string, raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	if name == "additional_special_tokens" {
		var list []json.RawMessage
		if err := strictjson.Lenient(raw, &list); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.Additional = append(s.Additional, list...)
		return nil
	}
	to := s.token(name)
	if to == nil {
		s.Additional = append(s.Additional, raw)
		return nil
	}
	here, err := special(raw, "")
	if err != nil {
		return err
	}
	there, err := special(*to, here.Content)
	if err != nil {
		return err
	}
	if here.Content != there.Content {
		return fmt.Errorf("has %s %s, but tokenizer_config.json %s",
			name, quote.Text(here.Content), quote.Text(there.Content))
	}
	*to = raw
	return nil
}

// specialNames are the settings of special tokens.
var specialNames = []string{"unk_token", "bos_token", "eos_token", "cls_token", "sep_token", "pad_token", "mask_token"}

// token returns the setting of a special token; nil if there is none with that name.
func (s *settings) token(name string) *json.RawMessage {
	return map[string]*json.RawMessage{
		"unk_token": &s.Unknown, "bos_token": &s.Bos, "eos_token": &s.Eos, "cls_token": &s.Cls,
		"sep_token": &s.Sep, "pad_token": &s.Pad, "mask_token": &s.Mask,
	}[name]
}

// use is a purpose of a special token, and the default token for it.
type use struct{ name, usual string }

// specials returns the special tokens for some uses, with their ids.
func (s *settings) specials(m interface{ id(string) (int, bool) }, uses ...use) ([]addedToken, error) {
	list := make([]addedToken, len(uses))
	for i, u := range uses {
		raw := *s.token(u.name)
		if string(raw) == "null" {
			return nil, fmt.Errorf("%s of tokenizer_config.json is null, want a text", u.name)
		}
		t, err := special(raw, u.usual)
		if err != nil {
			return nil, err
		}
		var ok bool
		if t.ID, ok = m.id(t.Content); !ok {
			return nil, fmt.Errorf("lacks the special token %s", quote.Text(t.Content))
		}
		list[i] = t
	}
	return list, nil
}

// bounds returns the special tokens of a tokenizer that adds bos_token before and eos_token after each text, as
// add_bos_token and add_eos_token say. A token that is null does not exist; a usual token may be missing if it is not
// added.
func (s *settings) bounds(t *Tokenizer, addBos bool, uses ...use) (list []addedToken, err error) {
	adds := map[string]bool{"bos_token": addBos, "eos_token": s.AddEos}
	slots := map[string]func(text int) slot{}
	for _, u := range uses {
		raw := *s.token(u.name)
		_, there := t.model.id(u.usual)
		if string(raw) == "null" || absent(raw) && !there && !adds[u.name] {
			continue
		}
		one, err := s.specials(t.model, u)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(other addedToken) bool { return other.ID == one[0].ID })
		if i < 0 {
			list = append(list, one...)
		} else if !sameFlags(list[i], one[0]) {
			return nil, fmt.Errorf("uses the special token %s several times, also as %s, with different flags",
				quote.Text(one[0].Content), u.name)
		}
		if adds[u.name] {
			slots[u.name] = one[0].token().slot
		}
	}
	t.post = postProcessor{}
	for text := range 2 {
		if bos := slots["bos_token"]; bos != nil {
			t.post.pair = append(t.post.pair, bos(text))
		}
		t.post.pair = append(t.post.pair, slot{text: text, kind: text})
		if eos := slots["eos_token"]; eos != nil {
			t.post.pair = append(t.post.pair, eos(text))
		}
		if text == 0 {
			t.post.single = slices.Clone(t.post.pair)
		}
	}
	return list, nil
}

// known returns the class of a tokenizer. It returns an error unless the class is one of known. If the
// settings have no class, the family of the model determines it.
func (s *settings) known(from *folder, known ...string) (string, error) {
	class := s.class()
	if class == "" && !slices.Contains(known, "") {
		class = families[from.modelType()]
	}
	if slices.Contains(known, class) {
		return class, nil
	}
	known = slices.DeleteFunc(known, func(name string) bool { return name == "" })
	return "", fmt.Errorf("belongs to a tokenizer of class %s, want tokenizer_config.json with tokenizer_class %s, "+
		"or a tokenizer.json, which AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) of transformers writes for most classes",
		quote.Text(fmt.Sprint(cmp.Or(s.Class, any("")))), strings.Join(known, " or "))
}

// onlyThese returns an error if the files of a directory have special or added tokens that are not in the list.
func (s *settings) onlyThese(from *folder, m model, list []addedToken) error {
	all, err := s.addedTo(from, m, list)
	if err != nil {
		return err
	}
	for _, t := range all {
		known := func(u addedToken) bool { return t.ID == u.ID && sameFlags(t, u) }
		if !slices.ContainsFunc(list, known) {
			return fmt.Errorf("has the added token %s, want a tokenizer.json that describes it",
				quote.Text(t.Content))
		}
	}
	return nil
}

// sameFlags reports whether two tokens match in the same places of a text that is not normalized.
func sameFlags(t, u addedToken) bool {
	return t.SingleWord == u.SingleWord && t.LStrip == u.LStrip && t.RStrip == u.RStrip
}

// special returns a special token from the settings, which is a text, or an object with a text and flags. raw may be
// absent; then the text is usual.
func special(raw json.RawMessage, usual string) (addedToken, error) {
	t := addedToken{Content: usual}
	if !absent(raw) && json.Unmarshal(raw, &t.Content) != nil {
		t.Content = ""
		if err := json.Unmarshal(raw, &t); err != nil || t.Content == "" {
			return t, fmt.Errorf("the settings have a special token %s, want a text", quote.JSON(raw))
		}
	}
	t.Special = true
	return t, nil
}

// stripsMask reports whether <mask> includes the white space before it: unless the settings have flags.
func (s *settings) stripsMask(t addedToken) bool {
	return t.LStrip || !bytes.HasPrefix(s.Mask, []byte("{"))
}
