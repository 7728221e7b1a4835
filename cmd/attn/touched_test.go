package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
)

// A flag that names a file or a directory and that the check does not know of would
// be a way to overwrite an input.
func TestEveryNamedFileIsChecked(t *testing.T) {
	parser := kong.Must(&commands{}, options(console{})...)
	for _, command := range parser.Model.Leaves(true) {
		var want []string
		for _, flag := range command.Flags {
			if flag.PlaceHolder != "FILE" && flag.PlaceHolder != "DIR" {
				continue
			}
			path := "path-of-" + flag.Name
			want = append(want, path)
			value := reflect.ValueOf(path)
			switch flag.Target.Kind() {
			case reflect.Pointer:
				value = reflect.ValueOf(&path)
			case reflect.Slice:
				value = reflect.ValueOf([]string{path})
			}
			flag.Target.Set(value)
		}
		if len(want) == 0 {
			continue
		}
		cmd, names := command.Target.Addr().Interface().(toucher)
		if !names {
			t.Errorf("attn %s has the files %v and does not tell which it reads and writes", command.Name, want)
			continue
		}
		touches := cmd.touches()
		var got []string
		for _, p := range slices.Concat(touches.reads, touches.models, touches.writes, touches.makes) {
			got = append(got, p.path)
		}
		for _, path := range want {
			if !slices.Contains(got, path) {
				t.Errorf("attn %s does not tell of %s", command.Name, path)
			}
		}
	}
}

func TestSameFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, err := range []error{
		os.MkdirAll("here/below", 0o755), os.WriteFile("here/a", nil, 0o644), os.Link("here/a", "hard"), os.Symlink("here/a", "soft"),
		os.Symlink("here/below", "folder"), os.Symlink("nowhere", "dangling"), os.WriteFile("b", nil, 0o644),
	} {
		if err != nil {
			t.Skip(err) // no links here
		}
	}
	whole, err := filepath.Abs("here/a")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"here/a", "here/a", true},
		{"here/a", "./here//a", true},
		{"here/a", "here/below/../a", true},
		{"here/a", whole, true},
		{"here/a", "hard", true},
		{"here/a", "soft", true},
		{"here/a", "folder/../a", true}, // the parent of what the link leads to
		{"here/a", "b", false},
		{"new", "./new", true},
		{"new", "b", false},
		{"here/below/new", "folder/new", true},
		{"here/new", "folder/../new", true},
		{"new", "folder/../new", false},
		{"new", "New", true}, // on some file systems
		{"no/such/x", "no/../no/such/X", true},
		{"no/such/x", "no/such/y", false},
		{"none/../b", "b", true},
		{"dangling", "nowhere", false}, // the link would be replaced
	} {
		if got := sameFile(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: the same is %v, want %v", c.a, c.b, got, c.want)
		}
		if got := sameFile(c.b, c.a); got != c.want {
			t.Errorf("%s and %s: the same is %v, want %v", c.b, c.a, got, c.want)
		}
	}
}
