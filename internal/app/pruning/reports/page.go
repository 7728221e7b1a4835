package reports

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

//go:embed report.html
var reportPage string

//go:embed report.css
var reportStyle string

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(functions).Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(pageStyle()) },
		"hash": func() string {
			sum := sha256.Sum256([]byte(pageStyle()))
			return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
		},
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

// shadeLevels is the number of shades of the grids' cells, without white.
const shadeLevels = 16

// pageStyle returns the style sheet: the file, the shades of cells, and the charts' colours on a
// dark ground.
var pageStyle = sync.OnceValue(func() string {
	const dark = "@media screen and (prefers-color-scheme: dark) {\n"
	var b strings.Builder
	b.WriteString(reportStyle)
	shades := func(from, step float64) {
		for i := range shadeLevels + 1 {
			c, ink := viz.OnLight.Color(from+step*float64(i)/shadeLevels), "#16181d"
			if int(c.R)*3+int(c.G)*6+int(c.B) < 1250 { // about half of white's brightness
				ink = "#fff"
			}
			fmt.Fprintf(&b, ".grid .v%d{background:#%02x%02x%02x;color:%s}", i, c.R, c.G, c.B, ink)
		}
	}
	shades(0.03, 0.87)
	b.WriteString("\n" + dark)
	shades(0.93, -0.85)
	b.WriteString("\n" + viz.DarkCharts() + "\n}\n")
	return b.String()
})

// comparison is a row of the table that compares the model before and after.
type comparison struct {
	Name     string
	Decimals int  // -1 for a count
	Main     bool // the row of the metric
	// Values of the whole model, the pruned one, the pruned one after fine-tuning, and the whole one
	// after the same fine-tuning.
	Before, Pruned, After, Control Number
}

// Compared returns the rows with a value before or after.
func (r *Report) Compared() (rows []comparison) {
	pruned, control := Unknown(), Unknown()
	if r.Result.Pruned != nil {
		pruned = *r.Result.Pruned
	}
	if r.Result.Control != nil {
		control = *r.Result.Control
	}
	add := func(name, unit string, decimals int, of func(Quality) Number) {
		if unit != "" {
			name += ", " + unit
		}
		c := comparison{name, decimals, false, of(r.Result.Before), of(pruned), of(r.Result.After), of(control)}
		if c.Before.Known() || c.After.Known() {
			rows = append(rows, c)
		}
	}
	metric := r.Settings.Unit
	if r.Settings.Lower {
		metric = strings.TrimPrefix(metric+", "+r.LossUnit(), ", ")
	}
	add(r.Metric(), metric, r.Digits(), func(q Quality) Number { return q.Metric })
	for i := range rows {
		rows[i].Main = true
	}
	for _, n := range r.Result.Before.Others {
		add(n.Name, n.Unit, 1, func(q Quality) Number { return q.other(n.Name) })
	}
	if !r.Settings.Lower {
		add("loss", r.LossUnit(), 3, func(q Quality) Number { return q.Loss })
	}
	add("KL from the whole model", "", 3, func(q Quality) Number { return q.KL })
	if all, left := Number(r.Heads()), Number(r.Result.Left); all > 0 {
		rows = append(rows, comparison{"heads", -1, false, all, left, left, all})
	}
	if r.Result.Before.Parameters > 0 {
		add("parameters", "", -1, func(q Quality) Number { return Number(q.Parameters) })
	}
	return rows
}

// Write writes a value of the row.
func (c comparison) Write(v Number) string {
	if c.Decimals < 0 {
		return quote.Count(int(v))
	}
	return fixed(v, c.Decimals)
}

// Change writes the difference, in per cent if it is a count.
func (c comparison) Change() string {
	if c.Decimals < 0 {
		return signed(100*(c.After-c.Before)/c.Before, 0) + "%"
	}
	return signed(c.After-c.Before, c.Decimals)
}

// facts is a group of names with values.
type facts struct {
	Title string
	Rows  [][2]string
}

// newFacts returns a group of the given names, each followed by a text or a number. It omits empty
// texts and 0.
func newFacts(title string, list ...any) facts {
	f := facts{Title: title}
	for i := 0; i < len(list); i += 2 {
		text := fmt.Sprint(list[i+1])
		if n, ok := list[i+1].(int); ok {
			text = ""
			if n > 0 {
				text = quote.Count(n)
			}
		}
		if text != "" {
			f.Rows = append(f.Rows, [2]string{list[i].(string), text})
		}
	}
	return f
}
