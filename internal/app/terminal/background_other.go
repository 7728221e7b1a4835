//go:build !unix

package terminal

// askLight reports that the terminal's background is unknown.
func askLight() (light, ok bool) { return false, false }
