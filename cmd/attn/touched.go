package main

import (
	"io"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/guard"
	"github.com/attn-go/attn/internal/progress"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/internal/texts"
)

// place is a file or a directory that a flag names.
type place struct{ flag, path string }

func places(list []place) (all []guard.Place) {
	for _, p := range list {
		all = append(all, guard.Place{Flag: p.flag, Path: p.path})
	}
	return all
}

// touched lists the files that a command reads and writes, for commands whose flags do not have the
// tags of package guard.
type touched struct {
	reads, models, writes, makes []place
	stdin                        bool
}

func ready(files []place) error { return guard.Ready(places(files)) }

// filesOf returns the files that a command reads and writes.
func filesOf(command *kong.Node) guard.Files {
	if cmd, ok := command.Target.Addr().Interface().(interface{ touches() touched }); ok {
		t := cmd.touches()
		return guard.Files{
			Reads: places(t.reads), Models: places(t.models), Writes: places(t.writes), Makes: places(t.makes), Stdin: t.stdin,
		}
	}
	return guard.Of(command)
}

// stages is the progress of attn heads and attn prune.
type stages struct{ *progress.Stages }

func newStages(w io.Writer) *stages { return &stages{progress.NewStages(w)} }

func (s *stages) tell(name string, done, all int) { s.Tell(name, done, all) }

func (s *stages) clear() { s.Clear() }

const longestPair = texts.LongestPair

type number = strictjson.Number
