package jinja

type loop struct {
	names           []string
	over, filter    expression
	body, otherwise []statement
}

func (l loop) exec(r *run, s *scope) jump {
	chosen := iterate(r, r.value(l.over, s))
	if l.filter != nil {
		var kept []any // loop.length and the like are of these
		for _, v := range chosen {
			inner := r.inner(s)
			bind(inner, l.names, v)
			if truth(r.value(l.filter, inner)) {
				kept = append(kept, v)
			}
		}
		chosen = kept
	}
	ended := false // a body came to its end, which is what Jinja asks for, and not for elements
	for i, v := range chosen {
		r.step()
		inner := r.inner(s)
		bind(inner, l.names, v)
		inner.names["loop"] = loopState{chosen, i}
		j := r.all(l.body, inner)
		if j == "break" {
			break
		}
		ended = ended || j == ""
	}
	if ended {
		return ""
	}
	return r.all(l.otherwise, r.inner(s))
}

// loopState is the variable loop.
type loopState struct {
	items []any
	at    int
}

func (l loopState) get(name string) any {
	i, n := l.at, len(l.items)
	switch name {
	case "index":
		return int64(i + 1)
	case "index0":
		return int64(i)
	case "revindex":
		return int64(n - i)
	case "revindex0":
		return int64(n - i - 1)
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return int64(n)
	case "previtem":
		if i > 0 {
			return l.items[i-1]
		}
		return undefined{name}
	case "nextitem":
		if i < n-1 {
			return l.items[i+1]
		}
		return undefined{name}
	}
	fail("loop.%s is not known", name)
	return nil
}
