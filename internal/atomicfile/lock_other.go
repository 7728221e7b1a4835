//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package atomicfile

import "io"

func lockFolder(string) (io.Closer, error) { return io.NopCloser(nil), nil }
