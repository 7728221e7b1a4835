package main

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
)

// mutant is a change of a file.
type mutant struct {
	place
	line       int
	begin, end int // the bytes that are replaced
	text       string
}

// place names a mutant, also after lines have been added elsewhere in the file.
type place struct{ file, function, source, change string }

// id is a short name of a place.
func (p place) id() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", p)))[:8]
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d\t%s\t%s\t%s", m.file, m.line, m.function, m.source, m.change)
}

// apply returns the text of the file with the change.
func (m *mutant) apply() ([]byte, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s%s%s", text[:m.begin], m.text, text[m.end:]), nil
}

// swaps are the operators that replace another one.
var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ},
	token.GEQ: {token.GTR, token.LSS}, token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND}, token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// mutantsOf returns the changes of a file, of which some do not compile. A generated file has none.
func mutantsOf(name string) (all []*mutant, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text, set := string(b), token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	lines := strings.Split(text, "\n")
	seen := map[place]int{}
	for _, d := range file.Decls {
		f := finder{set: set, text: text}
		ast.Inspect(d, f.visit)
		for _, m := range f.found {
			m.place = place{name, f.nameOf(d), strings.TrimSpace(lines[m.line-1]), m.change}
			if seen[m.place]++; seen[m.place] > 1 {
				m.change += fmt.Sprintf(" (%d)", seen[m.place])
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// nameOf returns the name of a function, with the type of a method, or "-".
func (f *finder) nameOf(d ast.Decl) string {
	function, ok := d.(*ast.FuncDecl)
	switch {
	case !ok:
		return "-"
	case function.Recv == nil:
		return function.Name.Name
	}
	t := function.Recv.List[0].Type
	receiver, _, _ := strings.Cut(f.text[f.offset(t.Pos()):f.offset(t.End())], "[")
	return strings.TrimPrefix(receiver, "*") + "." + function.Name.Name
}

// finder collects the changes of a declaration.
type finder struct {
	set   *token.FileSet
	text  string // of the file
	found []*mutant
}

func (f *finder) offset(at token.Pos) int { return f.set.PositionFor(at, false).Offset }

func (f *finder) add(begin, end token.Pos, change, text string) {
	line := f.set.PositionFor(begin, false).Line
	f.found = append(f.found, &mutant{place{change: change}, line, f.offset(begin), f.offset(end), text})
}

func (f *finder) swap(at token.Pos, op token.Token) {
	for _, other := range swaps[op] {
		f.add(at, at+token.Pos(len(op.String())), fmt.Sprintf("%s → %s", op, other), other.String())
	}
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.swap(n.OpPos, n.Op)
	case *ast.AssignStmt:
		f.swap(n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		f.swap(n.TokPos, n.Tok)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n.Pos(), n.X.Pos(), "without !", "")
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && (name.Name == "min" || name.Name == "max") {
			other := map[string]string{"min": "max", "max": "min"}[name.Name]
			f.add(name.Pos(), name.End(), name.Name+" → "+other, other)
		}
	case *ast.BasicLit:
		if n.Kind == token.INT || n.Kind == token.FLOAT {
			for _, by := range []string{"+1", "-1"} {
				f.add(n.Pos(), n.End(), n.Value+by, "("+n.Value+by+")")
			}
		}
	case *ast.IfStmt: // the condition stays, since what it uses must be used
		condition := f.text[f.offset(n.Cond.Pos()):f.offset(n.Cond.End())]
		f.add(n.Cond.Pos(), n.Cond.End(), "if false", "false && ("+condition+")")
		f.add(n.Cond.Pos(), n.Cond.End(), "if true", "true || ("+condition+")")
	case *ast.BlockStmt:
		f.remove(n.List)
	case *ast.CaseClause:
		f.remove(n.Body)
	case *ast.CommClause:
		f.remove(n.Body)
	}
	return true
}

// remove adds the statements of a list that may be left out.
func (f *finder) remove(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.add(s.Pos(), s.End(), "without it", "")
			}
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt, *ast.BranchStmt, *ast.ReturnStmt:
			f.add(s.Pos(), s.End(), "without it", "")
		}
	}
}
