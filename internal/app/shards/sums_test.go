package shards

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Sums do not depend on the order of the lines or on the boundaries of writes.
func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf(`{"nats":%g,"h":{"a":[%g,null,%d]}}`, rng.NormFloat64()*1e10, rng.Float64()/3, i), `{"error":"no tab"}`)
	}
	lines = append(lines, `{"nats":1e300,"h":{"a":[null,null]}}`, `{"nats":-1e300,"h":{}}`, `{"nats":null}`)
	sum := func() string {
		var s Sums
		text := strings.Join(lines, "\n") + "\n"
		for text != "" {
			n := min(1+rng.IntN(200), len(text))
			if _, err := s.Write([]byte(text[:n])); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		b, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := sum()
	if !strings.HasPrefix(first, `{"lines":1003,"rejected":1000,"sums":{"h":{"a":[`) || !strings.Contains(first, `,null,499500]},"nats":`) {
		t.Errorf("sums %s", first)
	}
	for range 5 {
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		if again := sum(); again != first {
			t.Errorf("in another order\n%s, not\n%s", again, first)
		}
	}
	for line, want := range map[string]string{
		"1\t2\t\n": "line 1: is not JSON, which sums require; run the command with --json", "1\n": "line 1: is neither a JSON object nor a list",
		"{\"translation\":\"x\"}\n": "line 1: contains x, which cannot be summed",
		"{\"a\":1}\n{\"a\":[1]}\n":  "line 2: has a list where lines before have a number", "{\"a\":[{}]}\n{\"a\":[2]}\n": "line 2: has a number where lines before have an object",
	} {
		if _, err := new(Sums).Write([]byte(line)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}
