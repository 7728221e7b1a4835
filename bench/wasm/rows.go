package main

// A result is the output of the measured program.
type result struct {
	Implementation string
	Values         map[string]float64 // milliseconds
}

// rows are the rows of the table, in the order in which they are measured.
var rows = []struct {
	name   string
	amount float64 // of units, divided by the milliseconds
	unit   string  // "" for none
}{
	{"product 256×256×256", 2 * 256 * 256 * 256 / 1e6, "GFLOP/s"},
	{"packed panels 32×256×256", 2 * 32 * 256 * 256 / 1e6, "GFLOP/s"},
	{"training dates, width 64, 1,000 tokens", 1000, "k tokens/s"},
	{"a date translated, all heads recorded", 1000, "a second"},
	{"training until 97% of the dates are exact", 0, ""},
}
