package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/bench"
	"github.com/attn-go/attn/internal/strictjson"
)

// record contains the measurements of one day on one machine: a file of bench/history.
type record struct {
	Date string `json:"date"`
	bench.Machine
	Processors int      `json:"processors"`
	Tables     []*table `json:"tables"`
}

// table contains work that is compared with the same libraries. About is written by hand, and Note may be.
type table struct {
	Title   string    `json:"title"`
	About   string    `json:"about,omitempty"` // a paragraph before the table
	Threads int       `json:"threads"`
	How     string    `json:"how"` // rounds and times
	Peers   []version `json:"peers,omitempty"`
	Rows    []row     `json:"rows,omitempty"`
	// Columns and Cells are a table of another kind, as written by attn bench --format markdown.
	Columns []string   `json:"columns,omitempty"`
	Cells   [][]string `json:"cells,omitempty"`
	Note    string     `json:"note,omitempty"` // a paragraph after the table
}

type version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// row is a piece of work with its times.
type row struct {
	Work     string   `json:"work"`
	Median   float64  `json:"ms"`
	Share    string   `json:"share,omitempty"`    // attn's time relative to a limit of the machine
	Unsteady bool     `json:"unsteady,omitempty"` // the rounds of one side differed by more than a quarter
	Peers    []figure `json:"peers"`
}

// figure is the time of a peer.
type figure struct {
	Median  float64 `json:"ms,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`   // the peer's time divided by attn's
	Ran     string  `json:"ran,omitempty"`     // the fastest form of the work
	Missing string  `json:"missing,omitempty"` // the reason if there is no figure
}

// newRecord returns a record that describes this machine.
func newRecord() *record {
	return &record{Date: time.Now().Format(time.DateOnly), Machine: bench.ThisMachine(), Processors: runtime.NumCPU()}
}

// dropped matches the parts of processor names that are left out.
var dropped = regexp.MustCompile(`\((R|TM|r|tm)\)|\b(CPU|Processor|\d+-Core)\b|@.*`)

// kind names the kind of machine: the processor and the instruction set.
func (r *record) kind() string {
	words := strings.FieldsFunc(strings.ToLower(dropped.ReplaceAllString(r.CPU, "")), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	return strings.Join(append(words, r.Kernels), "-")
}

// find returns the table with a title, or nil.
func (r *record) find(title string) *table {
	if i := slices.IndexFunc(r.Tables, func(t *table) bool { return t.Title == title }); i >= 0 {
		return r.Tables[i]
	}
	return nil
}

// readHistory returns the records of a directory, the newest first.
func readHistory(dir string) ([]*record, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*record
	for _, name := range slices.Backward(names) { // names begin with the date
		r, err := readRecord(name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := strictjson.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if name := r.Date + "-" + r.kind() + ".json"; filepath.Base(path) != name {
		return nil, fmt.Errorf("%s: contains the record of %s", path, name)
	}
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			if len(row.Peers) != len(t.Peers) || !(row.Median > 0) {
				return nil, fmt.Errorf("%s: %s has %v ms and %d peers, want a time and %d",
					path, row.Work, row.Median, len(row.Peers), len(t.Peers))
			}
		}
	}
	return r, nil
}

// save writes the record into a directory. Tables measured earlier on the same day are kept, unless they were
// measured again.
func (r *record) save(dir string) error {
	path := filepath.Join(dir, r.Date+"-"+r.kind()+".json")
	before, err := readRecord(path)
	switch {
	case err == nil:
		for _, t := range r.Tables {
			if old := before.find(t.Title); old == nil {
				before.Tables = append(before.Tables, t)
			} else {
				old.add(t)
			}
		}
		r = before
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	file := atomicfile.JSON(path, r)
	return atomicfile.Write(path, file.Write)
}

// add adds a new measurement of the same table. Rows that were not measured again stay, and so does
// text that was written by hand; rows of other libraries or another number of threads do not fit.
func (t *table) add(now *table) {
	about, note, rows := t.About, t.Note, t.Rows
	if t.Threads != now.Threads || !slices.Equal(t.Peers, now.Peers) {
		rows = nil
	}
	*t = *now
	t.About, t.Note, t.Rows = cmp.Or(now.About, about), cmp.Or(now.Note, note), rows
	for _, r := range now.Rows {
		if i := slices.IndexFunc(rows, func(old row) bool { return old.Work == r.Work }); i >= 0 {
			t.Rows[i] = r
		} else {
			t.Rows = append(t.Rows, r)
		}
	}
}

// errSlower says that a ratio has fallen.
var errSlower = errors.New("slower than before, beside other libraries")

// gate compares a table with the newest table with the same title, kind of machine and number of threads. It reports
// each ratio that is more than percent lower.
func (r *record) gate(history []*record, t *table, percent float64, messages io.Writer) error {
	i := slices.IndexFunc(history, func(old *record) bool {
		was := old.find(t.Title)
		return was != nil && old.kind() == r.kind() && was.Threads == t.Threads && was.Rows != nil
	})
	if i < 0 {
		return fmt.Errorf("no measurement of %s on %s with %d threads to compare with; --save makes one",
			t.Title, r.kind(), t.Threads)
	}
	was, fallen := history[i].find(t.Title), 0
	for _, now := range t.Rows {
		at := slices.IndexFunc(was.Rows, func(old row) bool { return old.Work == now.Work })
		if at < 0 {
			continue
		}
		for p, peer := range t.Peers {
			q := slices.IndexFunc(was.Peers, func(v version) bool { return v.Name == peer.Name })
			if q < 0 || now.Peers[p].Ratio == 0 {
				continue
			}
			if ratio, old := now.Peers[p].Ratio, was.Rows[at].Peers[q].Ratio; ratio < old*(1-percent/100) {
				fallen++
				fmt.Fprintf(messages, "%s: %.2f× %s, %.2f× on %s\n", now.Work, ratio, peer.Name, old, history[i].Date)
			}
		}
	}
	if fallen > 0 {
		return errSlower
	}
	return nil
}
