//go:build !unix

package par

import "runtime"

// breathe lets other goroutines run.
func breathe() { runtime.Gosched() }
