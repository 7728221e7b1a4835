package view

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/attn-go/attn/internal/quote"
)

// CheckAddress returns an error if addr is not HOST:PORT.
func CheckAddress(addr string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("--addr %s, want HOST:PORT", addr)
	}
	return nil
}

// ServeAt calls Serve at an address that CheckAddress has accepted, until the context ends. It
// writes the page's address to out and other messages to messages. If open is set, it opens the
// page in a browser.
func (s *Server) ServeAt(ctx context.Context, addr string, open bool, out, messages io.Writer) error {
	s.host, _, _ = net.SplitHostPort(addr)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program; omit --addr to use a free port", addr)
	}
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // the rest of its text repeats the address
		}
		return fmt.Errorf("cannot serve at %s: %w", addr, err)
	}
	at, _ := netip.ParseAddrPort(l.Addr().String())
	shown := at.String()
	if at.Addr().IsUnspecified() { // listening on all addresses, and browsers need one of them
		shown = fmt.Sprintf("localhost:%d", at.Port())
	}
	address := s.Address(shown)
	fmt.Fprintln(out, address)
	if !at.Addr().Unmap().IsLoopback() {
		fmt.Fprintln(messages, "other machines can reach this address, and the connection is not encrypted")
	}
	fmt.Fprintln(messages, "Ctrl-C ends it")
	if open {
		launcher, err := openBrowser(address)
		if err != nil {
			fmt.Fprintln(messages, quote.Message(fmt.Sprintf("cannot open a browser: %v", err)))
		}
		defer os.RemoveAll(launcher)
	}
	if err := s.Serve(ctx, l); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // Ctrl-C is not an error
}

// openBrowser opens an address in the default browser and does not wait for it. Every
// user of a machine can read the arguments of its processes, and the address contains a
// token, so the argument is a file that redirects to the address. Only this user can
// open the directory of the file. openBrowser returns the directory; the caller removes
// it.
func openBrowser(address string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "attn-view-"); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "open.html")
	page := fmt.Sprintf(launcherPage, html.EscapeString(address))
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		return dir, err
	}
	name, args := "xdg-open", []string{path}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", path}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return dir, err
	}
	go cmd.Wait()
	return dir, nil
}

const launcherPage = `<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url=%[1]s">
<title>attn view</title>
<p><a href="%[1]s">Open attn view</a>
</html>
`
