package browsertest

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the first answers of the lessons, site/assets/first-*.js, again")

// recorder records the calls of a page and the answers of its program, in rounded numbers where there are many.
const recorder = `(() => {
	const asked = new Map(), post = Worker.prototype.postMessage;
	window.firstAnswers = {};
	const rounded = (value) => Array.isArray(value) ? value.map((x) => typeof x === "number" && value.length > 200 ? Number(x.toFixed(4)) : rounded(x))
		: value && typeof value === "object" ? Object.fromEntries(Object.entries(value).filter(([name]) => name !== "seconds").map(([name, x]) => [name, rounded(x)])) : value;
	Worker.prototype.postMessage = function (m) {
		if (m.call && m.call !== "cancel") asked.set(m.id, m.call + " " + JSON.stringify(m.args));
		if (!this.recorded) this.addEventListener("message", ({ data }) => {
			if (data.done && !data.error && asked.has(data.id)) firstAnswers[asked.get(data.id)] = rounded(data.result);
			if (data.done) asked.delete(data.id);
			window.quiet = asked.size === 0;
		});
		this.recorded = true;
		window.quiet = asked.size === 0;
		return post.apply(this, arguments);
	};
})()`

// The answers with which figures are drawn before the program is loaded are those of the program.
func TestSiteFirstAnswers(t *testing.T) {
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/assets/first-") {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, "export default [];") // the page asks the program
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for name := range strings.FieldsSeq("index regression scores reverse shapes dates masks linear induction") {
		t.Run(name, func(t *testing.T) {
			got := map[string]any{}
			for _, language := range []string{"", "zh/", "ja/"} {
				if language != "" && name != "dates" && name != "index" {
					continue // the same calls as in English
				}
				w := watch(t, 1280, 900)
				if _, err := chromedp.Call(w.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: recorder}); err != nil {
					t.Fatal(err)
				}
				w.lesson(server.URL + "/" + language + name + ".html")
				js[bool](w.tab, `new Promise((done) => setTimeout(() => done(true), 600))`) // calls that wait for a pause
				w.wait(`quiet`)
				maps.Copy(got, js[map[string]any](w.tab, `firstAnswers`))
			}
			path := filepath.Join("..", "..", "..", "..", "site", "assets", "first-"+name+".js")
			const head, end = "// The answers of the program to the first calls of the page. TestSiteFirstAnswers -update writes them.\nexport default [\n", "\n];\n"
			if *update {
				var lines []string
				for _, call := range slices.Sorted(maps.Keys(got)) {
					line, err := json.Marshal([]any{call, got[call]})
					if err != nil {
						t.Fatal(err)
					}
					lines = append(lines, string(line))
				}
				if err := os.WriteFile(path, []byte(head+strings.Join(lines, ",\n")+end), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var list [][2]any
			if err := json.Unmarshal([]byte("["+strings.TrimSuffix(strings.TrimPrefix(string(text), head), end)+"]"), &list); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if len(list) == 0 || len(list) != len(got) {
				t.Errorf("%s has %d answers, the page asks for %d", name, len(list), len(got))
			}
			for _, entry := range list {
				call := entry[0].(string)
				if want, ok := got[call]; !ok || !near(entry[1], want) {
					t.Errorf("%s: %.80s: the shipped answer is not that of the program (asked: %v)", name, call, ok)
				}
			}
		})
	}
}

// near reports whether two answers have the same form, and numbers that differ by rounding at most.
func near(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, near)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, near)
	case float64:
		b, ok := b.(float64)
		return ok && math.Abs(a-b) <= 2e-4*max(1, math.Abs(b))
	}
	return a == b
}
