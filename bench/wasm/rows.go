package main

// A result is the output of the measured program.
type result struct {
	Implementation string
	Values         map[string]float64
}

// rows are the rows of the table, in the order in which they are measured.
var rows = []struct {
	name, unit string
	time       bool // less is better
}{
	{"product 256×256×256", "GFLOP/s", false},
	{"packed panels 32×256×256", "GFLOP/s", false},
	{"training reverse, width 32", "tokens/s", false},
	{"training dates, width 64", "tokens/s", false},
	{"a date translated, all heads recorded", "ms", true},
	{"training until 97% of the dates are exact", "s", true},
}
