package main

// What a reader copies: a piece of code of a lesson with all that it needs to run.

import (
	"fmt"
	"go/format"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	word = regexp.MustCompile(`(?:^|[^.\w])([A-Za-z_]\w*)`) // no field, method or attribute
	// Comments, the check of an error, and strings, but for those of Python that contain names.
	silent     = regexp.MustCompile(`(?m)(?://|# ).*$|if err != nil \{[^}]*\}|\B"(?:[^"\\\n]|\\.)*"`)
	marker     = regexp.MustCompile(`(?m)^[ \t]*(?://|#) lesson(?:: .*| end)\n|^# Output:\n(?:#.*\n)*`)
	assignment = regexp.MustCompile(`^(?:(?:var|const) )?(\w+(?:, \w+)*) :?= |^var (\w+) `)
	definition = regexp.MustCompile(`^(?:@.*\n)*(?:def|class|func|type) (\w+)`)
	inside     = regexp.MustCompile(`(?m)^ *def \w+\((.*)\)|^ +(\w+(?:, \w+)*) = `) // a function in Python: its own names
	module     = regexp.MustCompile(`^(?:import|from) .*?(\w+)\n`)
	always     = regexp.MustCompile(`^torch\.(?:manual_seed|set_)`)
	never      = regexp.MustCompile(`^(?:print\(|fmt\.Print|"""|if (?:_, )?err :=)|^for .*\n(?:.*\n)* +print\(`)
	function   = regexp.MustCompile(`(?s)func \w+\([^)]*\)[ \w]*\{\n(.*?)(?:\n\t// Output:.*)?\n\}`)
	beginEnd   = regexp.MustCompile(`^\s*(?://|#) lesson(?:: (\w+)| end)`)
	library    = regexp.MustCompile(`(?m)^\t"(.+)"\n`)
)

// statements splits code into the statements that begin in the first column, each with the comments above it and what is
// indented or closed below it. The check of an error belongs to the statement before.
func statements(code string) (list []string) {
	above := false // the last line is a comment or a decorator of what follows
	for line := range strings.Lines(code) {
		begins := !strings.ContainsAny(line[:1], "\n \t)}]") && !strings.HasPrefix(line, "if err != nil")
		if len(list) == 0 || begins && !above {
			list = append(list, "")
		}
		list[len(list)-1] += line
		above = begins && (strings.HasPrefix(line, "//") || line[0] == '#' || line[0] == '@')
	}
	return list
}

// found returns the names in the groups of an expression's matches.
func found(r *regexp.Regexp, code string) (list []string) {
	for _, m := range r.FindAllStringSubmatch(code, -1) {
		for name := range strings.FieldsFuncSeq(strings.Join(m[1:], ","), func(c rune) bool { return strings.ContainsRune(", =", c) }) {
			list = append(list, name)
		}
	}
	return list
}

// needed returns the statements of a piece, and before them those that they need: what defines a name that they use, and
// what may change its value.
func needed(list []string, piece []bool) (kept string) {
	variables, uses := map[string]bool{}, map[string]bool{}
	code := make([]string, len(list))
	for i, s := range list {
		code[i] = strings.TrimLeft(silent.ReplaceAllString(s, ""), "\n")
		for _, name := range found(assignment, code[i]) {
			variables[name] = true
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		defined := slices.Concat(found(definition, code[i]), found(assignment, code[i]), found(module, code[i]))
		used := found(word, code[i])
		if own := found(inside, code[i]); definition.MatchString(code[i]) {
			used = slices.DeleteFunc(used, func(name string) bool { return slices.Contains(own, name) })
		} else if defined != nil {
			_, value, _ := strings.Cut(code[i], "= ")
			used = found(word, value)
		}
		changes := defined == nil && !never.MatchString(code[i]) &&
			slices.ContainsFunc(used, func(name string) bool { return uses[name] && variables[name] })
		if !piece[i] && !changes && !always.MatchString(code[i]) && !slices.ContainsFunc(defined, func(name string) bool { return uses[name] }) {
			continue
		}
		for _, name := range defined {
			delete(uses, name)
		}
		for _, name := range used {
			uses[name] = true
		}
		kept = list[i] + kept
	}
	return kept
}

// marked returns the statements of a program up to the end of a piece, and which of them are the piece: the region NAME,
// the one that its mark "lesson: NAME with OTHER" names, and the next statement that prints.
func marked(list []string, name string) ([]string, []bool) {
	mark := regexp.MustCompile(`lesson: ` + name + `(?: with (\w+))?\n`).FindStringSubmatch(strings.Join(list, ""))
	piece, in, last := make([]bool, len(list)), "", 0
	for i, s := range list {
		for line := range strings.Lines(s) {
			if m := beginEnd.FindStringSubmatch(line); m != nil {
				in = m[1]
			} else if in != "" && line != "\n" && (in == name || slices.Contains(mark, in)) {
				piece[i], last = true, i
			}
		}
	}
	if next := slices.IndexFunc(list[last:], regexp.MustCompile(`(?m)^fmt\.Print`).MatchString); next >= 0 {
		last += next
		piece[last] = true
	}
	return list[:last+1], piece
}

// alone returns a program of a piece of code: the region NAME of a file, or the body of an example function, with the
// data, functions and imports that it needs.
func alone(file, name string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	list := statements(string(data))
	if path.Ext(file) == ".py" {
		return "# pip install torch\n" + marker.ReplaceAllString(needed(marked(list, name)), ""), nil
	}
	at := slices.IndexFunc(list, regexp.MustCompile(`lesson: `+name+`\b|func `+name+`\(\) \{`).MatchString)
	m := function.FindStringSubmatch(list[at])
	body := strings.TrimPrefix(strings.ReplaceAll("\n"+m[1]+"\n", "\n\t", "\n"), "\n")
	if !strings.HasPrefix(name, "Example") {
		body = needed(marked(statements(body), name))
	}
	program := "func main() {\n" + body + "}\n"
	if strings.Contains(body, "return err") {
		program = "func main() {\nif err := run(); err != nil {\nlog.Fatal(err)\n}\n}\n\nfunc run() error {\n" + body + "return nil\n}\n"
	}
	entry := regexp.MustCompile(`(?m)^func (?:main|run)\(`)
	list = append(slices.DeleteFunc(slices.Delete(list, at, at+1), entry.MatchString), program)
	piece := make([]bool, len(list))
	piece[len(list)-1] = true
	program = needed(list, piece)
	imports := [2]string{} // of the standard library, and others
	for _, m := range library.FindAllStringSubmatch(string(data), -1) {
		if base := path.Base(strings.TrimSuffix(m[1], "/v2")); regexp.MustCompile(`\b` + base + `\.`).MatchString(program) {
			imports[strings.Count(m[1], ".")] += m[0]
		}
	}
	program = fmt.Sprintf("// go mod init lesson && go get github.com/attn-go/attn && go run .\n\npackage main\n\nimport (\n%s\n%s)\n\n%s",
		imports[0], imports[1], program)
	code, err := format.Source([]byte(marker.ReplaceAllString(program, "")))
	if err != nil {
		return "", fmt.Errorf("%s: %s does not run alone: %w", file, name, err)
	}
	return string(code), nil
}
