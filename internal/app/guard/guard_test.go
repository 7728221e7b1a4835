package guard

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSame(t *testing.T) {
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
		{"here/a", "folder/../a", true}, // the parent of the link's target
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
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: the same is %v, want %v", c.a, c.b, got, c.want)
		}
		if got := Same(c.b, c.a); got != c.want {
			t.Errorf("%s and %s: the same is %v, want %v", c.b, c.a, got, c.want)
		}
	}
}

// A file in a directory that the command will create is not checked; one in an existing directory is.
func TestReadyInNewDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("old/page", 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"new": "", "old": "write " + filepath.Join("old", "page") + ": is a folder, want a file",
	} {
		f := Files{Makes: []Place{{"--out", dir}}, Writes: []Place{{"--report", filepath.Join(dir, "page")}}}
		_, err := f.Check(nil, nil, nil)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: error %q, want %q", dir, got, want)
		}
	}
}
