// Package history reads and writes earlier measurements: the JSON files beside it, one for each day and kind of machine.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/strictjson"
)

// Record contains the measurements of one day on one kind of machine: a file.
type Record struct {
	Date string `json:"date"`
	bench.Machine
	Processors int      `json:"processors,omitempty"` // 0 if unknown
	Tables     []*Table `json:"tables"`
}

// Table contains work that is compared with the same libraries. About is written by hand, and Note may be.
type Table struct {
	Title   string    `json:"title"`
	About   string    `json:"about,omitempty"` // a paragraph before the table
	Threads int       `json:"threads"`
	How     string    `json:"how"` // rounds and times
	Peers   []Version `json:"peers,omitempty"`
	Rows    []Row     `json:"rows,omitempty"`
	// Columns and Cells are a table of another kind, as written by attn bench --as markdown.
	Columns []string   `json:"columns,omitempty"`
	Cells   [][]string `json:"cells,omitempty"`
	Note    string     `json:"note,omitempty"` // a paragraph after the table
}

// Version is a library of a table.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Row is a piece of work with its times.
type Row struct {
	Work     string   `json:"work"`
	Median   float64  `json:"ms"`
	Share    string   `json:"share,omitempty"`    // attn's time relative to a limit of the machine
	Unsteady bool     `json:"unsteady,omitempty"` // the rounds of one side differed by more than a quarter
	Peers    []Figure `json:"peers"`
}

// Figure is the time of a library.
type Figure struct {
	Median  float64 `json:"ms,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`   // the library's time divided by attn's
	Ran     string  `json:"ran,omitempty"`     // the fastest form of the work
	Missing string  `json:"missing,omitempty"` // the reason if there is no figure
}

// New returns a record that describes this machine.
func New() *Record {
	return &Record{Date: time.Now().Format(time.DateOnly), Machine: bench.ThisMachine(), Processors: runtime.NumCPU()}
}

// omitted matches the parts of processor names that are left out.
var omitted = regexp.MustCompile(`\((R|TM|r|tm)\)|\b(CPU|Processor|\d+-Core)\b|@.*`)

// Processor returns the name of the processor, such as Intel Xeon.
func (r *Record) Processor() string {
	return strings.Join(strings.Fields(omitted.ReplaceAllString(r.CPU, " ")), " ")
}

// Kind names the kind of machine: the processor, the instruction set, and tile units, such as intel-xeon-avx512-amx.
func (r *Record) Kind() string {
	words := strings.FieldsFunc(strings.ToLower(r.Processor()), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	if words = append(words, r.Kernels); r.hasTiles() {
		words = append(words, "amx")
	}
	return strings.Join(words, "-")
}

// hasTiles reports whether products in bfloat16 and int8 use tile units, which are several times as fast as vectors.
func (r *Record) hasTiles() bool { return slices.Contains(strings.Fields(r.Reduced), "AMX") }

// Find returns the table with a title, or nil.
func (r *Record) Find(title string) *Table {
	if i := slices.IndexFunc(r.Tables, func(t *Table) bool { return t.Title == title }); i >= 0 {
		return r.Tables[i]
	}
	return nil
}

// Read returns the records in a directory, the newest first.
func Read(dir string) ([]*Record, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Record
	for _, name := range slices.Backward(names) { // names begin with the date
		r, err := readFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func readFile(path string) (*Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err := strictjson.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if name := r.Date + "-" + r.Kind() + ".json"; filepath.Base(path) != name {
		return nil, fmt.Errorf("%s: contains the record of %s", path, name)
	}
	for _, t := range r.Tables {
		if err := t.validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}

func (t *Table) validate() error {
	for _, row := range t.Rows {
		if len(row.Peers) != len(t.Peers) || !(row.Median > 0) {
			return fmt.Errorf("%s has %v ms and %d peers, want a time and %d",
				row.Work, row.Median, len(row.Peers), len(t.Peers))
		}
	}
	return nil
}

// Save writes the record into a directory. Tables measured earlier on the same day are kept, unless they were
// measured again.
func (r *Record) Save(dir string) error {
	path := filepath.Join(dir, r.Date+"-"+r.Kind()+".json")
	before, err := readFile(path)
	switch {
	case err == nil:
		for _, t := range r.Tables {
			if old := before.Find(t.Title); old == nil {
				before.Tables = append(before.Tables, t)
			} else {
				old.add(t)
			}
		}
		r = before
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return atomicfile.WriteAll(atomicfile.JSON(path, r))
}

// add adds a new measurement of the same table. Rows that were not measured again stay, and so does text that was
// written by hand. Rows of other libraries or another number of threads are dropped.
func (t *Table) add(now *Table) {
	old := *t
	if old.Threads != now.Threads || !slices.Equal(old.Peers, now.Peers) {
		old.Rows = nil
	}
	*t = *now
	t.About, t.Note, t.Rows = cmp.Or(now.About, old.About), cmp.Or(now.Note, old.Note), old.Rows
	for _, r := range now.Rows {
		if i := slices.IndexFunc(t.Rows, func(old Row) bool { return old.Work == r.Work }); i >= 0 {
			t.Rows[i] = r
		} else {
			t.Rows = append(t.Rows, r)
		}
	}
}
