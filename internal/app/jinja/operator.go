package jinja

// compares evaluates a op b. Values of different types are never equal, but ordering them is an error.
func compares(r *run, op string, a, b any) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return contains(r, b, a)
	case "not in":
		return !contains(r, b, a)
	}
	c := r.order(a, b)
	return op == "<" && c < 0 || op == "<=" && c <= 0 || op == ">" && c > 0 || op == ">=" && c >= 0
}

// negative evaluates -v.
func negative(v any) any {
	n, ok := toInt(v)
	if !ok {
		fail("- is not supported for %s", typeName(v))
	}
	return number{whole(-n.n), n.user}
}

// binary evaluates x op y.
func binary(r *run, op string, x, y any) any {
	if op == "~" {
		return join(r, text{}, x, y)
	}
	if op == "+" {
		if sum := joint(r, x, y); sum != nil {
			return sum
		}
	}
	m, isM := toInt(x)
	n, isN := toInt(y)
	if !isM || !isN {
		for _, v := range []any{y, x} {
			if u, ok := v.(undefined); ok {
				fail("%s is undefined", u.name)
			}
		}
		fail("%s is not supported for %s and %s", op, typeName(x), typeName(y))
	}
	return number{arithmetic(op, m.n, n.n), m.user || n.user}
}

// joint returns x + y for two texts, two lists or two tuples, and nil for other values.
// A text plus a number is an error in Python, and here; ~ writes both as text.
func joint(r *run, x, y any) any {
	switch a := x.(type) {
	case text:
		if is[text](y) {
			return join(r, text{}, x, y)
		}
	case *list:
		if b, ok := y.(*list); ok && a.kind == b.kind && a.kind <= tupleKind {
			r.charge(len(a.items)+len(b.items), 16)
			return &list{items: append(append([]any{}, a.items...), b.items...), kind: a.kind}
		}
	}
	return nil
}
