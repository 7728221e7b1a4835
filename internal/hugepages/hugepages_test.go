package hugepages

import "testing"

// Memory of any size is zero and completely writable.
func TestMake(t *testing.T) {
	for _, n := range []int{0, 1, 31, 8191, 32768, 1<<19 + 7, 3<<19 + 1} {
		x := Make[float32](n)
		if len(x) != n {
			t.Fatalf("%d elements, want %d", len(x), n)
		}
		for i, v := range x {
			if v != 0 {
				t.Fatalf("%d: element %d is %v", n, i, v)
			}
			x[i] = float32(i)
		}
		for i, v := range x {
			if v != float32(i) {
				t.Fatalf("%d: element %d is %v", n, i, v)
			}
		}
	}
}
