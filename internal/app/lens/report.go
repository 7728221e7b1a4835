package lens

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/viz"
)

type number = strictjson.Number

// most is the number of the strongest effects or edges that are written.
const most = 10

// Report is what a Study has measured.
type Report struct {
	Metric  string
	Bases   []Base
	Effects []Effect // by what, then by part, in the order of the model
	Exact   string   // what Attribution estimates
	Kinds   []string // of the model's attention
	Tokens  []string // of the positions: of the source, followed by those that a decoder has read
	Items   int      // texts, or pairs
}

// Base is the metric of a run without the change of an effect.
type Base struct {
	Name, Text string
	Metric     float64
	Share      float64 // of Of that is left or restored; 0 if there is none
	Of         string
}

// Effect is what a change does to the metric, in the format of --json.
type Effect struct {
	What     string    `json:"what"`
	Part     lens.Part `json:"part"`
	Kind     string    `json:"kind,omitempty"` // only in a model with several
	Layer    int       `json:"layer"`
	Head     *int      `json:"head"`
	Position *int      `json:"position"`
	Metric   number    `json:"metric"` // with the change
	Effect   number    `json:"effect"` // minus the metric without it
	Low      *number   `json:"low,omitempty"`
	High     *number   `json:"high,omitempty"`
}

func (r *Report) base(b Base) {
	if !slices.Contains(r.Bases, b) {
		r.Bases = append(r.Bases, b)
	}
}

// place returns the place of an effect: "5.3", "cross 5.3" in a model with several kinds, or "5.3 at 2".
func (r *Report) place(e Effect) string {
	name := strconv.Itoa(e.Layer)
	if e.Head != nil {
		name = viz.ShortHeadName(e.Layer, *e.Head)
	}
	if len(r.Kinds) > 1 {
		name = e.Kind + " " + name
	}
	if e.Position != nil {
		name += fmt.Sprint(" at ", *e.Position)
	}
	return name
}

// JSON writes an object for each effect, one on a line.
func (r *Report) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	for _, e := range r.Effects {
		if len(r.Kinds) < 2 {
			e.Kind = ""
		}
		if err := out.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// CSV writes a table with a line for each effect.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	text := func(v *number) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(float64(*v), 'g', -1, 64)
	}
	whole := func(v *int) string {
		if v == nil {
			return ""
		}
		return strconv.Itoa(*v)
	}
	_ = out.Write([]string{"what", "part", "kind", "layer", "head", "position", "metric", "effect", "low", "high"})
	for _, e := range r.Effects {
		_ = out.Write([]string{e.What, e.Part.String(), e.Kind, strconv.Itoa(e.Layer), whole(e.Head), whole(e.Position),
			text(&e.Metric), text(&e.Effect), text(e.Low), text(e.High)})
	}
	out.Flush()
	return out.Error()
}

// Figure returns the effects as heat maps: a panel for what is done, part and kind, with a row for each layer and a column
// for each head or, of positions, for each token.
func (r *Report) Figure() viz.Figure {
	f := viz.Figure{
		Title: "effects on " + r.Metric, Signed: true, Scale: viz.Largest, Unit: "effect", Hatched: "absent",
		Axes: "a row for each layer, a column for each head or token", RowTitle: "layer", ColumnTitle: "head",
	}
	type group struct {
		what, kind string
		part       lens.Part
	}
	cellsOf, order := map[group][]Effect{}, []group(nil)
	for _, e := range r.Effects {
		g := group{e.What, e.Kind, e.Part}
		if cellsOf[g] == nil {
			order = append(order, g)
		}
		cellsOf[g] = append(cellsOf[g], e)
	}
	for _, g := range order {
		p := viz.Panel{Title: fmt.Sprintf("%s, %s", g.what, g.part), Kind: g.kind, Layer: viz.Several, Head: viz.Several}
		if len(r.Kinds) > 1 {
			p.Title += ", " + viz.KindName(g.kind)
		}
		list, rows, columns := cellsOf[g], map[string]int{}, 0
		at := func(e Effect) (row string, column int) {
			switch row = strconv.Itoa(e.Layer); {
			case e.Position == nil && e.Head == nil: // layers are side by side
				row, column = e.Part.String(), e.Layer
			case e.Position == nil:
				column = *e.Head
			case e.Head != nil:
				row, column = viz.ShortHeadName(e.Layer, *e.Head), *e.Position
			default:
				column = *e.Position
			}
			return row, column
		}
		for _, e := range list {
			row, column := at(e)
			if _, ok := rows[row]; !ok {
				rows[row] = len(p.Rows)
				p.Rows = append(p.Rows, row)
			}
			columns = max(columns, column+1)
		}
		p.Values = slices.Repeat([]float32{float32(math.NaN())}, len(p.Rows)*columns)
		p.Masked = slices.Repeat([]bool{true}, len(p.Values)) // such as heads that only wider layers have
		for _, e := range list {
			row, column := at(e)
			p.Values[rows[row]*columns+column], p.Masked[rows[row]*columns+column] = float32(e.Effect), false
		}
		for i := range columns {
			p.Columns = append(p.Columns, strconv.Itoa(i))
		}
		if list[0].Position != nil {
			f.ColumnTitle = "token"
			begin := len(r.Tokens) - columns
			if g.kind == "encoder" || g.kind == "cross" && (g.part == lens.Key || g.part == lens.Value) {
				begin = 0
			}
			copy(p.Columns, r.Tokens[begin:])
		} else if list[0].Head == nil {
			f.RowTitle, f.ColumnTitle = "part", "layer"
		}
		f.Panels = append(f.Panels, p)
	}
	f.Columns = min(len(f.Panels), 3)
	return f
}

