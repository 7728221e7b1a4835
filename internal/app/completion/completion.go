// Package completion writes shell completion scripts. A script lists every command, its flags and their
// possible values, so that completion does not run attn.
package completion

import (
	"embed"
	"io"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

//go:embed *.tmpl
var files embed.FS

// command is a command in a completion script.
type command struct {
	Name, Help string
	Flags      []flag
	Words      []string // possible values of an argument
}

type flag struct {
	Name, Help string
	Takes      string   // placeholder of the value; empty for a flag without a value
	Words      []string // possible values
}

// Write writes the script for bash, zsh or fish.
func Write(w io.Writer, shell string, app *kong.Application) error {
	return write(w, shell, commands(app))
}

func write(w io.Writer, shell string, list []command) error {
	script, err := template.New("").Funcs(template.FuncMap{
		"join":  func(words []string) string { return strings.Join(words, " ") },
		"plain": strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace,
		"zsh":   func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		"fish":  func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" },
	}).ParseFS(files, shell+".tmpl")
	if err != nil {
		return err
	}
	return script.ExecuteTemplate(w, shell+".tmpl", list)
}

// commands returns the commands, including the flags that every command has.
func commands(app *kong.Application) []command {
	var list []command
	for _, node := range app.Leaves(true) {
		c := command{Name: node.Name, Help: short(node.Help)}
		for _, arg := range node.Positional {
			c.Words = append(c.Words, words(arg)...)
		}
		for _, flags := range node.AllFlags(true) {
			for _, f := range flags {
				one := flag{Name: f.Name, Help: short(f.Help), Words: words(f.Value)}
				if !f.IsBool() {
					one.Takes = f.FormatPlaceHolder()
				}
				c.Flags = append(c.Flags, one)
			}
		}
		list = append(list, c)
	}
	return list
}

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
