package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/seq2seq"
)

// place is a file or a directory that a flag names; without a path it was not given.
type place struct{ flag, path string }

// touched is what a command reads and writes. It is checked before the command
// runs: no output may take the place of an input or of another output.
type touched struct {
	reads  []place
	models []place // directories of models that are read
	writes []place
	makes  []place // directories of models that are written
	// stdin says that standard input is read, and stdout that "-" among writes is
	// standard output.
	stdin, stdout bool
}

// toucher is a command that names files.
type toucher interface{ touches() touched }

// modelFiles are the files of a model's directory: what attn train and attn prune
// write there.
var modelFiles = []string{
	"config.json", seq2seq.WeightsFile, "source.json", "target.json", seq2seq.TrainingFile, seq2seq.ExamplesFile,
	recipeFile, curve.File, curve.PictureFile, reportFile, unfinishedFile,
}

// check returns a usage error if an output would overwrite an input or another
// output, under whatever name: links, other spellings of a path, and, where there
// is nothing yet, letters that differ only in case. Then it returns an error if an
// output cannot be written where it is to be.
func (t touched) check(c console) error {
	inputs, outputs := t.inputs(c), t.outputs(c)
	for i, out := range outputs {
		if out.path == "-" && !t.stdout {
			return usage("%s -: want a file, not standard output", out.flag)
		}
		for _, in := range inputs {
			if out.is(in.identity) {
				return overwrites(out, in)
			}
		}
		for _, other := range outputs[:i] {
			if out.dir != "" && other.dir != "" || !out.is(other.identity) {
				continue // what a model's directory holds twice is the model's business
			}
			return twice(other, out)
		}
	}
	return ready(slices.DeleteFunc(slices.Clone(t.writes), func(p place) bool {
		// What goes into a directory that is still to be made can wait for it.
		return slices.ContainsFunc(t.makes, func(made place) bool { return sameFile(filepath.Dir(p.path), made.path) })
	}))
}

// overwrites says which output would take the place of which input.
func overwrites(out, in file) error {
	switch {
	case in.dir != "":
		return usage("%v would overwrite a file of the model in %s", out, quoted(in.dir))
	case in.path == "":
		return usage("%v would overwrite %v", out, in)
	}
	return usage("%v would overwrite %s, which %s reads", out, quoted(in.path), in.flag)
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
	for _, p := range t.models {
		list = append(list, inside(p)...)
	}
	if id, ok := streamIdentity(c.in); ok && t.stdin {
		list = append(list, file{place: place{flag: "standard input"}, identity: id})
	}
	return list
}

// inside returns the files of a pretrained model that modelFiles does not name.
func inside(p place) []file {
	if p.path == "" || !isPretrained(p.path) {
		return nil
	}
	entries, _ := os.ReadDir(p.path) // what cannot be read is said by who loads it
	var list []file
	for _, e := range entries {
		if ofPretrained(e.Name()) {
			path := p.path + string(filepath.Separator) + e.Name()
			list = append(list, file{place: place{p.flag, path}, dir: p.path, identity: identify(path)})
		}
	}
	return list
}

// ofPretrained reports whether a file of that name belongs to a pretrained model.
func ofPretrained(name string) bool {
	if ok, _ := filepath.Match("model-*.safetensors", name); ok {
		return true
	}
	return slices.Contains([]string{
		"model.safetensors.index.json", "generation_config.json", "modules.json", "config_sentence_transformers.json",
		"sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
		"vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "sentencepiece.bpe.model", "source.spm", "target.spm",
		"spiece.model", "target_vocab.json",
	}, name)
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
		for _, name := range modelFiles {
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