// Text writes the metric, the heat maps, and the strongest effects.
func (r *Report) Text(w io.Writer, t viz.Terminal) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Metric)
	if r.Items > 1 {
		fmt.Fprintf(&b, "means of %s, with 95%% intervals\n", quote.Counted(r.Items, "pair of texts", "pairs of texts"))
	} else {
		for _, base := range r.Bases {
			line := fmt.Sprintf("%9.4f  %s", base.Metric, base.Name)
			if base.Text != "" {
				line += ": " + cells.Visible(base.Text)
			}
			if base.Share != 0 {
				line += fmt.Sprintf(": %.0f%% of %s", 100*base.Share, base.Of)
			}
			b.WriteString(cells.Cut(line, cmp.Or(t.Width, len(line))) + "\n")
		}
	}
	if len(r.Effects) > 0 {
		b.WriteByte('\n')
		f := r.Figure()
		f.Title = ""
		if err := f.Text(&b, t); err != nil {
			return err
		}
		r.strongest(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// strongest writes the largest effects, and how well attribution estimates them.
func (r *Report) strongest(b *strings.Builder) {
	n := slices.IndexFunc(r.Effects, func(e Effect) bool { return e.What != r.Effects[0].What })
	if n < 0 {
		n = len(r.Effects)
	}
	var whats []string
	for i := 0; i+n <= len(r.Effects); i += n { // without what was interrupted
		whats = append(whats, r.Effects[i].What)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(math.Abs(float64(r.Effects[j].Effect)), math.Abs(float64(r.Effects[i].Effect)))
	})
	fmt.Fprintf(b, "\n%-8s %-14s", "part", "place")
	for _, what := range whats {
		fmt.Fprintf(b, " %11s", what)
	}
	if r.Items > 1 {
		fmt.Fprintf(b, "  95%% of %s", whats[0])
	}
	b.WriteByte('\n')
	for _, i := range order[:min(most, n)] {
		e := r.Effects[i]
		fmt.Fprintf(b, "%-8s %-14s", e.Part, r.place(e))
		for k := range whats {
			fmt.Fprintf(b, " %11.4f", float64(r.Effects[k*n+i].Effect))
		}
		if e.Low != nil {
			fmt.Fprintf(b, "  %.4f to %.4f", float64(*e.Low), float64(*e.High))
		}
		b.WriteByte('\n')
	}
	if n > most {
		fmt.Fprintf(b, "the strongest %d of %d\n", most, n)
	}
	var exact []Effect
	var x, y []float64 // attribution and what it estimates
	for _, e := range r.Effects {
		switch e.What {
		case Attribution:
			x = append(x, float64(e.Effect))
		case r.Exact:
			exact, y = append(exact, e), append(y, float64(e.Effect))
		}
	}
	if len(x) < 2 || len(x) != len(y) {
		return
	}
	fmt.Fprintf(b, "attribution beside %s: correlation %.3f, rank correlation %.3f\n", r.Exact, prune.Pearson(x, y), prune.Spearman(x, y))
	worst := 0
	for i := range x {
		if math.Abs(x[i]-y[i]) > math.Abs(x[worst]-y[worst]) {
			worst = i
		}
	}
	fmt.Fprintf(b, "they differ most for %s %s: %.4f beside %.4f\n", exact[worst].Part, r.place(exact[worst]), x[worst], y[worst])
}
