//go:build !unix

package par

// alarm wakes a goroutine that blocks.
type alarm struct{ channel chan struct{} }

func newAlarm() alarm { return alarm{make(chan struct{}, 1)} }

// open is called before the first call of ring or wait.
func (a *alarm) open() {}

// ring lets one call of wait return. Between two calls of ring is a call of wait.
func (a *alarm) ring() { a.channel <- struct{}{} }

func (a *alarm) wait() { <-a.channel }
