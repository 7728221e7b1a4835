package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// component is a part of a tokenizer.json that says its type.
type component struct {
	where string // "normalizer"
	kind  string // "NFC"
	raw   json.RawMessage
	have  map[string]json.RawMessage
	err   error
}

// openComponent reads the type of a component.
func openComponent(raw json.RawMessage, where string) component {
	c := component{where: where, raw: raw}
	var ok bool
	var err error
	if c.have, ok = readFields(raw); !ok {
		c.have = nil
		err = strictjson.Unmarshal(raw, &c.have)
	}
	if err != nil {
		c.err = fmt.Errorf("%s: %w", where, err)
	} else if err := strictjson.Unmarshal(c.have["type"], &c.kind); err != nil {
		c.err = fmt.Errorf("%s has no type", where)
	}
	return c
}

// unknown is the error of a component that this package does not know.
func (c component) unknown() error {
	if c.err != nil {
		return c.err
	}
	return fmt.Errorf("%s %s is not known", c.where, quote.Text(c.kind))
}

// fail says in which component something is wrong.
func (c component) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", c.where, quote.Name(c.kind), err)
}

// decode reads the settings into v, which embeds typed. Those named must be there; the
// ones that v does not have must not.
func (c component) decode(v any, needed ...string) error {
	for _, name := range needed {
		if _, ok := c.have[name]; !ok {
			return c.fail(fmt.Errorf("has no %s", name))
		}
	}
	if v == nil {
		v = new(typed)
	}
	return c.fail(strictjson.Unmarshal(c.raw, v))
}

// apart returns a setting that is large, and the component without it.
func (c component) apart(name string) (json.RawMessage, component, error) {
	raw, ok := c.have[name]
	if !ok {
		return nil, c, c.fail(fmt.Errorf("has no %s", name))
	}
	rest := c
	rest.have = maps.Clone(c.have)
	delete(rest.have, name)
	var err error
	if rest.raw, err = json.Marshal(rest.have); err != nil {
		return nil, c, c.fail(strictjson.Unmarshal(c.raw, new(map[string]json.RawMessage)))
	}
	return raw, rest, nil
}

// typed is what all components have.
type typed struct {
	Type string `json:"type"`
}

// readAll reads a list of components of a kind.
func readAll[T any](raws []json.RawMessage, read func(json.RawMessage) (T, error)) ([]T, error) {
	all := make([]T, len(raws))
	for i, raw := range raws {
		var err error
		if all[i], err = read(raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// absent reports whether a file leaves something out or says null.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// readPattern reads {"String": "x"} or {"Regex": "x+"}.
func readPattern(raw json.RawMessage) (pattern, error) {
	var p struct{ String, Regex *string }
	if err := strictjson.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case p.String != nil && p.Regex == nil:
		return literal(*p.String), nil
	case p.Regex != nil && p.String == nil:
		return readExpression(*p.Regex)
	}
	return nil, errors.New("pattern, want one of String and Regex")
}

// readRune reads a text of one character.
func readRune(name, s string) (rune, error) {
	chars := []rune(s)
	if len(chars) != 1 {
		return 0, fmt.Errorf("%s is %s, want one character", name, quote.Text(s))
	}
	return chars[0], nil
}

// sorted returns the keys of a map in order, for errors that do not change from run
// to run.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
