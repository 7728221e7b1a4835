package reports

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

// element is an element of a page with its direct text.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

// elements parses a page, which must be XML. It fails the test if the page contains anything that
// can run or load something.
func elements(t *testing.T, page string) (list []*element) {
	t.Helper()
	var open []*element
	for d := xml.NewDecoder(strings.NewReader(page)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
				switch name := a.Name.Local; {
				case strings.HasPrefix(name, "on"), name == "href", name == "src", name == "style", name == "id":
					t.Errorf("%s has %s=%q", e.name, name, a.Value)
				}
			}
			switch e.name {
			case "script", "img", "image", "link", "iframe", "object", "embed", "form", "base", "a", "use":
				t.Errorf("the page has an element %s", e.name)
			}
			list, open = append(list, e), append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(token)
			}
		}
	}
}

func TestPage(t *testing.T) {
	page := written(t, filled().HTML)
	var style, policy string
	charts := 0
	for _, e := range elements(t, page) {
		switch {
		case e.name == "style":
			style = e.text
		case e.attrs["http-equiv"] == "Content-Security-Policy":
			policy = e.attrs["content"]
		case e.attrs["class"] == "chart":
			charts++
		}
	}
	sum := sha256.Sum256([]byte(style))
	if want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"; policy != want {
		t.Errorf("the policy is %s, want %s", policy, want)
	}
	if charts != 1 {
		t.Errorf("%d charts, want 1", charts)
	}
	if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), "://") {
		t.Error("the page names an address")
	}
	for _, word := range []string{"NaN", "Inf", "%!", "ZgotmplZ", "&lt;no value"} {
		if strings.Contains(page, word) {
			t.Errorf("the page has %s in it", word)
		}
	}
	for _, want := range []string{
		`<p class="verdict">36 of 72 heads removed by gradient: BLEU 44.1 → 43.8 (−0.3, 95% interval −0.9 to &#43;0.2: ` +
			`not significant), translation (batch 1) 12% faster, 11% fewer parameters.</p>`,
		`<th scope="col">BLEU</th><th scope="col">exact match, %</th><th scope="col">loss, nats per token</th>`,
		`<th scope="row">whole</th><td>44.1</td><td>31.2</td><td>1.210</td><td>0.000</td><td>7,412,736</td>`,
		`<th scope="row">pruned</th><td>43.8</td><td>30.9</td><td>1.226</td><td>0.021</td><td>6,597,000</td>`,
		`<th scope="row">encoder.1.attention</th><td>0 of 8</td><td class="heads"></td>`,
		`The grey band contains 95% of 20 random orders.`,
		"\n&gt;       36   43.8   −0.3 [−0.9, &#43;0.2]",
		"\nmasked model   runs/fra.pruned/masked\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// The page names the heads of each layer that are left.
func TestPageHeads(t *testing.T) {
	r := filled()
	page := written(t, r.HTML)
	for _, l := range r.Layers {
		names := strings.ReplaceAll(strings.Trim(fmt.Sprint(l.Kept), "[]"), " ", ", ")
		want := fmt.Sprintf(`<th scope="row">%s</th><td>%d of 8</td><td class="heads">%s</td>`, l.Name, len(l.Kept), names)
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// fill puts a text into every string of a value.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	}
}

// Names are text, whatever they contain.
func TestPageHostile(t *testing.T) {
	for _, text := range []string{evil, "\x1b[31m\u202e\xff", "{{.}}", "*/}</style>", "-->", "]]>", "a'b c"} {
		r := filled()
		fill(reflect.ValueOf(r).Elem(), text)
		r.Layers[0].Measures = map[string][]Number{text: {1, 2}}
		page := written(t, r.HTML)
		said := 0
		for _, e := range elements(t, page) {
			said += strings.Count(e.text, text)
		}
		if strings.HasPrefix(text, "</script>") && said < 10 {
			t.Errorf("%q is told %d times", text, said)
		}
		out := written(t, r.Summary)
		if i := strings.IndexFunc(out, func(c rune) bool { return c < ' ' && c != '\n' || c == 0x7f || c == 0x202e || c == 0xfffd }); i >= 0 {
			t.Errorf("%q moves the cursor", out[i:])
		}
	}
}

// Missing parts are omitted.
func TestPageOfLittle(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Report)
		without []string
	}{
		"no speed":  {func(r *Report) { r.Speed = nil }, []string{"% faster", " ms, "}},
		"no curves": {func(r *Report) { r.Curves, r.Random = nil, Band{} }, []string{"<figure", "heads left"}},
		"no random": {func(r *Report) { r.Random = Band{} }, []string{"grey band", "random, mean", "random: mean"}},
		"no result": {func(r *Report) { r.Result = Result{Before: Unknown(), After: Unknown(), Low: NaN, High: NaN} }, []string{"<h2>Before", "<h2>Heads"}},
		"no moves": {func(r *Report) {
			for i := range r.Layers {
				r.Layers[i].Measures = nil
			}
		}, []string{"weights of the remaining heads"}},
		"one metric": {func(r *Report) {
			for i := range r.Curves {
				for j := range r.Curves[i].Points {
					r.Curves[i].Points[j].Loss, r.Curves[i].Points[j].KL = NaN, NaN
				}
			}
		}, nil},
	} {
		r := filled()
		c.change(r)
		page := written(t, r.HTML)
		elements(t, page)
		for _, word := range append(c.without, "NaN", "Inf") {
			if strings.Contains(page, word) {
				t.Errorf("%s: the page has %s", name, word)
			}
		}
		written(t, r.Summary)
	}
}

