//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/attn-go/attn/viz"
)

// askLight queries the terminal, once, for a light background. If the terminal does not respond within
// 300 ms, the background is unknown.
var askLight = sync.OnceValues(func() (light, ok bool) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false, false
	}
	defer tty.Close()
	if tty.SetReadDeadline(time.Now().Add(300*time.Millisecond)) != nil {
		return false, false // reading could block without end
	}
	// Otherwise the system stops a background process that changes the terminal.
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN)
	defer signal.Reset(syscall.SIGTTOU, syscall.SIGTTIN)
	// Not Fd: it makes the file blocking, which disables the deadline.
	raw, err := tty.SyscallConn()
	if err != nil {
		return false, false
	}
	var before *term.State
	if raw.Control(func(fd uintptr) { before, err = term.MakeRaw(int(fd)) }) != nil || err != nil {
		return false, false
	}
	defer raw.Control(func(fd uintptr) { term.Restore(int(fd), before) })
	if _, err := tty.WriteString(viz.AskBackground); err != nil {
		return false, false
	}
	var reply strings.Builder
	b := make([]byte, 64)
	for reply.Len() < 256 {
		n, err := tty.Read(b)
		reply.Write(b[:n])
		// The response to the second query comes last.
		if _, attributes, found := strings.Cut(reply.String(), "\x1b[?"); err != nil || found && strings.Contains(attributes, "c") {
			break
		}
	}
	return viz.ParseBackground(reply.String())
})
