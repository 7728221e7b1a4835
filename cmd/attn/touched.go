package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tokenizer"
	"github.com/attn-go/attn/train"
)

// place is a file or a directory that a flag names; without a path it was not given.
type place struct{ flag, path string }

// touched is what a command reads and writes. It is checked before the command
// runs: no output may take the place of an input or of another output.
type touched struct {
	reads   []place
	tensors []place // what safetensors.Open takes
	models  []place // directories of models that are read
	writes  []place
	makes   []place // directories of models that are written
	// stdin says that standard input is read, and stdout that "-" among writes is
	// standard output.
	stdin, stdout bool
}

// toucher is a command: every one says which files it reads and writes, if any.
type toucher interface{ touches() touched }

// runFiles returns the names of what attn train and attn prune write to the directory of a
// run.
func runFiles() []string {
	return append(train.RunFiles(), reportFile, unfinishedFile)
}

// check returns the outputs, or a usage error if one would overwrite an input or another
// output, under whatever name: links, other spellings of a path, and, where there
// is nothing yet, letters that differ only in case; or an error if an output cannot be
// written where it is to be. Which files a pretrained model has is known when it is loaded:
// see load.
func (t touched) check(c console) ([]file, error) {
	for _, p := range t.makes {
		if p.path == "-" {
			return nil, usage("%s -: want a directory, not standard output", p.flag)
		}
		if at := identify(p.path).exists; p.path != "" && at != nil && !at.IsDir() {
			return nil, fmt.Errorf("write to %s: %s is a file, want a folder", p.path, at.Name())
		}
	}
	inputs, outputs := t.inputs(c), t.outputs(c)
	for i, out := range outputs {
		if out.path == "-" && !t.stdout {
			return nil, usage("%s -: want a file, not standard output", out.flag)
		}
		if err := out.replaces(inputs); err != nil {
			return nil, err
		}
		for _, other := range outputs[:i] {
			if out.dir != "" && other.dir != "" || !out.is(other.identity) {
				continue // what a model's directory holds twice is the model's business
			}
			return nil, twice(other, out)
		}
	}
	return outputs, ready(slices.DeleteFunc(slices.Clone(t.writes), func(p place) bool {
		// What goes into a directory that is still to be made can wait for it.
		return slices.ContainsFunc(t.makes, func(made place) bool { return sameFile(filepath.Dir(p.path), made.path) })
	}))
}

// load loads a model from a directory, or returns a usage error if the command is to write
// one of the files that it was read from.
func load[M interface{ Files() []string }](c console, from func(string, models.Options) (M, error), dir string, o models.Options) (M, error) {
	m, err := from(dir, o)
	if err == nil {
		err = c.reads(dir, m.Files())
	}
	if err != nil {
		var none M
		return none, err
	}
	return m, nil
}

// loadTokenizer is load for a directory of which only the tokenizer is read.
func loadTokenizer(c console, dir string) (*tokenizer.Tokenizer, error) {
	return load(c, func(dir string, _ models.Options) (*tokenizer.Tokenizer, error) { return tokenizer.Load(dir) }, dir, models.Options{})
}

// reads returns a usage error if the command is to write one of the files that the model in
// a directory is read from.
func (c console) reads(dir string, paths []string) error {
	var inputs []file
	for _, path := range paths {
		inputs = append(inputs, file{place: place{"--model", path}, dir: dir, identity: identify(path)})
	}
	for _, out := range c.writes {
		if err := out.replaces(inputs); err != nil {
			return err
		}
	}
	return nil
}

// replaces returns a usage error if an output would take the place of an input.
func (f file) replaces(inputs []file) error {
	for _, in := range inputs {
		switch {
		case !f.is(in.identity):
		case in.dir != "":
			return usage("%v would overwrite a file of the model in %s", f, quoted(in.dir))
		case in.path == "":
			return usage("%v would overwrite %v", f, in)
		default:
			return usage("%v would overwrite %s, which %s reads", f, quoted(in.path), in.flag)
		}
	}
	return nil
}

