//go:build unix

package par

import "os"

// alarm wakes a goroutine that blocks. It is a pipe, because a goroutine that a channel wakes is queued at the
// processor of the one that woke it, and another processor takes it over only after a pause of the scheduler: 130 µs
// where a pipe takes 10 to 45.
type alarm struct {
	channel chan struct{} // used if there is no pipe, because the process may open no more files
	in, out *os.File
	opened  bool
	read    [1]byte
}

func newAlarm() alarm { return alarm{channel: make(chan struct{}, 1)} }

// open is called before the first call of ring or wait.
func (a *alarm) open() {
	if a.opened {
		return
	}
	a.opened = true
	if in, out, err := os.Pipe(); err == nil {
		a.in, a.out = in, out
	}
}

// ring lets one call of wait return. Between two calls of ring is a call of wait.
func (a *alarm) ring() {
	if a.out == nil {
		a.channel <- struct{}{}
		return
	}
	a.out.Write(one)
}

var one = []byte{1}

func (a *alarm) wait() {
	if a.in == nil {
		<-a.channel
		return
	}
	a.in.Read(a.read[:])
}
