package quote

import (
	"strconv"
	"strings"
)

// Shell quotes a file name so that it can be pasted into a shell.
func Shell(path string) string {
	if !Fit(path) { // the syntax of bash, zsh and ksh
		escaped := strconv.Quote(path)
		return "$'" + strings.ReplaceAll(escaped[1:len(escaped)-1], "'", `\'`) + "'"
	}
	plain := func(r rune) bool {
		return r >= 0x80 || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' ||
			strings.ContainsRune(`/\:._-+,@%=`, r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