// A report that was stored and read again gives the same page.
func TestPageOfStored(t *testing.T) {
	data, err := json.Marshal(filled())
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if written(t, r.HTML) != written(t, filled().HTML) {
		t.Error("the page changes when the report is stored")
	}
}

// Models that were made as the result was are on the main curve; after fine-tuning the result is beside it.
func TestAsPruned(t *testing.T) {
	r := filled()
	r.Settings.Step, r.Settings.Compensate = 1, "ridge"
	after := r.Result.After
	r.Curves = append(r.Curves, Curve{Name: r.Result.Method + AsPruned, Points: []Point{
		{Left: 72, Metric: r.Result.Before.Metric}, {Left: 54, Metric: 43.9, Low: -0.5, High: 0.4}, {Left: 36, Metric: after.Metric, Loss: after.Loss, Low: -0.9, High: 0.2},
	}})
	if out := written(t, r.Summary); strings.Contains(out, "other models") || !strings.Contains(out, "\n        54   43.9") || !strings.Contains(out, "\n>       36   43.8") {
		t.Errorf("the summary is not of the main curve:\n%s", out)
	}
	page := written(t, r.HTML)
	for _, want := range []string{
		"The line “as pruned” is of models made as the result was; the others are with heads scored once and with mean outputs",
		"Bars are 95% intervals",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	worse := "is worse than random orders"
	if got := r.WorseThanChance(); got != "" || strings.Contains(written(t, r.Summary), worse) {
		t.Errorf("the verdict is of another curve: %q", got)
	}
	main := r.Main()
	main.Points[2].Metric = 20
	if got := r.WorseThanChance(); !strings.HasPrefix(got, "with 36 heads left, gradient, as pruned "+worse) {
		t.Errorf("the pruned models are worse than chance: %q", got)
	}
	main.Points[2].Metric = after.Metric
	r.Settings.FineTune = 9
	if out := written(t, r.Summary); !strings.Contains(out, "\nother models without fine-tuning:\n        72") {
		t.Errorf("the fine-tuned model is on the curve:\n%s", out)
	}
}

func TestFineTuned(t *testing.T) {
	r := filled()
	r.Settings.FineTune, r.Settings.Step = 200, 6
	pruned := r.Result.After
	pruned.Metric = 42.9
	r.Result.Pruned = &pruned
	r.Result.Control = &Quality{Parameters: r.Result.Before.Parameters, Metric: 45.6, Loss: 1.5, KL: 0.01}
	if out := written(t, r.Summary); !strings.Contains(out, "\n>       36   43.8   −0.3 [−0.9, +0.2]      1.226") ||
		!strings.Contains(out, "\nother models with heads scored once and without fine-tuning:\n        72") || strings.Count(out, ">") != 2 || !strings.Contains(out, "the whole model after the same training: BLEU 45.6") {
		t.Errorf("the summary does not tell training from pruning:\n%s", out)
	}
	page := written(t, r.HTML)
	for _, want := range []string{
		"removed by gradient and fine-tuned: BLEU", `<th scope="row">pruned</th><td>42.9</td>`, `<th scope="row">fine-tuned</th><td>43.8</td>`,
		`<th scope="row">whole, fine-tuned</th><td>45.6</td>`, "All lines are with heads scored once and without fine-tuning.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// A speed goal is compared with the speed that is measured at the end.
func TestSpeedGoalMissed(t *testing.T) {
	for goal, missed := range map[float64]bool{0: false, 1.1: false, 1.5: true} {
		r := filled()
		r.Settings.Speed = goal
		for _, write := range []func(io.Writer) error{r.HTML, r.Summary} {
			text := strings.Join(strings.Fields(written(t, write)), " ")
			if strings.Contains(text, "(measured again; the goal was 50% faster)") != missed {
				t.Errorf("goal %v: that it was missed is told: %v", goal, !missed)
			}
		}
	}
}

func TestPageCannotBeWritten(t *testing.T) {
	for _, write := range []func(io.Writer) error{filled().HTML, filled().Summary} {
		if err := write(full{}); err != io.ErrShortWrite {
			t.Errorf("error %v, want that of the writer", err)
		}
	}
}

// Of a speed whose interval includes 1, the page says so.
func TestSpeedWithoutResult(t *testing.T) {
	r := filled()
	r.Speed = []Speed{
		{Work: "translate", Batch: 1, Length: 20, Before: 4.05, After: 3.16, Ratio: 1.28, Low: 0.68, High: 2.11, Bound: 1.04, Repeats: 30},
	}
	page := written(t, r.HTML)
	for _, want := range []string{
		"translate, batch 1, length 20: 4.05 → 3.16 ms, 1.28 ×, 95% interval 0.68 to 2.11: not significant (bound 1.04)",
		"no significant change in the speed of translation (batch 1) (1.28 ×, 95% interval 0.68 to 2.11)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// filledByLoss is the report of a pretrained model, whose metric is its loss.
func filledByLoss() *Report {
	r := filled()
	s := &r.Settings
	s.Metric, s.Lower, s.LossUnit, s.Goal = "loss", true, "nats per masked token", "let the loss grow by at most 1%"
	r.Model.Arch, r.Model.Task, r.Data.Items, r.Speed = "BERT", "masked words", "texts", nil
	r.Result.Compact = ""
	for _, q := range []*Quality{&r.Result.Before, &r.Result.After} {
		q.Metric, q.Others = q.Loss, nil
	}
	r.Result.Low, r.Result.High = -0.004, 0.031
	for i := range r.Curves {
		for j := range r.Curves[i].Points {
			p := &r.Curves[i].Points[j]
			p.Metric, p.Low, p.High = p.Loss, p.Loss-1.23, p.Loss-1.19
		}
	}
	for i := range r.Random.Points {
		r.Random.Points[i].Metric = r.Random.Points[i].Loss
	}
	return r
}

// If the metric is the loss, lower is better everywhere, and the loss appears only once.
func TestPageOfLoss(t *testing.T) {
	r := filledByLoss()
	page := written(t, r.HTML)
	for _, want := range []string{
		"loss 1.210 → 1.226 (&#43;0.016, 95% interval −0.004 to &#43;0.031: not significant)",
		`<th scope="row">whole</th><td>1.210</td><td>0.000</td>`, "nats per masked token, lower is better",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, none := range []string{"BLEU", "exact match", "higher is better", "compact", "source"} {
		if strings.Contains(page, none) {
			t.Errorf("the page has %s", none)
		}
	}
	if n := strings.Count(page, "<figure"); n != 1 {
		t.Errorf("%d charts, want that of the loss", n)
	}
}
