// Package flags extends the parser of command lines with requirements between flags, which are tags of
// their fields, and with messages in attn's form.
package flags

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/quote"
)

// Check checks a command line by the tags of its flags and arguments:
//
//	want:"1 to 1000"       a range of numbers, of every item of a list: "at least 1", "at most 9",
//	                       "more than 0", "1 to 9", "a finite number", or several with " and "
//	needs:"model"          requires --model; "a,b" requires both, "a|b" at least one of them
//	excludes:"head,all"    cannot be used with either flag; "mean=layers" is --mean with that value
//	either:"source"        exactly one of the flags with this tag must be given
//	unless:"per-line"      required unless --per-line is given
//	filled:""              a text that is not empty
//
// Names are without dashes. Only given flags are checked; a flag with the value false is not given. An
// empty path or list is an error.
func Check(parsed *kong.Context) error {
	line := given(parsed)
	for _, v := range line.present(line.command) {
		if err := notEmpty(v); err != nil {
			return err
		}
	}
	for _, v := range line.command {
		group := slices.DeleteFunc(slices.Clone(line.command), func(other *kong.Value) bool {
			return other.Tag.Get("either") != v.Tag.Get("either")
		})
		if v.Tag.Get("either") != "" && len(line.present(group)) != 1 {
			return fmt.Errorf("want either %s", Listed(names(group), "or"))
		}
	}
	for _, v := range line.command {
		if other := v.Tag.Get("unless"); other != "" && !line.has(v.Name) && !line.has(other) {
			return fmt.Errorf("missing flags: %s=%s", Name(v), v.Tag.PlaceHolder)
		}
	}
	for _, v := range line.present(line.command) {
		for _, check := range []func(*kong.Value) error{wanted, line.needed, line.excluded} {
			if err := check(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Values returns the flags and arguments of a command, or nil if command is nil.
func Values(command *kong.Node) []*kong.Value {
	if command == nil {
		return nil
	}
	list := slices.Clone(command.Positional)
	for _, f := range command.Flags {
		list = append(list, f.Value)
	}
	return list
}

// Given returns the flags and arguments that are on a command line.
func Given(parsed *kong.Context) []*kong.Value {
	line := given(parsed)
	return line.present(line.command)
}

// Name returns the name of a flag or an argument in messages.
func Name(v *kong.Value) string {
	if v.Flag != nil {
		return "--" + v.Name
	}
	return "a " + v.Name
}

func names(values []*kong.Value) []string {
	var list []string
	for _, v := range values {
		list = append(list, Name(v))
	}
	return list
}

// Texts returns the items of a value as texts.
func Texts(v reflect.Value) (list []string) {
	v = reflect.Indirect(v)
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			list = append(list, Texts(v.Index(i))...)
		}
	default:
		list = []string{fmt.Sprint(v)}
	}
	return list
}

func text(v *kong.Value) string { return strings.Join(Texts(v.Target), ",") }

// commandLine is a command with its given flags and arguments by name.
type commandLine struct {
	command []*kong.Value
	given   map[string]*kong.Value
}

func given(parsed *kong.Context) commandLine {
	line := commandLine{Values(parsed.Selected()), map[string]*kong.Value{}}
	for _, at := range parsed.Path {
		v := at.Positional
		if at.Flag != nil {
			v = at.Flag.Value
		}
		if v != nil && !(v.IsBool() && text(v) == "false") {
			line.given[v.Name] = v
		}
	}
	return line
}

// present returns the values that are on the command line.
func (l commandLine) present(values []*kong.Value) []*kong.Value {
	return slices.DeleteFunc(slices.Clone(values), func(v *kong.Value) bool { return !l.has(v.Name) })
}

// has reports whether a flag is given. For "name=value", it reports whether it has this value.
func (l commandLine) has(condition string) bool {
	name, value, valued := strings.Cut(condition, "=")
	v := l.given[name]
	return v != nil && (!valued || text(v) == value)
}

// said returns a condition in the form of a command line.
func (l commandLine) said(condition string) string {
	name, value, _ := strings.Cut(condition, "=")
	at := slices.IndexFunc(l.command, func(v *kong.Value) bool { return v.Name == name })
	return strings.TrimSpace(Name(l.command[at]) + " " + value)
}

func (l commandLine) needed(v *kong.Value) error {
	const all, any = ",", "|"
	sep, word := all, "and"
	if strings.Contains(v.Tag.Get("needs"), any) {
		sep, word = any, "or"
	}
	others := split(v, "needs", sep)
	missing := slices.DeleteFunc(slices.Clone(others), l.has)
	if len(missing) == 0 || sep == any && len(missing) < len(others) {
		return nil
	}
	for i := range others {
		others[i] = l.said(others[i])
	}
	return fmt.Errorf("%s requires %s", Name(v), Listed(others, word))
}

func (l commandLine) excluded(v *kong.Value) error {
	for _, other := range split(v, "excludes", ",") {
		if l.has(other) {
			return fmt.Errorf("%s and %s cannot be used together", Name(v), l.said(other))
		}
	}
	return nil
}

// split returns the items of a tag.
func split(v *kong.Value, tag, sep string) []string {
	if v.Tag.Get(tag) == "" {
		return nil
	}
	return strings.Split(v.Tag.Get(tag), sep)
}

// IsPath reports whether a value is a path or a list of paths.
func IsPath(v *kong.Value) bool {
	return slices.Contains([]string{"FILE", "DIR", "GLOB"}, v.Tag.PlaceHolder)
}

// notEmpty rejects an empty path, most often from an unset variable of a script, and an empty list.
func notEmpty(v *kong.Value) error {
	items := Texts(v.Target)
	switch {
	case IsPath(v) && slices.Contains(items, ""):
		name := Name(v)
		if v.Flag == nil {
			name = v.Tag.PlaceHolder
		}
		return fmt.Errorf("%s is empty, want a path", name)
	case v.Tag.Has("filled") && slices.Contains(items, ""):
		return fmt.Errorf("%s is empty, want a text", Name(v))
	case len(items) == 0:
		return fmt.Errorf("%s needs a value", Name(v))
	}
	return nil
}

// formats are the formats of pictures, tables and graphs by the extension of their files. A flag that writes a file
// and has such a name writes that format.
var formats = []string{"svg", "png", "html", "csv", "json", "npy", "webp", "gif", "jpg", "jpeg", "pdf", "onnx"}

// CheckFormats returns an error if a flag names a file with the extension of another format than it writes.
func CheckFormats(parsed *kong.Context) error {
	line := given(parsed)
	writes := func(v *kong.Value) bool { return v.Tag.Has("writes") && slices.Contains(formats, v.Name) }
	for _, v := range line.present(line.command) {
		format := strings.ToLower(strings.TrimPrefix(filepath.Ext(text(v)), "."))
		if !writes(v) || format == v.Name || !slices.Contains(formats, format) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(line.command), func(other *kong.Value) bool { return other == v || !writes(other) })
		known := ""
		if len(others) > 0 {
			known = "; other formats: " + Listed(names(others), "and")
		}
		return Errorf("%s %s, want a name that ends in .%s%s", Name(v), quote.Shell(text(v)), v.Name, known)
	}
	return nil
}

func wanted(v *kong.Value) error {
	want := v.Tag.Get("want")
	if want == "" {
		return nil
	}
	for _, item := range Texts(v.Target) {
		for _, condition := range strings.Split(want, " and ") {
			if !holds(condition, number(item)) {
				return fmt.Errorf("%s %s, want %s", Name(v), text(v), want)
			}
		}
	}
	return nil
}

// number parses a number, or a duration in seconds.
func number(text string) float64 {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err) // the tag is wrong
	}
	return d.Seconds()
}

// Reports whether a number meets a condition. NaN and infinities meet none.
func holds(condition string, x float64) bool {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	if low, high, isRange := strings.Cut(condition, " to "); isRange {
		return number(low) <= x && x <= number(high)
	}
	if condition == "a finite number" {
		return true
	}
	if bound, ok := strings.CutPrefix(condition, "at least "); ok {
		return x >= number(bound)
	}
	if bound, ok := strings.CutPrefix(condition, "at most "); ok {
		return x <= number(bound)
	}
	return x > number(strings.TrimPrefix(condition, "more than "))
}
