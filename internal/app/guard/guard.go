// Package guard prevents a command from overwriting its inputs. It also finds outputs that cannot be
// written before the work starts.
package guard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/safetensors"
)

// Place is a file or a directory that a flag names. An empty path means that the flag is not given.
type Place struct{ Flag, Path string }

// Files lists the files that a command reads and writes.
type Files struct {
	Reads   []Place
	Tensors []Place // files or folders for safetensors.Open
	Models  []Place // directories of models that are read
	Writes  []Place
	Makes   []Place // directories of models that are written
	// Stdin: the command reads standard input. Stdout: "-" in Writes is standard output.
	Stdin, Stdout bool
}

// Of returns the files that the flags and arguments of a command name. It finds them by their
// placeholders FILE, DIR (of a model) and GLOB, and by their tags:
//
//	writes:"file"      an output file; "-" allows standard output, too; "model" is an output directory
//	reads:"tensors"    a file or folder for safetensors.Open
//	stdin:""           the command reads standard input unless a flag with this tag is given
//
// An Adjuster can then change the result.
func Of(command *kong.Node) (f Files) {
	instead := false // of standard input
	for _, v := range flags.Values(command) {
		given := slices.DeleteFunc(flags.Texts(v.Target), func(text string) bool { return text == "" })
		f.Stdin, instead = f.Stdin || v.Tag.Has("stdin"), instead || v.Tag.Has("stdin") && len(given) > 0
		if !flags.IsPath(v) {
			continue
		}
		list, name := &f.Reads, v.Name
		if v.Flag != nil {
			name = flags.Name(v)
		}
		switch kind := v.Tag.Get("writes"); {
		case kind == "model":
			list = &f.Makes
		case kind != "":
			list, f.Stdout = &f.Writes, f.Stdout || kind == "-"
		case v.Tag.Get("reads") == "tensors":
			list = &f.Tensors
		case v.Tag.PlaceHolder == "DIR":
			list = &f.Models
		}
		for _, path := range given {
			paths := []string{path}
			if v.Tag.PlaceHolder == "GLOB" {
				paths, _ = filepath.Glob(path) // the command reports an invalid pattern
			}
			for _, path := range paths {
				*list = append(*list, Place{name, path})
			}
		}
	}
	f.Stdin = f.Stdin && !instead
	if a, ok := command.Target.Addr().Interface().(Adjuster); ok {
		a.AdjustFiles(&f)
	}
	return f
}

// Adjuster is a command that changes the result of Of, if its files depend on several flags.
type Adjuster interface{ AdjustFiles(f *Files) }

// Outputs are the files that a command writes.
type Outputs []file

// Check returns the outputs. It returns a *flags.Error if an output would overwrite an input or another
// output, also through links and other spellings of a path. Names of new files that differ only in case
// count as equal. It returns another error if an output cannot be written at its path.
// In and out are the standard streams; modelFiles are the possible files in the directory of a model.
// For the files of a pretrained model, see Spare.
func (f Files) Check(in, out any, modelFiles []string) (Outputs, error) {
	for _, p := range f.Makes {
		if p.Path == "-" {
			return nil, flags.Errorf("%s -: want a directory, not standard output", p.Flag)
		}
		if at := identify(p.Path).exists; p.Path != "" && at != nil && !at.IsDir() {
			return nil, fmt.Errorf("write to %s: %s is a file, want a folder", p.Path, at.Name())
		}
	}
	inputs, outputs := f.inputs(in, modelFiles), f.outputs(out, modelFiles)
	for i, out := range outputs {
		if out.Path == "-" && !f.Stdout {
			return nil, flags.Errorf("%s -: want a file, not standard output", out.Flag)
		}
		if err := out.replaces(inputs); err != nil {
			return nil, err
		}
		for _, other := range outputs[:i] {
			if out.dir != "" && other.dir != "" || !out.is(other.identity) {
				continue // model directories may contain links to the same file
			}
			return nil, twice(other, out)
		}
	}
	return outputs, ready(slices.DeleteFunc(slices.Clone(f.Writes), func(p Place) bool {
		// The command creates these directories itself.
		return slices.ContainsFunc(f.Makes, func(made Place) bool {
			return identify(made.Path).rest != "" && Same(filepath.Dir(p.Path), made.Path)
		})
	}))
}

// ready returns an error if a file is a folder, or if no file can be written to its directory, before a command starts
// long work.
func ready(files []Place) error {
	for _, f := range files {
		if f.Path == "" || f.Path == "-" {
			continue
		}
		dir := filepath.Dir(f.Path)
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("write %s: %s is not a folder", f.Path, dir)
		}
		if err := atomicfile.Ready(f.Path); err != nil {
			return err
		}
	}
	return nil
}

// Spare returns a *flags.Error if an output is one of the files, at paths, of the model in a directory.
func (o Outputs) Spare(dir string, paths []string) error {
	var inputs []file
	for _, path := range paths {
		inputs = append(inputs, file{Place: Place{"--model", path}, dir: dir, identity: identify(path)})
	}
	for _, out := range o {
		if err := out.replaces(inputs); err != nil {
			return err
		}
	}
	return nil
}

