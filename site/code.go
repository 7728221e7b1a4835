package main

// The code of the lessons: Go and PyTorch are copied from programs that run and are tested, and the site shows them
// behind two tabs.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		code, err := region(filepath.Join(root, filepath.FromSlash(file)), name)
		failed = errors.Join(failed, err)
		page := 0
		for page+1 < min(len(heads), len(lessonPages)) && heads[page+1][0] < at[0] {
			page++
		}
		torch := filepath.Join(root, "examples", "torch", lessonPages[page].Name+".py")
		same, err := region(torch, name)
		failed = errors.Join(failed, err)
		out.Write(text[end:at[0]])
		fmt.Fprintf(&out, "<!-- code: %s %s -->\n\n```go\n%s```\n\n<details><summary>PyTorch</summary>\n\n```python\n%s```\n", file, name, code, same)
		result, err := outputOf(torch, name)
		failed = errors.Join(failed, err)
		if result != "" {
			fmt.Fprintf(&out, "\n```text\n%s```\n", result)
		}
		out.WriteString("\n</details>\n")
		end = at[1]
	}
	out.Write(text[end:])
	return out.Bytes(), failed
}

// outputOf returns the lines that a region of a Python program prints: the comment "# Output:" below its end.
func outputOf(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(text), "# lesson: "+name+"\n")
	_, after, _ = strings.Cut(after, "# lesson end\n")
	after, found := strings.CutPrefix(strings.TrimLeft(after, "\n"), "# Output:\n")
	if !found {
		return "", nil
	}
	var lines strings.Builder
	for line := range strings.Lines(after) {
		content, isComment := strings.CutPrefix(line, "#")
		if !isComment {
			break
		}
		lines.WriteString(strings.TrimPrefix(content, " "))
	}
	return lines.String(), nil
}

// torchBlock is a block of Go and the same in PyTorch.
var torchBlock = regexp.MustCompile(`(<pre tabindex="0"><code>(?:[^<]|<span[^>]*>|</span>)*</code></pre>\n)<details><summary>PyTorch</summary>\n((?s:.*?)</details>)`)

// tabs puts Go and PyTorch behind two tabs, with a button that copies. Without a script, PyTorch can be unfolded.
func (l language) tabs(page string) string {
	list := fmt.Sprintf(`<div class="tabs" role="group" aria-label="%s"><button type="button" aria-pressed="true" data-code="go">Go</button>`+
		`<button type="button" aria-pressed="false" data-code="torch">PyTorch</button>`+
		`<button type="button" data-copied="%s">%s</button></div>`, l.text("Code"), l.text("Copied"), l.text("Copy"))
	return torchBlock.ReplaceAllString(page, "<div class=\"code\">"+list+"\n$1<details><summary>PyTorch</summary>\n$2\n</div>")
}

// region returns the lines of a file between "// lesson: NAME" and "// lesson end", or the body of
// the example function NAME without its output, without their common indentation.
func region(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	first, last := "// lesson: "+name, []string{"// lesson end"}
	if filepath.Ext(path) == ".py" {
		first, last = "# lesson: "+name, []string{"# lesson end"}
	}
	if strings.HasPrefix(name, "Example") && filepath.Ext(path) == ".go" {
		first, last = "func "+name+"() {", []string{"// Output:", "}"}
	}
	var lines []string
	inside, found := false, false
	for line := range strings.Lines(string(text)) {
		content := strings.TrimSpace(line)
		if content == first {
			if found {
				return "", fmt.Errorf("%s: region %s is marked twice", path, name)
			}
			inside, found = true, true
			continue
		}
		if at := strings.TrimRight(line, "\n"); slices.Contains(last, content) && (content != "}" || at == "}") {
			inside = false
		}
		if inside {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 || inside {
		return "", fmt.Errorf("%s: region %s is missing or has no end", path, name)
	}
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], "\t "))]
	for i := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimPrefix(lines[i], indent), "\t", "    ")
	}
	return strings.Join(lines, ""), nil
}
