package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/view"
	"github.com/attn-go/attn/seq2seq"
)

type viewCommand struct {
	Model   string   `help:"Directory of the model." placeholder:"DIR"`
	Weights []string `help:"Safetensors file with weights [H Lq Lk]; can be given several times." placeholder:"FILE" sep:"none"`
	Addr    string   `default:"127.0.0.1:0" help:"Address to serve at; port 0 is a free one." placeholder:"HOST:PORT"`
	Open    bool     `help:"Open the page in the browser."`
	Text    []string `arg:"" optional:"" help:"Texts to begin with."`
}

func (viewCommand) Help() string {
	return `Examples:

  attn view --model runs/dates "tuesday 5 march 2019"
  attn view --weights bert.safetensors --open
  attn view --model runs/fra.run --addr 127.0.0.1:8080

The page shows every head. It is served until Ctrl-C, and to this machine only unless
--addr says otherwise. Standard output gets its address and nothing else.`
}

// Validate is called by the parser.
func (cmd *viewCommand) Validate() error {
	switch {
	case (cmd.Model == "") == (len(cmd.Weights) == 0):
		return errors.New("want either --model or --weights")
	case cmd.Model == "" && len(cmd.Text) > 0:
		return errors.New("texts go with --model")
	}
	if _, _, err := net.SplitHostPort(cmd.Addr); err != nil {
		return fmt.Errorf("--addr %s, want HOST:PORT", cmd.Addr)
	}
	return nil
}

func (cmd *viewCommand) touches() touched {
	t := touched{models: []place{{"--model", cmd.Model}}}
	for _, path := range cmd.Weights {
		t.reads = append(t.reads, place{"--weights", path})
	}
	return t
}

func (cmd *viewCommand) Run(ctx context.Context, c console) error {
	o, err := cmd.options(ctx, c)
	if err != nil {
		return err
	}
	o.Host, _, _ = net.SplitHostPort(cmd.Addr)
	server, err := view.New(o)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cmd.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program; without --addr a free port is taken", cmd.Addr)
	}
	if err != nil {
		return fmt.Errorf("cannot serve at %s: %w", cmd.Addr, cause(err))
	}
	at, _ := netip.ParseAddrPort(l.Addr().String())
	shown := at.String()
	if at.Addr().IsUnspecified() { // every address; that is none to go to
		shown = fmt.Sprintf("localhost:%d", at.Port())
	}
	fmt.Fprintf(c.out, "http://%s/\n", shown)
	if !at.Addr().Unmap().IsLoopback() {
		fmt.Fprintln(c.err, "everybody who reaches this machine can see the page")
	}
	fmt.Fprintln(c.err, "Ctrl-C ends it")
	if cmd.Open {
		if err := openBrowser("http://" + shown + "/"); err != nil {
			fmt.Fprintf(c.err, "no browser could be opened: %v\n", err)
		}
	}
	if err := server.Serve(ctx, l); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // Ctrl-C is how it ends
}

// options loads what is to be shown.
func (cmd *viewCommand) options(ctx context.Context, c console) (view.Options, error) {
	if cmd.Model == "" {
		o := view.Options{Name: filepath.Base(cmd.Weights[0])}
		for _, path := range cmd.Weights {
			r, err := heads.Read(path)
			if err != nil {
				return o, err
			}
			o.Records = append(o.Records, r)
		}
		return o, nil
	}
	m, err := seq2seq.Load(cmd.Model)
	if err != nil {
		return view.Options{}, err
	}
	model := translatorSource{m, newUnknown(c.err)}
	o := view.Options{Name: filepath.Base(filepath.Clean(cmd.Model)), Source: model, MaxText: longestText}
	for i, text := range cmd.Text {
		if err := checkText("argument", i+1, text); err != nil {
			return o, err
		}
		r, err := model.Look(ctx, text, "")
		if err != nil {
			return o, err
		}
		o.Records = append(o.Records, r)
	}
	return o, nil
}

// translatorSource is a translator that the page can ask.
type translatorSource struct {
	m       *seq2seq.Translator
	unknown *unknowns
}

const (
	mostTokens  = 2048      // of a text
	mostWeights = 128 << 20 // of a record
)

// mostTokens bounds what a text may ask for: each head has as many weights as
// there are pairs of tokens, and a layer may look in three ways.
func (s translatorSource) mostTokens() int {
	all := 3 * max(1, s.m.Config.Heads) * s.m.Config.Layers
	return min(mostTokens, int(math.Sqrt(float64(mostWeights/all))))
}

// Look is asked by the page, one text after the other.
func (s translatorSource) Look(ctx context.Context, source, target string) (*heads.Record, error) {
	most := s.mostTokens()
	if n := len(s.m.Source.Encode(source)); n > most {
		return nil, fmt.Errorf("the text has %d tokens, want at most %d", n, most)
	}
	if n := len(s.m.Target.Encode(target)); n > most {
		return nil, fmt.Errorf("the translation has %d tokens, want at most %d", n, most)
	}
	s.unknown.source(s.m, source)
	s.unknown.target(s.m, target)
	if target == "" {
		written, err := s.m.Translate(ctx, []string{source}, seq2seq.Decoding{Beam: 1})
		if err != nil {
			return nil, err
		}
		target = written[0]
	}
	return s.m.Look(source, target, heads.RecorderOptions{})
}

// cause returns what is at the bottom of a network error: the rest of its text
// says again what we have said.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// openBrowser asks the system to show an address, and does not wait.
func openBrowser(url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait()
	return nil
}
