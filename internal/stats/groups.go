package stats

// GroupBy returns the indexes of the elements with the same key, in order. Groups are in the order of their
// first elements.
func GroupBy[E any](list []E, key func(E) string) (groups [][]int) {
	at := make(map[string]int, len(list))
	for i, e := range list {
		k := key(e)
		n, known := at[k]
		if !known {
			n = len(groups)
			at[k], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// Numbers returns the numbers from 0 to n-1.
func Numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Pick returns the elements of x at some places.
func Pick[T any](x []T, at []int) []T {
	y := make([]T, len(at))
	for i, n := range at {
		y[i] = x[n]
	}
	return y
}
