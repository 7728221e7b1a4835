//go:build !unix

package terminal

// askLight reports that nothing is known of the terminal's background.
func askLight() (light, ok bool) { return false, false }
