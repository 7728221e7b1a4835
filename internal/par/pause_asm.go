//go:build (amd64 || arm64) && !purego

package par

// pause takes about a tenth of a microsecond. It tells the processor that the thread waits for another, so that it uses
// less power and leaves more to a thread that shares the core.
//
//go:noescape
func pause()
