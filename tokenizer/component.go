package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// component is an element of a tokenizer.json with a type.
type component struct {
	stage string // "normalizer"
	kind  string // "NFC"
	have  map[string]json.RawMessage
}

// stage reads the components of one stage. Stages are results of functions: as variables they would be part of every
// program with a tokenizer, together with all components, even if it reads no tokenizer.json.
type stage[T any] struct {
	name  string // "normalizer"
	parts string // "normalizers": the setting of Sequence
	join  func(parts []T) (T, error)
	kinds map[string]kind[T]
	guess func(have map[string]json.RawMessage) (kind string) // returns the type of components without one; may be nil
}

// A kind makes a component of one type from its settings.
type kind[T any] func(have map[string]json.RawMessage) (T, error)

// fixed is a kind without settings.
func fixed[T any](t T) kind[T] {
	return func(have map[string]json.RawMessage) (T, error) { return t, unknownField(have) }
}

// from is a kind whose settings are the tagged fields of a struct.
func from[S, T any](finish func(S) (T, error)) kind[T] {
	return func(have map[string]json.RawMessage) (t T, err error) {
		var s S
		if err = decode(have, &s); err == nil {
			t, err = finish(s)
		}
		return t, err
	}
}

// as is a kind whose settings are the tagged fields of the component itself. usual returns a pointer to a new component
// with the settings that may be absent.
func as[T any](usual func() T) kind[T] {
	return func(have map[string]json.RawMessage) (T, error) {
		t := usual()
		return t, decode(have, t)
	}
}

// deepest is the maximum number of sequences within each other. Each is read again for every level.
const deepest = 8

// read reads a component within a number of sequences.
func (s stage[T]) read(raw json.RawMessage, depth int) (t T, err error) {
	c := component{stage: s.name}
	if c.have, err = readFields(raw); err != nil {
		return t, fmt.Errorf("%s: %w", s.name, err)
	}
	if strictjson.Unmarshal(c.have["type"], &c.kind) != nil {
		if s.guess != nil {
			c.kind = s.guess(c.have)
		}
		if c.kind == "" {
			return t, fmt.Errorf("%s has no type", s.name)
		}
	}
	if c.kind == "Sequence" && s.join != nil {
		return s.readSequence(c, depth)
	}
	kind, ok := s.kinds[c.kind]
	if !ok {
		return t, fmt.Errorf("%s %s is not supported", c.stage, quote.Text(c.kind))
	}
	delete(c.have, "type")
	t, err = kind(c.have)
	return t, c.fail(err)
}

// readSequence reads components that run one after the other.
func (s stage[T]) readSequence(c component, depth int) (t T, err error) {
	if depth == deepest {
		return t, c.fail(fmt.Errorf("is nested %d levels deep, want less", depth))
	}
	var raws []json.RawMessage
	switch err := strictjson.Unmarshal(c.have[s.parts], &raws); {
	case c.have[s.parts] == nil:
		return t, c.fail(fmt.Errorf("has no %s", s.parts))
	case err != nil:
		return t, c.fail(fmt.Errorf("%s: %w", s.parts, err))
	case len(c.have) > 2:
		delete(c.have, "type")
		delete(c.have, s.parts)
		return t, c.fail(unknownField(c.have))
	}
	parts := make([]T, len(raws))
	for i, raw := range raws {
		if parts[i], err = s.read(raw, depth+1); err != nil {
			return t, err
		}
	}
	t, err = s.join(parts)
	return t, c.fail(err)
}

// fail adds the component to an error.
func (c component) fail(err error) error {
	return within(c.stage+" "+quote.Name(c.kind), err)
}

// A setting reads itself from JSON, which for large settings is faster than package json.
type setting interface {
	read(raw json.RawMessage) error
}

// decode reads settings into the tagged fields of the struct that v points to. Fields without omitempty are
// required. Settings without a field are errors.
func decode(have map[string]json.RawMessage, v any) error {
	rest := maps.Clone(have)
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		name, optional := strings.CutSuffix(s.Type().Field(i).Tag.Get("json"), ",omitempty")
		if name == "" {
			continue
		}
		raw, ok := have[name]
		delete(rest, name)
		if !ok {
			if !optional {
				return fmt.Errorf("has no %s", name)
			}
			continue
		}
		var err error
		switch to := s.Field(i).Addr().Interface().(type) {
		case *json.RawMessage:
			*to = raw
		case setting:
			err = to.read(raw)
		default:
			err = strictjson.Unmarshal(raw, to)
		}
		if err != nil {
			return inField(name, err)
		}
	}
	return unknownField(rest)
}

// inField adds the name of the setting to an error.
func inField(name string, err error) error {
	what, inner := strings.CutPrefix(err.Error(), `field "`)
	switch {
	case inner: // in an object that is the setting
		return errors.New(`field "` + name + "." + what)
	case strings.HasPrefix(what, "has "):
		return fmt.Errorf("field %s %w", quote.Text(name), err)
	case strings.HasPrefix(what, "is ") || strings.HasPrefix(what, `"`):
		return fmt.Errorf("%s %w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// unknownField returns an error if any settings remain.
func unknownField(rest map[string]json.RawMessage) error {
	if len(rest) == 0 {
		return nil
	}
	return fmt.Errorf("unknown field %s", quote.Text(sorted(rest)[0]))
}

// readStage reads a component that may be absent.
func readStage[T any](s stage[T], raw json.RawMessage, to *T) (err error) {
	if !absent(raw) {
		*to, err = s.read(raw, 0)
	}
	return err
}

// within adds a part of a file to an error.
func within(part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", part, err)
}

// readSetting reads an object that may be absent.
func readSetting[T any](name string, raw json.RawMessage, to **T, check func(*T) error) error {
	if absent(raw) {
		return nil
	}
	*to = new(T)
	err := strictjson.Unmarshal(raw, *to)
	if err == nil {
		err = check(*to)
	}
	return within(name, err)
}

// absent reports whether a value is missing or null.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// place is a pattern at which a text is split or replaced: {"String": "x"} or {"Regex": "x+"}.
type place struct{ pattern }

func (p *place) read(raw json.RawMessage) (err error) {
	var v struct{ String, Regex *string }
	switch err := strictjson.Unmarshal(raw, &v); {
	case err != nil:
		return err
	case v.String != nil && v.Regex == nil:
		p.pattern = literal(*v.String)
		return nil
	case v.Regex == nil || v.String != nil:
		return errors.New("want one of String and Regex")
	}
	p.pattern, err = readExpression(*v.Regex)
	return err
}

// char is a text of exactly one character.
type char string

func (c *char) read(raw json.RawMessage) error {
	var s string
	if err := strictjson.Unmarshal(raw, &s); err != nil {
		return err
	}
	if *c = char(s); len([]rune(s)) != 1 {
		return fmt.Errorf("is %s, want one character", quote.Text(s))
	}
	return nil
}

// sorted returns the keys of a map in order, so that errors are deterministic.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
