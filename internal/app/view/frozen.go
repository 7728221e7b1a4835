package view

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// frozenMark is replaced with the data when a page is exported.
const frozenMark = "@FROZEN@"

var (
	importLine = regexp.MustCompile(`(?m)^import \{([^}]*)\} from "\./(\w+)\.js";$`)
	exportLine = regexp.MustCompile(`(?m)^export ((?:async )?function\*?|const|class) (\w+)`)
)

// frozenPage returns the page as one file without data: it contains the style and the modules. Its policy allows only
// these, by their hashes, so that a text cannot become a script there either. It is the same for every server.
var frozenPage = sync.OnceValue(func() string {
	html, style := read("index.html"), read("style.css")
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data: blob:; base-uri 'none'; form-action 'none'",
		hash(script()), hash(style))
	return strings.NewReplacer(
		`<meta charset="utf-8">`, `<meta charset="utf-8">`+"\n"+`<meta http-equiv="Content-Security-Policy" content="`+policy+`">`,
		`<link rel="stylesheet" href="page/style.css">`, "<style>"+style+"</style>",
		`<script type="module" src="page/main.js"></script>`, "",
		"</body>", `<script type="application/json" id="frozen">`+frozenMark+"</script>\n<script>"+script()+"</script>\n</body>",
	).Replace(html)
})

// script returns the modules of the page as one script. As modules, a browser would find and
// request them one after the other. It is the same for every server.
var script = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("\"use strict\";\n")
	bundle(&b, "main", map[string]bool{})
	return b.String()
})

// read returns a file of the page.
func read(name string) string {
	text, err := embedded.ReadFile("page/" + name)
	if err != nil {
		panic(err) // a module imports a file that does not exist
	}
	return string(text)
}

// Module returns a module of the page that another page can use: dom.js or palette.js.
func Module(name string) []byte { return []byte(read(name)) }

// bundle writes a module after the modules that it imports, each as a function that
// returns its exports. Pages opened from a file cannot import modules.
func bundle(b *strings.Builder, name string, done map[string]bool) {
	if done[name] {
		return
	}
	done[name] = true
	text := read(name + ".js")
	for _, found := range importLine.FindAllStringSubmatch(text, -1) {
		bundle(b, found[2], done)
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
	fmt.Fprintf(b, "const module_%s = (() => {\n%s\nreturn {%s};\n})();\n", name, text, strings.Join(exported, ", "))
}
