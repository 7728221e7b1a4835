package par

import "runtime"

// Await returns when ready returns true. A body of For may only wait for work that another call of the body has begun
// and completes without waiting for this one: for anything else it could wait forever.
func Await(ready func() bool) {
	for i := 1; !ready(); i++ {
		if pause(); i%64 == 0 {
			runtime.Gosched()
		}
	}
}
