//go:build (amd64 || arm64) && !purego

package par

// pause takes a fraction of a microsecond. It tells the processor that the thread waits for another, so that it uses
// less power and leaves more to a thread that shares the core. (PAUSE takes 40 to 140 cycles on amd64, and YIELD about
// one on most processors for arm64.)
//
//go:noescape
func pause()
