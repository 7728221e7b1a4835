package attn_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the path of the module.
const module = "github.com/attn-go/attn"

// order lists the packages from the lowest to the highest level. A package may only import
// packages before it: the library packages are before those that only programs use, and cannot
// import them. Every new package must be added here.
var order = []string{
	"internal/par",
	"internal/par/partest", // for tests only
	"internal/hugepages",
	"internal/stats",
	"internal/simd",
	"internal/flash",
	"internal/recurrence",
	"internal/quote",
	"internal/quote/hostile", // for tests only
	"internal/atomicfile",
	"internal/modeldir",
	"internal/exact",
	"internal/strictjson",
	"safetensors",
	"internal/input",
	"tensor",
	"tensor/tensortest", // for tests only
	"npy",
	"nn",
	"optim",
	".", // attn itself
	"statedict",
	"mask",
	"score",
	"position",
	"observe",
	"linear",
	"onnx",
	"heads",
	"prune",
	"internal/cells",
	"viz",
	"tokenizer",
	"seq2seq",
	"models",
	"lens",
	"probe",
	"internal/curve",
	"train",
	// what only programs use
	"internal/app/flags",
	"internal/app/terminal",
	"internal/app/bench",
	"internal/app/pruning/reports",
	"internal/app/chart",
	"internal/app/figures",
	"internal/app/view",
	"internal/app/film",
	"internal/app/filter",
	"internal/app/guard",
	"internal/app/completion",
	"internal/app/trace",
	"internal/app/apply",
	"internal/app/texts",
	"internal/app/shards",
	"internal/app/jinja",
	"internal/app/chat",
	"internal/app/hub",
	"internal/app/progress",
	"internal/app/recording",
	"internal/app/tasks",
	"internal/app/importance",
	"internal/app/lens",
	"internal/app/pruning",
	"examples/exercises/check", // for tests only
	"examples/regression",
	"examples/crossattention",
	"examples/scores",
	"examples/lengths",
	"examples/sequencefirst",
	"examples/reverse",
	"examples/prune",
	"examples/decoder",
	"examples/ring",
	"examples/embed",
	"examples/serve",
	"examples/factor",
	"examples/linear",
	"examples/induction",
	"cmd/attn",
	"site/lesson",
	"site",
	"internal/tools/fma",
	"internal/tools/mutants",
	"internal/tools/targets",
	"bench/history", // repository tools, like those before them
	"bench/compare",
	"bench/wasm",
}

// packages parses every package of the module by directory, without tests.
func packages(t *testing.T) (*token.FileSet, map[string][]*ast.File) {
	t.Helper()
	files := token.NewFileSet()
	found := make(map[string][]*ast.File)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "testdata" || (name != "." && strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != "." {
				return filepath.SkipDir // a separate module
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		found[dir] = append(found[dir], file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, found
}

func TestImportOrder(t *testing.T) {
	files, found := packages(t)
	for dir, list := range found {
		place := slices.Index(order, dir)
		if place < 0 {
			t.Errorf("package %s has no place in the order of imports", dir)
			continue
		}
		for _, file := range list {
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				if path != module && !strings.HasPrefix(path, module+"/") {
					continue
				}
				imported := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
				if imported == "" {
					imported = "."
				}
				if at := slices.Index(order, imported); at < 0 || at >= place {
					t.Errorf("%s: package %s imports %s, which is not before it in order", files.Position(spec.Pos()), dir, imported)
				}
				if imported == "tensor/tensortest" || imported == "internal/par/partest" || imported == "internal/quote/hostile" {
					t.Errorf("%s: %s is for tests", files.Position(spec.Pos()), imported)
				}
			}
		}
	}
	for i, dir := range order {
		if found[dir] == nil || slices.Index(order, dir) < i {
			t.Errorf("package %s is in the order of imports but does not exist, or twice", dir)
		}
	}
}

// Masks, scores, positions and observers use only the public API, as user-defined ones do. The
// exceptions are the internal packages for SIMD and threads, which only make them faster.
func TestValuesUseThePublicAPI(t *testing.T) {
	files, found := packages(t)
	for _, dir := range []string{"mask", "score", "position", "observe"} {
		for _, file := range found[dir] {
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				if strings.HasPrefix(path, module+"/internal/") && path != module+"/internal/simd" && path != module+"/internal/par" {
					t.Errorf("%s: package %s imports %s", files.Position(spec.Pos()), dir, path)
				}
			}
		}
	}
}

// The core is everything that users of the library depend on. It may require only x/sys and file
// locks, which themselves require only x/sys.
func TestCoreRequiresLittle(t *testing.T) {
	files, found := packages(t)
	allowed := []string{"golang.org/x/sys/cpu", "github.com/gofrs/flock"}
	for _, dir := range order[:slices.Index(order, "internal/cells")] {
		for _, file := range found[dir] {
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				first, _, _ := strings.Cut(path, "/")
				if strings.Contains(first, ".") && path != module && !strings.HasPrefix(path, module+"/") && !slices.Contains(allowed, path) {
					t.Errorf("%s: package %s imports %s", files.Position(spec.Pos()), dir, path)
				}
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	_, found := packages(t)
	for dir, list := range found {
		var comments []string
		for _, file := range list {
			if file.Doc != nil {
				comments = append(comments, file.Doc.Text())
			}
		}
		if len(comments) != 1 {
			t.Errorf("package %s has %d package comments, want one", dir, len(comments))
		}
	}
}

func TestExportedIdentifiersAreDocumented(t *testing.T) {
	files, found := packages(t)
	for dir, list := range found {
		p, err := doc.NewFromFiles(files, list, module+"/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		undocumented := func(name string, decl ast.Node) {
			t.Errorf("%s: %s.%s has no doc comment", files.Position(decl.Pos()), dir, name)
		}
		values := func(list []*doc.Value) {
			for _, v := range list {
				for _, spec := range v.Decl.Specs {
					spec := spec.(*ast.ValueSpec)
					if v.Doc == "" && spec.Doc == nil && spec.Comment == nil {
						undocumented(spec.Names[0].Name, spec)
					}
				}
			}
		}
		functions := func(list []*doc.Func) {
			for _, f := range list {
				if f.Doc == "" {
					undocumented(f.Name, f.Decl)
				}
			}
		}
		values(p.Consts)
		values(p.Vars)
		functions(p.Funcs)
		for _, typ := range p.Types {
			if typ.Doc == "" {
				undocumented(typ.Name, typ.Decl)
			}
			values(typ.Consts)
			values(typ.Vars)
			functions(typ.Funcs)
			for _, m := range typ.Methods {
				// Methods of unexported types are called through interfaces that document them.
				if m.Doc == "" && ast.IsExported(strings.TrimPrefix(m.Recv, "*")) {
					undocumented(typ.Name+"."+m.Name, m.Decl)
				}
			}
		}
	}
}
