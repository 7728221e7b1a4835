//go:build !(amd64 || arm64) || purego

package par

// pause takes a fraction of a microsecond.
func pause() {
	for range 100 {
	}
}
