package viz

import "github.com/attn-go/attn/internal/cells"

// thumbnailSide is the largest number of rows and of columns of a small panel.
const thumbnailSide = 32

// thumbnails draws panels side by side without tokens, as many as the width and the figure's Columns allow.
func (d *drawing) thumbnails(f Figure) {
	most := d.side(f)
	var list []Panel
	worst, short := [2]int{1, 1}, false
	for _, p := range f.Panels {
		small, down, across := d.thin(p, thumbnailSide, most)
		worst = [2]int{max(worst[0], down), max(worst[1], across)}
		// A title may be somewhat wider than its panel.
		small.Title = cells.Label(p.Title, max(len(small.Columns), narrowest))
		whole := cells.Label(p.Title, longestTitle)
		cut := small.Title != whole && p.Kind != "" // a cut name would not tell heads apart
		if (cut || most < thumbnailSide && cells.Width(whole) > most) && p.Head >= 0 {
			small.Title = ShortHeadName(p.Layer, p.Head)
			short = true
		}
		list = append(list, small)
	}
	row := f.Columns // of the figure; on a narrow terminal it takes several lines
	if row <= 0 {
		row = len(list)
	}
	for _, line := range f.lines(row) {
		group := list[:len(line)]
		list = list[len(line):]
		d.shelves(group)
	}
	if note := thinned(worst[0], worst[1]); note != "" {
		d.notes = append(d.notes, note)
	}
	if short {
		d.notes = append(d.notes, "titles are layer.head")
	}
	d.notes = append(d.notes, f.axes())
}

// leastSide is the least side to which panels are shrunk so that a row of heads fits on one line.
const leastSide = 6

// side returns the largest side of a panel, smaller where a row of the figure would not fit into the width.
func (d *drawing) side(f Figure) int {
	if d.t.Width == 0 {
		return thumbnailSide
	}
	if fits := (d.t.Width - gap*(f.Columns-1)) / max(f.Columns, 1); f.Columns > 1 && fits >= leastSide {
		return min(fits, thumbnailSide)
	}
	return min(thumbnailSide, d.t.Width)
}

// shelves draws panels in as few lines as possible, with about the same number in each.
func (d *drawing) shelves(list []Panel) {
	widest := 0
	for _, p := range list {
		widest = max(widest, len(p.Columns), cells.Width(p.Title))
	}
	lines := 1
	if d.t.Width > 0 {
		fit := max(1, (d.t.Width+gap)/(widest+gap))
		lines = (len(list) + fit - 1) / fit
	}
	for ; lines > 0; lines-- {
		n := (len(list) + lines - 1) / lines
		d.shelf(list[:n], widest)
		list = list[n:]
	}
}

// gap is the distance between panels.
const gap = 2

// shelf draws panels side by side, each of them width characters wide.
func (d *drawing) shelf(list []Panel, width int) {
	height := 0
	for i, p := range list {
		height = max(height, len(p.Rows))
		d.WriteString(p.Title)
		if i+1 < len(list) {
			d.pad(width - cells.Width(p.Title) + gap)
		}
	}
	d.line()
	for row := 0; row < height; row += d.step() {
		room := 0 // spaces to write before the next panel
		for _, p := range list {
			if row < len(p.Rows) {
				d.pad(room)
				d.small(p, row)
				room = width - len(p.Columns) + gap
			} else {
				room += width + gap
			}
		}
		d.line()
	}
}
