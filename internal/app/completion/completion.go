// Package completion writes shell completion scripts. A script lists every command, its flags and their
// possible values, so that completion does not run attn.
package completion

import (
	"embed"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

//go:embed *.tmpl
var files embed.FS

// Write writes the script for bash, zsh or fish.
func Write(w io.Writer, shell string, app *kong.Application) error {
	script, err := template.New("").Funcs(template.FuncMap{
		"join":  func(words []string) string { return strings.Join(words, " ") },
		"plain": strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace,
		"zsh":   func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		"fish":  func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" },
		"flags": func(n *kong.Node) []*kong.Flag { return slices.Concat(n.AllFlags(true)...) }, // with those of every command
		"takes": takes, "words": words, "short": short,
	}).ParseFS(files, shell+".tmpl")
	if err != nil {
		return err
	}
	return script.ExecuteTemplate(w, shell+".tmpl", app.Leaves(true))
}

// takes returns the placeholder of a flag's value, or "" for a flag without a value.
func takes(f *kong.Flag) string {
	if f.IsBool() {
		return ""
	}
	return f.FormatPlaceHolder()
}

// words returns the possible values of a flag or an argument.
func words(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// short returns the first clause of a help text.
func short(help string) string {
	help, _, _ = strings.Cut(help, ". ")
	help, _, _ = strings.Cut(help, ";")
	return strings.TrimSuffix(help, ".")
}
