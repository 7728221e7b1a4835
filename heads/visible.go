package heads

// Visible returns for each query the number n of keys that it can attend to: the first n keys. In a Decoder
// these are the keys up to the query's own position, in layers of other kinds all Lk. A record does not
// contain other masks.
func (l *Layer) Visible() []int {
	s := l.scale()
	list := make([]int, len(l.Queries))
	for i := range list {
		list[i] = s.visible(i)
	}
	return list
}
