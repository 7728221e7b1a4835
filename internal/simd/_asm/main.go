// Command asm writes the files of package simd that are generated from its table of kernels, and
// removes generated files that are no longer needed:
//
//	go run . -dir ..
//
// The files are the assembly, one file for each family of kernels; the declarations of its
// functions; the Go code that chooses between implementations; and the list of implementations.
//
// A new kernel needs an entry in table.go, a function that writes its code, and generic Go in
// package simd that defines its result. A new implementation needs an entry in table.go, a function
// in package simd that reports whether the processor supports it, and the code of its kernels. For
// other kernels, those of another implementation are used.
//
// Most kernels are functions of a program, and written once for all instruction sets. Other kernels
// for amd64 are functions of avxProgram, with vectors of the length of the instruction set. Avo generates
// them twice: for AVX2 and for AVX-512. Other kernels for arm64 are in the files that begin with neon;
// package a64 generates them. Other kernels for WebAssembly are in the files that begin with wasm;
// package wasm writes them as a module.
package main

import (
	"bytes"
	"flag"
	"log"
	"maps"
	"os"
	"path/filepath"
)

// marker is the first line of every file that this program writes. generated is the beginning of
// that line, and of the first line of files from other generators.
const (
	generated = "// Code generated "
	marker    = generated + "by go generate from the table in _asm. DO NOT EDIT.\n"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "", "the directory of package simd")
	flag.Parse()
	files := generate()
	stale, err := leftOver(*dir, files)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(*dir, name)); err != nil {
			log.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(*dir, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// generate returns the files by name. It can be called only once.
func generate() map[string][]byte {
	check()
	files := map[string][]byte{
		"implementations.go": listFile(),
		"dispatch_noasm.go":  noasmFile(),
	}
	maps.Copy(files, assemblyAMD64())
	maps.Copy(files, assemblyARM64())
	for _, arch := range architectures() {
		files["dispatch_"+arch+".go"] = dispatchFile(arch)
		if arch != wasmVectors.goarch {
			files["stubs_"+arch+".go"] = stubsFile(arch)
		}
	}
	maps.Copy(files, wasmFiles())
	return files
}

// leftOver returns the names of generated files in dir that are not in files.
func leftOver(dir string, files map[string][]byte) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, e := range entries {
		if _, ok := files[e.Name()]; ok || e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(text, []byte(generated)) {
			stale = append(stale, e.Name())
		}
	}
	return stale, nil
}
