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

// askLight asks the terminal, once, whether its background is light. Of one that does
// not answer at once nothing is known.
var askLight = sync.OnceValues(func() (light, ok bool) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false, false
	}
	defer tty.Close()
	if tty.SetReadDeadline(time.Now().Add(300*time.Millisecond)) != nil {
		return false, false // reading could wait for ever
	}
	// A program in the background would be stopped for touching the terminal.
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN)
	defer signal.Reset(syscall.SIGTTOU, syscall.SIGTTIN)
	// Not by Fd, which would make reading wait whatever the deadline.
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
		// The answer to the second question ends all.
		if _, attributes, found := strings.Cut(reply.String(), "\x1b[?"); err != nil || found && strings.Contains(attributes, "c") {
			break
		}
	}
	return viz.ParseBackground(reply.String())
})
