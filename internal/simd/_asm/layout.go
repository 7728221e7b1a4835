package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
)

// Where the fields of the structs are that package simd gives its kernels.
var (
	tileArg     = layout("tileArgs")
	scoreArg    = layout("scoreArgs")
	gradArg     = layout("gradArgs")
	distanceArg = layout("distanceArgs")
	amxArg      = layout("amxArgs")
	fewArg      = layout("amxFewArgs")
)

// layout returns the offsets of the fields of a struct of package simd, by their names.
func layout(name string) func(field string) int {
	s := drivers.Scope().Lookup(name).Type().Underlying().(*types.Struct)
	var fields []*types.Var
	for f := range s.Fields() {
		fields = append(fields, f)
	}
	offsets := types.SizesFor("gc", "amd64").Offsetsof(fields) // and of arm64
	return func(field string) int {
		for i, f := range fields {
			if f.Name() == field {
				return int(offsets[i])
			}
		}
		panic(name + " has no field " + field)
	}
}

// drivers is the files of package simd that prepare calls of kernels. What they take from
// others remains unknown.
var drivers = func() *types.Package {
	names, err := filepath.Glob("../*_asm.go")
	if err != nil {
		panic(err)
	}
	var files []*ast.File
	set := token.NewFileSet()
	for _, name := range append(names, "../amx_few.go") {
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			panic(err)
		}
		files = append(files, file)
	}
	config := types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := config.Check("simd", set, files, nil) // with errors
	return pkg
}()
