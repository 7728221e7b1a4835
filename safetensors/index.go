package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// maxShards is the largest number of files of a model; all of them are open at once.
const maxShards = 10_000

// openIndex opens the files listed in the index at path.
func openIndex(path string) (*Reader, error) {
	file, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	bad := func(err error) error { return &FormatError{path, err} }
	if size > maxHeader {
		return nil, bad(fmt.Errorf("index has %d bytes, want at most %d", size, maxHeader))
	}
	text := make([]byte, size)
	if err := (&shard{path: path, r: file}).readAt(text, 0); err != nil {
		return nil, err
	}
	files, err := parseIndex(text)
	if err != nil {
		return nil, bad(err)
	}
	return join(path, files, func(name string) (*shard, error) {
		return openShard(filepath.Join(filepath.Dir(path), name))
	})
}

// parseIndex parses the JSON of an index and returns the file of each tensor.
func parseIndex(text []byte) (map[string]string, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("index is not UTF-8")
	}
	h := newHeader("index", text)
	var files map[string]string
	names := map[string]bool{}
	err := h.object("index", func(key string) error {
		if key != "weight_map" {
			var other json.RawMessage // such as sizes, which the files themselves contain
			if err := h.dec.Decode(&other); err != nil {
				return h.notJSON(err)
			}
			return nil
		}
		files = map[string]string{}
		return h.object(key, func(name string) error {
			if err := checkName(name); err != nil {
				return inTensor(name, err)
			}
			file, err := h.string("its file")
			if err == nil {
				err = checkShardName(file)
			}
			if err != nil {
				return inTensor(name, err)
			}
			files[name], names[file] = file, true
			switch {
			case len(files) > maxTensors:
				return fmt.Errorf("index has more than %d tensors", maxTensors)
			case len(names) > maxShards:
				return fmt.Errorf("index has more than %d files", maxShards)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimLeft(text[h.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, fmt.Errorf("index continues with %q after the end of its JSON", rest[:1])
	}
	if len(files) == 0 {
		return nil, errors.New("index has no weight_map, or one without tensors")
	}
	return files, nil
}

// checkShardName rejects any name but that of a file in the index's folder: an untrusted index must not open files
// elsewhere.
func checkShardName(name string) error {
	if strings.ContainsAny(name, "/\\:\x00") || !filepath.IsLocal(name) || name == "." || !quote.Fit(name) {
		return fmt.Errorf("file %s, want the name of a file in the folder of the index", quote.Text(name))
	}
	return nil
}

// join opens the files of an index, given the file of each tensor, and checks that index and files agree.
func join(path string, files map[string]string, open func(name string) (*shard, error)) (_ *Reader, err error) {
	var shards []*shard
	defer func() {
		if err != nil {
			for _, s := range shards {
				s.close()
			}
		}
	}()
	// wrong returns nil if there are no such tensors.
	wrong := func(file, has string, names []string, but string) error {
		if len(names) == 0 {
			return nil
		}
		return &FormatError{path, fmt.Errorf("file %s %s %s, which %s", quote.Text(file), has, few(names), but)}
	}
	byFile := map[string][]string{}
	for name, file := range files {
		byFile[file] = append(byFile[file], name)
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		s, err := open(file)
		if err != nil {
			return nil, err
		}
		shards = append(shards, s)
		has := make(map[string]bool, len(s.tensors))
		var stray, elsewhere []string
		for i := range s.tensors {
			name := s.tensors[i].Name
			has[name] = true
			switch where, ok := files[name]; {
			case !ok:
				stray = append(stray, name)
			case where != file:
				elsewhere = append(elsewhere, name)
			}
		}
		missing := slices.DeleteFunc(byFile[file], func(name string) bool { return has[name] })
		err = cmp.Or(
			wrong(file, "lacks", missing, "the index lists in it"),
			wrong(file, "has", elsewhere, "the index lists in another file"),
			wrong(file, "has", stray, "the index does not list"),
		)
		if err != nil {
			return nil, err
		}
	}
	return newReader(path, shards...), nil
}

// few lists the first few of many names.
func few(names []string) string {
	slices.Sort(names)
	text := "tensor "
	if len(names) > 1 {
		text = "tensors "
	}
	return text + quote.Texts(names)
}
