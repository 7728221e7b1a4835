// Command asm writes the files of package simd that follow from its table of
// kernels, and removes those that no longer do:
//
//	go run . -dir ..
//
// They are the assembly, a file for each family of kernels; the declarations of
// its functions; the Go that chooses between implementations; and the list of
// these.
//
// To add a kernel takes an entry in table.go, a function that writes its code,
// and in package simd the generic Go that says what it computes. To add an
// implementation takes an entry in table.go, a function in package simd that says
// whether the processor has it, and the code of the kernels that it has: for
// others, those of another implementation stand in.
//
// Every kernel for amd64 is written once, in terms of vectors whose length is that of
// an instruction set, and comes out once for AVX2 and once for AVX-512, by avo. Those
// for arm64 stand in the files that begin with neon; package a64 emits them.
package main

import (
	"bytes"
	"flag"
	"log"
	"maps"
	"os"
	"path/filepath"
)

// marker is the first line of every file written, and generated its beginning,
// whatever has written it.
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

// generate returns the files by their names. It can be called once.
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
		files["stubs_"+arch+".go"] = stubsFile(arch)
	}
	return files
}

// leftOver returns the names of the files in dir that were generated and are not
// among the given ones.
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
