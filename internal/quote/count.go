package quote

import (
	"fmt"
	"strconv"
)

// Count formats a whole number in groups of three digits.
func Count(n int) string {
	return Grouped(strconv.Itoa(n))
}

// Grouped separates groups of three digits of a whole number.
func Grouped(text string) string {
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Counted returns a number with a noun in the singular or plural.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Bytes formats a number of bytes with three digits and a unit.
func Bytes[N int | int64](n N) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	x, u := float64(n), 0
	for x >= 999.5 && u < len(units)-1 {
		x, u = x/1000, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.3g %s", x, units[u])
}
