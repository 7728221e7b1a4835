package reports

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"sync"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

//go:embed report.html
var reportPage string

//go:embed report.css
var reportStyle string

var pageTemplate = sync.OnceValue(func() *template.Template {
	const dark = "@media screen and (prefers-color-scheme: dark) {\n"
	style := reportStyle + dark + "body { background: #14161c; color: #e6e8ee; }\nsvg.chart .paper { color: #14161c; }\n" +
		viz.DarkCharts() + "\n}\n"
	sum := sha256.Sum256([]byte(style))
	return template.Must(template.New("report").Funcs(functions).Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(style) },
		"hash":  func() string { return "sha256-" + base64.StdEncoding.EncodeToString(sum[:]) },
	}).Parse(reportPage))
})

// HTML writes the report as a single page without scripts and without links to other files; its
// content security policy blocks both. Parts that were not measured are omitted. The page is also
// XML.
func (r *Report) HTML(w io.Writer) error {
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, r); err != nil {
		return err
	}
	_, err := io.WriteString(w, quote.Lines(b.String())) // the template has nothing to escape, but names may have
	return err
}

// Picture returns the chart as a part of a page; empty without curves.
func (r *Report) Picture() (template.HTML, error) {
	c := r.Chart()
	if len(c.Lines) == 0 {
		return "", nil
	}
	c.Inline = true // the page's content security policy blocks other style elements
	var b bytes.Buffer
	err := c.SVG(&b)
	return template.HTML(b.String()), err
}

// model is a model that was measured.
type model struct {
	Name string
	Quality
}

// Models returns the whole and the pruned model, and those between them.
func (r *Report) Models() (list []model) {
	for _, m := range []struct {
		name string
		*Quality
	}{
		{"whole", &r.Result.Before}, {"pruned", r.Result.Pruned}, {r.repaired(), &r.Result.After},
		{"whole, fine-tuned", r.Result.Control},
	} {
		if m.Quality != nil && m.Metric.Known() {
			list = append(list, model{m.name, *m.Quality})
		}
	}
	return list
}

// repaired describes the result: what was done to the model after heads had been removed.
func (r *Report) repaired() string {
	switch s := r.Settings; {
	case r.Result.Pruned == nil:
		return "pruned"
	case s.Compensate == "":
		return "fine-tuned"
	case s.FineTune == 0:
		return "compensated"
	}
	return "compensated, fine-tuned"
}