// twice says which two outputs are one file.
func twice(a, b file) error {
	if b.dir != "" {
		a, b = b, a
	}
	switch {
	case a.dir != "":
		return usage("%v would overwrite a file of the model in %s", b, quoted(a.dir))
	case b.path == "-":
		return usage("%s and %s are both standard output", a.flag, b.flag)
	case a.path == b.path:
		return usage("%s and %s are both %s", a.flag, b.flag, quoted(a.path))
	}
	return usage("%v and %v are one file", a, b)
}

// file is a file that a command reads or writes.
type file struct {
	place        // the path is empty for a standard stream, which flag then names
	dir   string // the directory of a model that the file is part of, or empty
	identity
}

// String returns the file as it stands on the command line.
func (f file) String() string {
	switch {
	case f.path == "":
		return f.flag
	case f.dir != "":
		return f.flag + " " + quoted(f.dir)
	}
	return f.flag + " " + quoted(f.path)
}

// inputs returns every file that is read.
func (t touched) inputs(c console) []file {
	list := files(t.reads, t.models)
	for _, p := range t.tensors {
		list = append(list, files([]place{p}, nil)...)
		if r, err := safetensors.Open(p.path); err == nil { // else the command says what is wrong
			for _, path := range r.Files() {
				list = append(list, file{place: place{p.flag, path}, identity: identify(path)})
			}
			r.Close()
		}
	}
	if id, ok := streamIdentity(c.in); ok && t.stdin {
		list = append(list, file{place: place{flag: "standard input"}, identity: id})
	}
	return list
}

// outputs returns every file that is written. Standard output is one wherever it
// goes to a file.
func (t touched) outputs(c console) []file {
	var list []file
	if id, ok := streamIdentity(c.out); ok {
		list = append(list, file{place: place{flag: "standard output"}, identity: id})
	}
	return append(list, files(t.writes, t.makes)...)
}

func files(single, models []place) []file {
	var list []file
	for _, p := range single {
		switch p.path {
		case "":
		case "-": // which is the same as itself, and no file
			list = append(list, file{place: p, identity: identity{rest: "-"}})
		default:
			list = append(list, file{place: p, identity: identify(p.path)})
		}
	}
	for _, p := range models {
		if p.path == "" {
			continue
		}
		for _, name := range runFiles() {
			path := p.path + string(filepath.Separator) + name // not cleaned: a link's parent is not where its name stands
			list = append(list, file{place: place{p.flag, path}, dir: p.path, identity: identify(path)})
		}
	}
	return list
}

// identity is where a path leads: to what exists, or below it to a place where there
// is nothing yet.
type identity struct {
	exists fs.FileInfo
	rest   string // of the path, below what exists
}

// identify follows a path as far as there is something. A link to nothing is a
// place of its own: writing replaces it.
func identify(path string) identity {
	rest := ""
	for at := path; ; {
		if info, err := os.Stat(at); err == nil {
			return identity{info, rest}
		}
		at = strings.TrimRight(at, string(filepath.Separator))
		dir, base := filepath.Split(at)
		if base == "." || base == ".." || base == "" { // of what is not there
			if clean := filepath.Join(at, rest); clean != path {
				return identify(clean)
			}
			return identity{nil, path}
		}
		if dir == "" {
			dir = "."
		} else if short := strings.TrimRight(dir, string(filepath.Separator)); short != filepath.VolumeName(dir) {
			dir = short // with a separator behind it, a file is not found
		}
		at, rest = dir, filepath.Join(base, rest)
	}
}

// is reports whether two paths lead to one place. Names that differ only in case
// are one place on some file systems; where both are still to be made that is
// reason enough.
func (a identity) is(b identity) bool {
	if (a.exists == nil) != (b.exists == nil) || a.exists != nil && !os.SameFile(a.exists, b.exists) {
		return false
	}
	return strings.EqualFold(a.rest, b.rest)
}

// sameFile reports whether two paths lead to one place, where there may be nothing
// yet.
func sameFile(a, b string) bool { return identify(a).is(identify(b)) }

// streamIdentity returns the regular file that a standard stream comes from or goes
// to, if there is one.
func streamIdentity(stream any) (identity, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return identity{}, false
	}
	info, err := f.Stat()
	return identity{exists: info}, err == nil && info.Mode().IsRegular()
}