// file is a file that a command reads or writes.
type file struct {
	Place        // for a standard stream, Path is empty and Flag is its name
	dir   string // the directory of the model that the file is part of, or ""
	identity
}

// String returns the flag and the path in the form of a command line.
func (f file) String() string {
	switch {
	case f.Path == "":
		return f.Flag
	case f.dir != "":
		return f.Flag + " " + quote.Shell(f.dir)
	}
	return f.Flag + " " + quote.Shell(f.Path)
}

// replaces returns an error if an output would overwrite an input.
func (f file) replaces(inputs []file) error {
	for _, in := range inputs {
		switch {
		case !f.is(in.identity):
		case in.dir != "":
			return flags.Errorf("%v would overwrite a file of the model in %s", f, quote.Shell(in.dir))
		case in.Path == "":
			return flags.Errorf("%v would overwrite %v", f, in)
		default:
			return flags.Errorf("%v would overwrite %s, which %s reads", f, quote.Shell(in.Path), in.Flag)
		}
	}
	return nil
}

// twice returns the error for two outputs that are the same file.
func twice(a, b file) error {
	if b.dir != "" {
		a, b = b, a
	}
	switch {
	case a.dir != "":
		return flags.Errorf("%v would overwrite a file of the model in %s", b, quote.Shell(a.dir))
	case b.Path == "-":
		return flags.Errorf("%s and %s are both standard output", a.Flag, b.Flag)
	case a.Path == b.Path:
		return flags.Errorf("%s and %s are both %s", a.Flag, b.Flag, quote.Shell(a.Path))
	}
	return flags.Errorf("%v and %v are the same file", a, b)
}

// inputs returns all input files.
func (f Files) inputs(stdin any, modelFiles []string) []file {
	list := append(single(f.Reads), inModels(f.Models, modelFiles)...)
	for _, p := range f.Tensors {
		list = append(list, single([]Place{p})...)
		if r, err := safetensors.Open(p.Path); err == nil { // otherwise the command reports the error
			for _, path := range r.Files() {
				list = append(list, file{Place: Place{p.Flag, path}, identity: identify(path)})
			}
			r.Close()
		}
	}
	if id, ok := streamIdentity(stdin); ok && f.Stdin {
		list = append(list, file{Place: Place{Flag: "standard input"}, identity: id})
	}
	return list
}

// outputs returns all output files, including standard output if it is redirected to a file.
func (f Files) outputs(stdout any, modelFiles []string) (list []file) {
	if id, ok := streamIdentity(stdout); ok {
		list = append(list, file{Place: Place{Flag: "standard output"}, identity: id})
	}
	return slices.Concat(list, single(f.Writes), inModels(f.Makes, modelFiles))
}

func single(places []Place) (list []file) {
	for _, p := range places {
		switch p.Path {
		case "":
		case "-": // equal only to another "-"
			list = append(list, file{Place: p, identity: identity{rest: "-"}})
		default:
			list = append(list, file{Place: p, identity: identify(p.Path)})
		}
	}
	return list
}

func inModels(dirs []Place, names []string) (list []file) {
	for _, p := range dirs {
		for _, name := range names {
			path := p.Path + string(filepath.Separator) + name // not cleaned: dir/.. may be elsewhere if dir is a link
			list = append(list, file{Place: Place{p.Flag, path}, dir: p.Path, identity: identify(path)})
		}
	}
	return list
}

// identity is the location of a path: its longest existing part, and the remaining part as text.
type identity struct {
	exists fs.FileInfo
	rest   string // the part of the path that does not exist
}

// identify returns the location of a path. A dangling link is a separate location: writing replaces
// the link.
func identify(path string) identity {
	rest := ""
	for at := path; ; {
		if info, err := os.Stat(at); err == nil {
			return identity{info, rest}
		}
		at = strings.TrimRight(at, string(filepath.Separator))
		dir, base := filepath.Split(at)
		if base == "." || base == ".." || base == "" { // relative to a missing directory
			if clean := filepath.Join(at, rest); clean != path {
				return identify(clean)
			}
			return identity{nil, path}
		}
		if dir == "" {
			dir = "."
		} else if short := strings.TrimRight(dir, string(filepath.Separator)); short != filepath.VolumeName(dir) {
			dir = short // os.Stat fails for a file with a trailing separator
		}
		at, rest = dir, filepath.Join(base, rest)
	}
}

// is reports whether two paths are the same location. Names of new files that differ only in case
// count as the same, because they are on some file systems.
func (a identity) is(b identity) bool {
	if (a.exists == nil) != (b.exists == nil) || a.exists != nil && !os.SameFile(a.exists, b.exists) {
		return false
	}
	return strings.EqualFold(a.rest, b.rest)
}

// Same reports whether two paths, of existing or new files, are the same location.
func Same(a, b string) bool { return identify(a).is(identify(b)) }

// streamIdentity returns the regular file that a standard stream is redirected to, if any.
func streamIdentity(stream any) (identity, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return identity{}, false
	}
	info, err := f.Stat()
	return identity{exists: info}, err == nil && info.Mode().IsRegular()
}
