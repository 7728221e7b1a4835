package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declared returns the exported names of the repository's packages: functions, types, constants and variables as Name and
// as package.Name; methods and fields as .Name, Type.Name and package.Type.Name.
func declared(t *testing.T) (names, packages map[string]bool) {
	names, packages = map[string]bool{}, map[string]bool{}
	walk(t, ".go", func(file, text string) {
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		in := strings.TrimSuffix(f.Name.Name, "_test")
		packages[in] = true
		add := func(of, name string) {
			if of != "" {
				names["."+name] = true
				name = of + "." + name
			}
			names[name], names[in+"."+name] = true, true
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				of := ""
				if d.Recv != nil {
					of = receiver(d.Recv.List[0].Type)
				}
				add(of, d.Name.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							add("", n.Name)
						}
					case *ast.TypeSpec:
						add("", s.Name.Name)
						for _, n := range members(s.Type) {
							add(s.Name.Name, n)
						}
					}
				}
			}
		}
	})
	return names, packages
}

// receiver returns the name of a method's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// members returns the fields of a struct and the methods of an interface.
func members(x ast.Expr) (names []string) {
	var list *ast.FieldList
	switch x := x.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
		if len(f.Names) == 0 {
			names = append(names, receiver(f.Type))
		}
	}
	return names
}

var (
	inCode = regexp.MustCompile("`[^`\n]+`")
	// goName matches [package.]Name, with a field or a method behind it, or one in a literal.
	goName = regexp.MustCompile("^`(?:([a-z]\\w*)\\.)?([A-Z]\\w*[a-z]\\w*)(?:\\.([A-Z]\\w*))?(?:\\{([A-Z]\\w*):.*)?(?:\\(.*)?`$")
)

// gain is a sentence of a comment that names the row of a benchmark.
var gain = regexp.MustCompile(`row\s+(?://\s+)?"([^"]+)"\s+(?://\s+)?of\s+(?://\s+)?(bench/\w+\.md)`)

// TestGains: a row of a benchmark that a comment names exists, so that a trick without a gain can be found.
func TestGains(t *testing.T) {
	all, found := pages(t), 0
	walk(t, ".go", func(file, text string) {
		for _, m := range gain.FindAllStringSubmatch(text, -1) {
			found++
			if !strings.Contains(all[m[2]], "\n| "+m[1]+" |") && !strings.Contains(all[m[2]], "\n| "+m[1]+" * |") {
				t.Errorf("%s: %s has no row %q", file, m[2], m[1])
			}
		}
	})
	if found < 8 {
		t.Errorf("%d rows are named, want those of all tricks", found)
	}
}

// foreign are names of other programs.
var foreign = []string{
	"MLMTransformer", "Router", "SparseEncoder", "SparseStaticEmbedding", "SpladePooling", "StaticEmbedding",
	"A_log", "AdditiveAttention", "Attention", "AutoModel",
	"AutoModelForSequenceClassification", "CausalConvWithState", "CrossEncoder", "DynamicCache",
	"Gelu", "GroupQueryAttention", "HF_ColBERT", "LogitScore", "MarianTokenizer", "MistralModel", "MultiHeadAttention", "MultiVectorEncoder", "MultiheadAttention",
	"LinearAttention", "NllbTokenizer", "RotaryEmbedding", "ScaledDotProductAttention", "Transformer", "TransformerEncoder",
}

// TestNames: a name of Go in a page is declared. decisions.md, which is history, has names of its days.
func TestNames(t *testing.T) {
	names, packages := declared(t)
	found := 0
	for page, text := range pages(t) {
		if path.Base(page) == "decisions.md" {
			continue
		}
		for _, word := range inCode.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
			m := goName.FindStringSubmatch(word)
			if m == nil || m[1] != "" && !packages[m[1]] || slices.Contains(foreign, m[2]) {
				continue
			}
			found++
			full := strings.TrimPrefix(m[1]+"."+m[2], ".")
			if !names[full] && (m[1] != "" || !names["."+full]) && word != "`Asm`" {
				t.Errorf("%s: %s is not declared", page, word)
			}
			for _, member := range m[3:] { // which may be of an embedded type
				if member != "" && !names[full+"."+member] && (m[1] != "" || !names["."+member]) {
					t.Errorf("%s: %s has no %s", page, word, member)
				}
			}
		}
	}
	if found < 600 {
		t.Errorf("%d names, want those of all pages", found)
	}
}
