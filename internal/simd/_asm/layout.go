package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
)

// The offsets of the fields of the structs that package simd passes to its kernels.
var (
	tileArg     = layout("tileArgs")
	scoreArg    = layout("scoreArgs")
	gradArg     = layout("gradArgs")
	distanceArg = layout("distanceArgs")
	stateArg    = layout("stateArgs")
	tileUnitArg = layout("tileUnitArgs")
	quadTileArg = layout("quadTileArgs")
)

// layout returns the offsets of the fields of a struct of package simd, by name.
func layout(name string) func(field string) int {
	s := drivers.Scope().Lookup(name).Type().Underlying().(*types.Struct)
	var fields []*types.Var
	for f := range s.Fields() {
		fields = append(fields, f)
	}
	offsets := types.SizesFor("gc", "amd64").Offsetsof(fields) // the same as on arm64
	return func(field string) int {
		for i, f := range fields {
			if f.Name() == field {
				return int(offsets[i])
			}
		}
		panic(name + " has no field " + field)
	}
}

// drivers is the package of the files of package simd that prepare calls of kernels. Types from
// other files are unresolved.
var drivers = func() *types.Package {
	names, err := filepath.Glob("../*_asm.go")
	if err != nil {
		panic(err)
	}
	var files []*ast.File
	set := token.NewFileSet()
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			panic(err)
		}
		files = append(files, file)
	}
	// Offsets come from the Go structs themselves, so that a kernel cannot disagree with its driver about
	// them.
	config := types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := config.Check("simd", set, files, nil) // with errors for unresolved types
	return pkg
}()
