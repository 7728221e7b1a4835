package viz

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// small is a figure of two heads with the same shape.
func small() Figure {
	rows, columns := []string{"a,\"b\"", "\n", "</script>"}, []string{"x", "日本"}
	mean := Panel{Title: "mean", Kind: "encoder", Layer: 2, Head: Mean, Rows: rows, Columns: columns, Values: []float32{nan, 0.1, 1e-30, 1, 1. / 3, 0}}
	return Figure{Title: "t & t", Panels: []Panel{mean, panel(3, rows, columns, 1)}}
}

func TestCSV(t *testing.T) {
	var b strings.Builder
	f := small()
	if err := f.CSV(&b); err != nil {
		t.Fatal(err)
	}
	if want := "layer,head,kind,query,key,i,j,weight\n2,mean,encoder,\"a,\"\"b\"\"\",x,0,0,NaN\n2,mean,encoder,\"a,\"\"b\"\"\",日本,0,1,0.1\n2,mean,encoder,\\n,x,1,0,1e-30\n"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("CSV begins\n%s\nwant\n%s", b.String(), want)
	}
	lines, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(lines) != 13 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for at, line := range lines[1:] {
		p := f.Panels[at/6]
		i, j := at%6/2, at%2
		v, err := strconv.ParseFloat(line[7], 32)
		if err != nil || line[3] != cell(p.Rows[i]) || line[4] != cell(p.Columns[j]) || line[5] != fmt.Sprint(i) || line[6] != fmt.Sprint(j) || fmt.Sprint(float32(v)) != fmt.Sprint(p.Values[i*2+j]) {
			t.Errorf("line %d is %q, want %q, %q, %v", at, line, p.Rows[i], p.Columns[j], p.Values[i*2+j])
		}
	}
}

// Tokens are not run as formulas and do not move the cursor; numbers stay numbers.
func TestCSVCells(t *testing.T) {
	for token, want := range map[string]string{
		"": "", "a": "a", "1-2": "1-2", "▁-": "▁-", "'a'": "'a'", "日本": "日本",
		"=1+2": "'=1+2", "+1": "'+1", "-": "'-", "-0.5": "'-0.5", "@SUM(A1)": "'@SUM(A1)", "＝1": "'＝1", "＠": "'＠",
		"\t=1": `\t=1`, "\r=1": `\r=1`, "\n": `\n`, "\x1b[2J": `\x1b[2J`, "a\x1b]0;x\a": `a\x1b]0;x\x07`, "\u202e": `\u202e`, "\x9b": `\x9b`,
	} {
		f := Figure{Panels: []Panel{{Kind: "cross", Layer: -7, Rows: []string{token}, Columns: []string{token}, Values: []float32{-0.5}}}}
		var b strings.Builder
		if err := f.CSV(&b); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
		if err != nil || len(lines) != 2 {
			t.Fatalf("%q: %q, %v", token, lines, err)
		}
		if got := lines[1]; got[3] != want || got[4] != want {
			t.Errorf("%q is written as %q and %q, want %q", token, got[3], got[4], want)
		}
		if got := lines[1]; got[0] != "-7" || got[7] != "-0.5" {
			t.Errorf("%q: the numbers are %q and %q, want -7 and -0.5", token, got[0], got[7])
		}
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	f := small()
	if err := f.JSON(&b); err != nil {
		t.Fatal(err)
	}
	type panel struct {
		Title, Kind   string
		Layer         int
		Head          *int
		Queries, Keys []string
		Weights       [][]*float32
	}
	var got struct {
		Title  string
		Panels []panel
	}
	d := json.NewDecoder(strings.NewReader(b.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Title != f.Title || len(got.Panels) != 2 || got.Panels[0].Head != nil || *got.Panels[1].Head != 3 {
		t.Fatalf("got %+v", got)
	}
	for i, p := range got.Panels {
		want := f.Panels[i]
		if p.Title != want.Title || p.Kind != want.Kind || p.Layer != want.Layer || !reflect.DeepEqual(p.Queries, want.Rows) || !reflect.DeepEqual(p.Keys, want.Columns) {
			t.Errorf("panel %d is %+v", i, p)
		}
		for r, row := range p.Weights {
			for c, v := range row {
				if w := want.Values[r*2+c]; (v == nil) != math.IsNaN(float64(w)) || v != nil && *v != w {
					t.Errorf("weight %d, %d, %d is %v, want %v", i, r, c, v, w)
				}
			}
		}
	}
	if strings.Contains(b.String(), "<") { // otherwise it could not be embedded in a page
		t.Error("a token is not escaped")
	}
}

func TestNPY(t *testing.T) {
	var b bytes.Buffer
	f := small()
	if err := f.NPY(&b); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	size := int(binary.LittleEndian.Uint16(data[8:]))
	header := string(data[10 : 10+size])
	if string(data[:8]) != "\x93NUMPY\x01\x00" || (10+size)%64 != 0 || !strings.HasSuffix(header, " \n") ||
		strings.TrimSpace(header) != "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 2), }" {
		t.Errorf("the header is %q", data[:10+size])
	}
	data = data[10+size:]
	if len(data) != 4*12 {
		t.Fatalf("%d bytes of data, want %d", len(data), 4*12)
	}
	for i := range 12 {
		if got, want := binary.LittleEndian.Uint32(data[4*i:]), math.Float32bits(f.Panels[i/6].Values[i%6]); got != want {
			t.Errorf("number %d is %x, want %x", i, got, want)
		}
	}
	b.Reset()
	err := figures()["uneven"].NPY(&b)
	if want := "viz: panel 1 is 2×41 and panel 0 is 7×2, want one shape for an array"; err == nil || err.Error() != want || b.Len() > 0 {
		t.Errorf("error %v, want %s", err, want)
	}
}
