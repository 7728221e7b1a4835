package shards

import (
	"bytes"
	"encoding/json"

	"github.com/attn-go/attn/internal/exact"
)

// Sums adds up the numbers in lines of JSON, which must all have the same form: objects and lists of numbers. Sums
// are exact and rounded once, at the end, so they do not depend on the order of the lines.
//
// Null values are not counted, nor are lines replaced by an error.
type Sums struct {
	// Job identifies the job that the lines are from, if known.
	Job      *Identity
	Lines    int64
	Rejected int64
	root     node
	rest     []byte // an incomplete last line
}

// node is the sum of the numbers at the same place in all lines, or contains the nodes of an object or list.
type node struct {
	kind   string // as returned by kindOf
	count  int64
	sum    *exact.Sum
	fields map[string]*node
	list   []*node
}

// Write adds lines.
func (s *Sums) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, after, whole := bytes.Cut(b, []byte("\n"))
		s.rest = append(s.rest, line...)
		if !whole {
			return n, nil
		}
		if err := s.line(s.rest); err != nil {
			return 0, bad("line %d: %w", s.Lines+s.Rejected+1, err)
		}
		s.rest, b = s.rest[:0], after
	}
}

func (s *Sums) line(text []byte) error {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return bad("is not JSON, which sums require; run the command with --json")
	}
	switch v := v.(type) {
	case map[string]any:
		if _, failed := v["error"].(string); failed && len(v) == 1 {
			s.Rejected++
			return nil
		}
	case []any:
	default:
		return bad("is neither a JSON object nor a list")
	}
	if err := s.root.add(v); err != nil {
		return err
	}
	s.Lines++
	return nil
}

// add adds the numbers of a value.
func (n *node) add(v any) error {
	if k := kindOf(v); k != "" && n.kind != k {
		if n.kind != "" {
			return bad("has %s where lines before have %s", k, n.kind)
		}
		n.kind = k
	}
	switch v := v.(type) {
	case nil:
	case float64:
		if n.sum == nil {
			n.sum = new(exact.Sum)
		}
		n.sum.Add(v)
		n.count++
	case []any:
		for len(n.list) < len(v) {
			n.list = append(n.list, new(node))
		}
		for i, e := range v {
			if err := n.list[i].add(e); err != nil {
				return err
			}
		}
	case map[string]any:
		if n.fields == nil {
			n.fields = map[string]*node{}
		}
		for key, e := range v {
			if n.fields[key] == nil {
				n.fields[key] = new(node)
			}
			if err := n.fields[key].add(e); err != nil {
				return err
			}
		}
	default:
		return bad("contains %v, which cannot be summed", v)
	}
	return nil
}

// kindOf returns the kind of a value, or "" for null and for values that cannot be added.
func kindOf(v any) string {
	switch v.(type) {
	case float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return ""
}

// MarshalJSON writes the sums and means in the form of a line, and the job. Places without numbers are null.
func (s *Sums) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		*Identity
		Lines    int64 `json:"lines"`
		Rejected int64 `json:"rejected"`
		Sums     any   `json:"sums"`
		Means    any   `json:"means"`
	}{s.Job, s.Lines, s.Rejected, s.root.form((*node).total), s.root.form((*node).mean)})
}

func (n *node) total() float64 { return n.sum.Float64() }

func (n *node) mean() float64 { return n.sum.Mean(n.count) }

// form returns the nodes in the form of a line.
func (n *node) form(value func(*node) float64) any {
	switch {
	case n.fields != nil:
		all := map[string]any{}
		for key, e := range n.fields {
			all[key] = e.form(value)
		}
		return all
	case n.list != nil:
		var all []any
		for _, e := range n.list {
			all = append(all, e.form(value))
		}
		return all
	case n.sum == nil:
		return nil
	}
	return value(n)
}
