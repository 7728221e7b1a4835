package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCommand) Help() string {
	return `Examples:

  source <(attn completion bash)                                   in ~/.bashrc
  source <(attn completion zsh)                                    in ~/.zshrc, after compinit
  attn completion fish > ~/.config/fish/completions/attn.fish`
}

// Run writes a script that knows every command, its flags, and what they take. It
// runs nothing while somebody types.
func (cmd *completionCommand) Run(parsed *kong.Context, c console) error {
	leaves := completed(parsed.Model)
	script := map[string]func([]completedCommand) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[cmd.Shell]
	_, err := io.WriteString(c.out, script(leaves))
	return err
}

// completedCommand is what a shell knows of a command.
type completedCommand struct {
	name, help string
	flags      []completedFlag
	words      []string // that an argument may be
}

type completedFlag struct {
	name, help string
	takes      string   // the placeholder of the value; empty if there is none
	words      []string // that the value may be
}

// file reports whether the value is the name of a file or directory.
func (f completedFlag) file() bool { return f.takes == "FILE" || f.takes == "DIR" }

// completed returns the commands, with flags that every command has.
func completed(app *kong.Application) []completedCommand {
	var list []completedCommand
	for _, node := range app.Leaves(true) {
		c := completedCommand{name: node.Name, help: short(node.Help)}
		for _, arg := range node.Positional {
			c.words = append(c.words, words(arg)...)
		}
		for _, flags := range node.AllFlags(true) {
			for _, f := range flags {
				flag := completedFlag{name: f.Name, help: short(f.Help), words: words(f.Value)}
				if !f.IsBool() {
					flag.takes = f.FormatPlaceHolder()
				}
				c.flags = append(c.flags, flag)
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

// bashScript completes values by the word before, which bash parts from "=".
func bashScript(list []completedCommand) string {
	var names []string
	var flags, values strings.Builder
	for _, c := range list {
		names = append(names, c.name)
		var all []string
		for _, f := range c.flags {
			all = append(all, "--"+f.name)
			switch {
			case f.words != nil:
				fmt.Fprintf(&values, "    '%s --%s') words='%s' ;;\n", c.name, f.name, strings.Join(f.words, " "))
			case f.takes != "": // FILE and DIR too: bash then offers files
				fmt.Fprintf(&values, "    '%s --%s') return ;;\n", c.name, f.name)
			}
		}
		fmt.Fprintf(&flags, "      %s) words='%s' ;;\n", c.name, strings.Join(append(all, c.words...), " "))
	}
	return `# Completion of attn for bash: source <(attn completion bash)
_attn() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=''
  COMPREPLY=()
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '` + strings.Join(names, " ") + ` --help --version' -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]} $before" in
` + values.String() + `    *) case "${COMP_WORDS[1]}" in
` + flags.String() + `    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _attn attn
`
}

// zshScript leaves the work to _arguments.
func zshScript(list []completedCommand) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	plain := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	var names, cases strings.Builder
	for _, c := range list {
		fmt.Fprintf(&names, "    %s\n", quote(c.name+":"+plain.Replace(c.help)))
		fmt.Fprintf(&cases, "    %s) _arguments", c.name)
		for _, f := range c.flags {
			spec := "--" + f.name
			if f.takes != "" {
				spec += "="
			}
			spec += "[" + plain.Replace(f.help) + "]"
			switch {
			case f.words != nil:
				spec += ":" + f.takes + ":(" + strings.Join(f.words, " ") + ")"
			case f.takes == "DIR":
				spec += ":DIR:_files -/"
			case f.file():
				spec += ":FILE:_files"
			case f.takes != "":
				spec += ":" + plain.Replace(f.takes) + ": "
			}
			fmt.Fprintf(&cases, " \\\n      %s", quote(spec))
		}
		if c.words != nil {
			fmt.Fprintf(&cases, " \\\n      '1: :(%s)'", strings.Join(c.words, " "))
		}
		cases.WriteString(" ;;\n")
	}
	return `#compdef attn
# Completion of attn for zsh: source <(attn completion zsh)
_attn() {
  local -a commands=(
` + names.String() + `  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
` + cases.String() + `  esac
}
if [[ $funcstack[1] == _attn ]]; then
  _attn "$@"
else
  compdef _attn attn
fi
`
}

// fishScript is a list of rules.
func fishScript(list []completedCommand) string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	var b strings.Builder
	b.WriteString("# Completion of attn for fish: attn completion fish > ~/.config/fish/completions/attn.fish\ncomplete -c attn -f\n")
	for _, c := range list {
		fmt.Fprintf(&b, "complete -c attn -n __fish_use_subcommand -a %s -d %s\n", c.name, quote(c.help))
		when := quote("__fish_seen_subcommand_from " + c.name)
		if c.words != nil {
			fmt.Fprintf(&b, "complete -c attn -n %s -a %s\n", when, quote(strings.Join(c.words, " ")))
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c attn -n %s -l %s -d %s", when, f.name, quote(f.help))
			switch {
			case f.words != nil:
				fmt.Fprintf(&b, " -x -a %s", quote(strings.Join(f.words, " ")))
			case f.file():
				b.WriteString(" -r -F")
			case f.takes != "":
				b.WriteString(" -x")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
