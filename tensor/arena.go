package tensor

// arena hands out slices from large blocks and takes them all back at once.
// After a few rounds of similar size it allocates nothing.
type arena[T any] struct {
	blocks [][]T
	block  int // index of the block in use
	used   int // elements of it handed out
}

// Blocks double in size from the first to the largest, so that small tapes
// stay small and large ones have few blocks.
const (
	firstBlock   = 1 << 10
	largestBlock = 1 << 22
)

// take returns n elements with arbitrary contents.
func (a *arena[T]) take(n int) []T {
	for ; a.block < len(a.blocks); a.block, a.used = a.block+1, 0 {
		if b := a.blocks[a.block]; a.used+n <= len(b) {
			s := b[a.used : a.used+n : a.used+n]
			a.used += n
			return s
		}
	}
	length := firstBlock
	if len(a.blocks) > 0 {
		length = min(2*len(a.blocks[len(a.blocks)-1]), largestBlock)
	}
	a.blocks = append(a.blocks, make([]T, max(n, length)))
	a.used = n
	return a.blocks[a.block][:n:n]
}

// reset takes everything back.
func (a *arena[T]) reset() { a.block, a.used = 0, 0 }
