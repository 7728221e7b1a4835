package main

// The code of the lessons: Go and PyTorch are copied from programs that run and are tested, and the site shows them
// behind two tabs.

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// codeComment is a comment that names a region of a program, with the code below it, and the same in PyTorch.
var codeComment = regexp.MustCompile("(?m)^<!-- code: (\\S+) (\\S+) -->\n\n```go\n(?s:.*?)^```\n" +
	"(\n<details><summary>PyTorch</summary>\n(?s:.*?)^</details>\n)?")

// updateLessons copies the marked regions of the examples into docs/lessons.md and its translations.
func updateLessons(root string) error {
	for _, in := range languages {
		path := filepath.Join(root, in.file(lessonsFile))
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if text, err = filledCode(root, text); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// filledCode returns a text in which each block of code is the region that the comment before it names, and below it the
// same in PyTorch: the region with that name in the lesson's program in examples/torch, and its output.
func filledCode(root string, text []byte) ([]byte, error) {
	var failed error
	heads := lessonHeading.FindAllIndex(text, -1)
	var out bytes.Buffer
	end := 0
	for _, at := range codeComment.FindAllSubmatchIndex(text, -1) {
		file, name := string(text[at[2]:at[3]]), string(text[at[4]:at[5]])
		code, _, err := region(filepath.Join(root, filepath.FromSlash(file)), name)
		failed = errors.Join(failed, err)
		page := 0
		for page+1 < min(len(heads), len(lessonPages)) && heads[page+1][0] < at[0] {
			page++
		}
		torch := filepath.Join(root, "examples", "torch", lessonPages[page].Name+".py")
		same, output, err := region(torch, name)
		failed = errors.Join(failed, err)
		out.Write(text[end:at[0]])
		fmt.Fprintf(&out, "<!-- code: %s %s -->\n\n```go\n%s```\n\n<details><summary>PyTorch</summary>\n\n```python\n%s```\n", file, name, code, same)
		if output != "" {
			fmt.Fprintf(&out, "\n```text\n%s```\n", output)
		}
		out.WriteString("\n</details>\n")
		end = at[1]
	}
	out.Write(text[end:])
	return out.Bytes(), failed
}

// torchBlock is a block of Go and the same in PyTorch.
var torchBlock = regexp.MustCompile(`<!-- code: (\S+) (\S+) -->\n(<pre tabindex="0"><code>(?:[^<]|<span[^>]*>|</span>)*</code></pre>\n)` +
	`<details><summary>PyTorch</summary>\n((?s:.*?))</details>`)

// tabs puts Go and PyTorch of a lesson behind two tabs, with a button that copies what runs alone, one for the whole
// program, and links to the programs, which the page contains once: whole says which. Without a script, both are shown.
func (b *build) tabs(l lesson, in language, page string, whole map[string]bool) (string, error) {
	var failed error
	page = torchBlock.ReplaceAllStringFunc(page, func(block string) string {
		m := torchBlock.FindStringSubmatch(block)
		has := "both"
		if strings.HasSuffix(m[1], "_test.go") { // an example is a whole program
			has, whole[m[1]] = "torch", true
		}
		out := fmt.Sprintf(`<div class="code"><div class="tabs" role="group" aria-label="%s"><button type="button" aria-pressed="true" data-code="go">Go</button>`+
			`<button type="button" aria-pressed="false" data-code="torch">PyTorch</button><button type="button" data-copied="%s">%s</button>`+
			`<button type="button" data-copied="%[2]s" data-whole=%[4]q>%[5]s</button></div>`+"\n", in.text("Code"), in.text("Copied"), in.text("Copy"), has, in.text("Whole program"))
		for i, file := range []string{m[1], "examples/torch/" + l.Name + ".py"} {
			path := filepath.Join(b.root, filepath.FromSlash(file))
			code, err := alone(path, m[2])
			program, err2 := os.ReadFile(path)
			failed = errors.Join(failed, err, err2)
			out += fmt.Sprintf("<div class=%q>\n%s<p class=\"from small\"><a href=\"%s%s\">%[4]s</a></p>\n<template class=\"alone\" data-name=%[5]q>%[6]s</template>\n",
				[]string{"go", "torch"}[i], m[3+i], repository, file, l.Name+"-"+m[2]+filepath.Ext(file), html.EscapeString(code))
			if !whole[file] {
				out += fmt.Sprintf("<template data-file=%q>%s</template>\n", file, html.EscapeString(string(program)))
			}
			whole[file] = true
			out += "</div>\n"
		}
		return out + "</div>\n"
	})
	return page, failed
}

// printed matches the comment below a region of a Python program with the lines that it prints.
var (
	printed     = regexp.MustCompile(`\A\n*# Output:\n((?:#.*\n)*)`)
	commentSign = regexp.MustCompile(`(?m)^# ?`)
)

// region returns the lines of a file between "// lesson: NAME" and "// lesson end", or the body of the example function
// NAME without its output, without their common indentation. output is what a Python program prints there.
func region(path, name string) (code, output string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	text, begin, end := string(data), `[ \t]*(?://|#) lesson: `+name+`(?: with \w+)?`, `[ \t]*(?://|#) lesson end`
	if strings.HasPrefix(name, "Example") && filepath.Ext(path) == ".go" {
		begin, end = `func `+name+`\(\) \{`, `(?:\t// Output:|\})`
	}
	found := regexp.MustCompile(`(?ms)^`+begin+`\n(.+?)^`+end+`\n`).FindAllStringSubmatchIndex(text, -1)
	if len(found) != 1 {
		return "", "", fmt.Errorf("%s: region %s is missing, has no end or is marked twice", path, name)
	}
	if m := printed.FindStringSubmatch(text[found[0][1]:]); m != nil {
		output = commentSign.ReplaceAllString(m[1], "")
	}
	code = text[found[0][2]:found[0][3]]
	indent := code[:len(code)-len(strings.TrimLeft(code, "\t "))]
	code = strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n"+indent, "\n"), "\n")
	return strings.ReplaceAll(code, "\t", "    "), output, nil
}
