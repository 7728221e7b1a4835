package view

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// frozenMark is replaced with the data when a page is exported.
const frozenMark = "@FROZEN@"

var (
	importLine = regexp.MustCompile(`(?m)^import \{([^}]*)\} from "\./(\w+)\.js";$`)
	exportLine = regexp.MustCompile(`(?m)^export ((?:async )?function\*?|const|class) (\w+)`)
)

// freeze returns the page as one file without data: it contains the style and the
// modules. Its policy allows only these, by their hashes, so that a text cannot become
// a script there either.
func freeze(dir fs.FS) ([]byte, error) {
	read := reader(dir)
	html, err := read("index.html")
	if err != nil {
		return nil, err
	}
	style, err := read("style.css")
	if err != nil {
		return nil, err
	}
	script, err := bundled(dir)
	if err != nil {
		return nil, err
	}
	if strings.Contains(strings.ToLower(script), "</script") {
		return nil, fmt.Errorf("view: a module has the end of a script in it")
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data: blob:; base-uri 'none'; form-action 'none'",
		hash(script), hash(style))
	for _, part := range [][2]string{
		{`<meta charset="utf-8">`, `<meta charset="utf-8">` + "\n" + `<meta http-equiv="Content-Security-Policy" content="` + policy + `">`},
		{`<link rel="stylesheet" href="page/style.css">`, "<style>" + style + "</style>"},
		{`<script type="module" src="page/main.js"></script>`, ""},
		{"</body>", `<script type="application/json" id="frozen">` + frozenMark + "</script>\n<script>" + script + "</script>\n</body>"},
	} {
		if strings.Count(html, part[0]) != 1 {
			return nil, fmt.Errorf("view: index.html should have one %s", part[0])
		}
		html = strings.Replace(html, part[0], part[1], 1)
	}
	return []byte(html), nil
}

// bundled returns the modules of the page as one script. As modules, a browser would find and
// request them one after the other.
func bundled(dir fs.FS) (string, error) {
	var script strings.Builder
	script.WriteString("\"use strict\";\n")
	err := bundle(&script, reader(dir), "main", map[string]bool{})
	return script.String(), err
}

// reader returns a function that reads the files of dir as text.
func reader(dir fs.FS) func(name string) (string, error) {
	return func(name string) (string, error) {
		b, err := fs.ReadFile(dir, name)
		return string(b), err
	}
}

// bundle writes a module after the modules that it imports, each as a function that
// returns its exports. Pages opened from a file cannot import modules.
func bundle(b *strings.Builder, read func(string) (string, error), name string, done map[string]bool) error {
	if done[name] {
		return nil
	}
	done[name] = true
	text, err := read(name + ".js")
	if err != nil {
		return err
	}
	for _, found := range importLine.FindAllStringSubmatch(text, -1) {
		if err := bundle(b, read, found[2], done); err != nil {
			return err
		}
	}
	var exported []string
	for _, found := range exportLine.FindAllStringSubmatch(text, -1) {
		exported = append(exported, found[2])
	}
	text = importLine.ReplaceAllStringFunc(text, func(line string) string {
		part := importLine.FindStringSubmatch(line)
		return "const {" + strings.ReplaceAll(part[1], " as ", ": ") + "} = module_" + part[2] + ";"
	})
	text = exportLine.ReplaceAllString(text, "$1 $2")
	if regexp.MustCompile(`(?m)^(import|export)\b`).MatchString(text) {
		return fmt.Errorf("view: %s.js imports or exports in a form that bundle does not support", name)
	}
	fmt.Fprintf(b, "const module_%s = (() => {\n%s\nreturn {%s};\n})();\n", name, text, strings.Join(exported, ", "))
	return nil
}
