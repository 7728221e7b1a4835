package heads

// Visible returns for each query how many keys it can attend to; they are the
// first ones. In a Decoder these are the keys up to its own place, in layers of
// other kinds all Lk: a record does not tell of other masks.
func (l *Layer) Visible() []int {
	s := l.scale()
	list := make([]int, len(l.Queries))
	for i := range list {
		list[i] = s.visible(i)
	}
	return list
}
