package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"
)

// listFile returns the file that lists all implementations.
func listFile() []byte {
	w := newWriter("")
	w.line("const (")
	value := " implementation = iota"
	for _, i := range implementations {
		w.line("%s%s // %s", i.name, value, i.needs)
		value = ""
	}
	w.line(")\n\nvar names = [...]string{")
	for _, i := range implementations {
		w.line("%s: %q,", i.name, i.name)
	}
	w.line("}")
	return w.file()
}

// assemblyFiles returns the files of the families that have kernels for an architecture.
func assemblyFiles(arch string, write func(f *family) string) map[string][]byte {
	files := map[string][]byte{}
	for _, f := range families {
		if text := write(&f); text != "" {
			head := marker + "\n" + comment(f.about) + "\n//go:build !purego\n\n#include \"textflag.h\"\n"
			files[f.name+"_"+arch+".s"] = []byte(head + text)
		}
	}
	return files
}

// assembly returns the functions of a family for an architecture, with their comments.
func (f *family) assembly(arch string, write func(k *kernel, i *implementation, name string) string) string {
	var out strings.Builder
	for k, i := range f.coded(arch) {
		name := k.name + i.suffix
		text := write(k, i, name)
		fmt.Fprintf(&out, "\n%s//\n// func %s%s\n%s", comment(name+" "+k.does), name, k.asm, text)
	}
	return out.String()
}

// stubsFile returns the declarations of the functions in assembly.
func stubsFile(arch string) []byte {
	w := newWriter(arch + " && !purego")
	for _, f := range families {
		for k, i := range f.coded(arch) {
			w.comment(k.name + i.suffix + " " + k.does)
			w.line("//\n//go:noescape\nfunc %s%s%s\n", k.name, i.suffix, k.asm)
		}
	}
	return w.file()
}

// noasmFile returns the Go code for builds without assembly.
func noasmFile() []byte {
	var none []string
	for _, arch := range architectures() {
		if arch == wasmVectors.goarch {
			arch = "(" + wasmBuild + ")"
		}
		none = append(none, "!"+arch)
	}
	return dispatch("", "("+strings.Join(none, " && ")+") || purego")
}

// dispatchFile returns the Go code that chooses between the implementations of an architecture.
func dispatchFile(arch string) []byte {
	constraint := arch
	if arch == wasmVectors.goarch {
		constraint = wasmBuild
	}
	return dispatch(arch, constraint+" && !purego")
}

// dispatch chooses with switches, whose branches always go the same way. With calls of function
// values, the arguments they point to would have to be allocated, because the compiler could not
// prove that they do not escape.
func dispatch(arch, constraint string) []byte {
	w := newWriter(constraint)
	w.line("// candidates lists the implementations in order of preference.\nvar candidates = []candidate{")
	for _, i := range implementationsOf(arch) {
		w.line("{%s, has%s},", i.name, i.suffix)
	}
	w.line("}\n")
	w.shapes(arch)
	for _, f := range families {
		for _, k := range f.kernels {
			switch {
			case k.op != "":
				w.operation(&k, arch)
			case !k.byHand:
				w.relay(&k, arch)
			}
		}
		for _, d := range f.drivers {
			w.drive(&d, arch)
		}
		if f.choice != "" {
			w.choice(&f, arch)
		}
	}
	return w.file()
}

// A writer collects the text of a Go file.
type writer struct{ bytes.Buffer }

func newWriter(constraint string) *writer {
	w := new(writer)
	w.line(marker)
	if constraint != "" {
		w.line("//go:build %s\n", constraint)
	}
	w.line("package simd\n")
	return w
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *writer) comment(text string) { w.WriteString(comment(text)) }

func (w *writer) file() []byte {
	text, err := format.Source(w.Bytes())
	if err != nil {
		panic(fmt.Sprintf("%v in\n%s", err, w.Bytes()))
	}
	return text
}

// shapes writes the widths that the drivers need.
func (w *writer) shapes(arch string) {
	tile, scores, pass := kernelNamed("gemm1"), kernelNamed("additiveTile1"), kernelNamed("statePass")
	w.line("var shapes = [...]shape{")
	for _, i := range implementationsOf(arch) {
		panel, additive, state := "genericWidth", "additiveWidthGeneric", "StateColumns"
		if by := tile.server(i); by != generic {
			panel = fmt.Sprint(by.panel)
		}
		if by := scores.server(i); by != generic {
			additive = fmt.Sprint(by.additive)
		}
		if by := pass.server(i); by != generic {
			state = fmt.Sprint(by.state)
		}
		w.line("%s: {lanes: %d, panel: %s, additive: %s, state: %s},", i.name, i.lanes, panel, additive, state)
	}
	w.line("generic: {lanes: genericWidth, panel: genericWidth, additive: additiveWidthGeneric, state: StateColumns},")
	w.line("}\n")
	if t, ok := tilings[arch]; ok {
		w.line("// The number of rows of the largest tiles: for panels of several vectors, and for panels of one.")
		w.line("const (\ntileRows = %d\nnarrowRows = %d\n)\n", t.rows, t.narrow)
		w.line("// rowGroups is the number of vectors of columns that gemvTransposed processes at a time.")
		w.line("const rowGroups = %d\n", t.groups)
	}
}

// relay writes the function with which drivers call a kernel.
// Drivers are the same for all architectures, so they call this function, which exists on each.
func (w *writer) relay(k *kernel, arch string) {
	assembly, _ := groups(arch, k.server)
	if len(assembly) == 0 {
		return
	}
	s := parse(k.asm)
	w.comment(k.name + "Kernel " + k.does)
	w.line("func %sKernel%s {", k.name, k.asm)
	w.choose(assembly, func(i *implementation) string { return s.call(k.name+i.suffix, s.names()) })
	w.line("}\n")
}

// choice writes the function that calls one of the kernels of a family.
func (w *writer) choice(f *family, arch string) {
	var some []*kernel // the first has no condition
	for n := range f.kernels {
		if k := &f.kernels[n]; k.byHand {
			some = append(some, k)
		}
	}
	assembly, _ := groups(arch, some[0].server)
	if len(assembly) == 0 {
		return
	}
	name, _, _ := strings.Cut(f.choice, "(")
	w.line("// %s calls the kernel for the given number of vectors, or for stored numbers.\nfunc %s {", name, f.choice)
	w.choose(assembly, func(i *implementation) string {
		text := "switch {\n"
		for _, k := range slices.Backward(some) {
			switch {
			case k.server(i) != i:
			case k.when == "":
				text += "default:\n" + k.name + i.suffix + "(t)\n"
			default:
				text += "case " + strings.ReplaceAll(k.when, "lanes", fmt.Sprint(i.lanes)) + ":\n" + k.name + i.suffix + "(t)\n"
			}
		}
		return text + "}"
	})
	w.line("}\n")
}

// drive writes the function that calls either the driver, whose name ends in Asm, or generic Go.
func (w *writer) drive(d *driver, arch string) {
	assembly, plain := groups(arch, d.server)
	s := parse(d.op)
	w.comment(d.name + " " + d.does)
	w.line("func %s%s {", d.name, d.op)
	if len(assembly) == 0 {
		w.line("%s", s.call(d.name+generic.suffix, s.names()))
	} else {
		w.plain(d.name, s, isOneOf(plain))
		w.line("%s", s.call(d.name+"Asm", s.names()))
	}
	w.line("}\n")
}

// operation writes the operation of a kernel on slices.
func (w *writer) operation(k *kernel, arch string) {
	s := parse(k.op)
	w.comment(k.name + " " + k.does)
	w.line("func %s%s {", k.name, k.op)
	assembly, plain := groups(arch, k.server)
	switch {
	case k.sum:
		w.sum(k, s, append(assembly, group{generic, plain}))
	case len(assembly) == 0:
		w.line("%s", s.call(k.name+generic.suffix, s.names()))
	case k.pieces:
		w.pieces(k, s, assembly, plain)
	default:
		if k.unless != "" {
			w.plain(k.name, s, k.unless)
		}
		w.choose(append(assembly, group{generic, plain}), func(i *implementation) string {
			if i == generic {
				return s.call(k.name+i.suffix, s.names())
			}
			return s.call(k.name+i.suffix, k.arguments(s, "len("+s.slices()[0]+")"))
		})
	}
	w.line("}\n")
}

// pieces writes the loop over the pieces of slices.
func (w *writer) pieces(k *kernel, s signature, assembly []group, plain []*implementation) {
	first := s.slices()[0]
	if k.whole > 0 {
		w.line("for len(%s) >= %d && %s {", first, k.whole, isNoneOf(plain))
		w.line("n := min(len(%s), piece) / %d * %d", first, k.whole, k.whole)
	} else {
		w.plain(k.name, s, isOneOf(plain))
		if s.result == "bool" {
			w.line("all := true")
		}
		w.line("for len(%s) > 0 {", first)
		w.line("n := min(len(%s), piece)", first)
	}
	w.choose(assembly, func(i *implementation) string {
		call := k.name + i.suffix + "(" + strings.Join(k.arguments(s, "n"), ", ") + ")"
		if s.result == "bool" { // which must be true for all pieces
			return "if !" + call + " {\nall = false\n}"
		}
		return call
	})
	w.advance(s)
	if k.then != "" {
		w.line("%s", k.then)
	}
	w.line("}")
	switch {
	case k.whole > 0:
		w.line("%s", s.call(k.name+generic.suffix, s.names()))
	case s.result == "bool":
		w.line("return all")
	}
}

// sum writes the loop that adds the results of pieces of slices.
func (w *writer) sum(k *kernel, s signature, all []group) {
	first := s.slices()[0]
	w.line("var total %s\nfor len(%s) > 0 {\nn := min(len(%s), piece)", s.result, first, first)
	w.choose(all, func(i *implementation) string {
		args := k.arguments(s, "n")
		if i == generic {
			args = s.names()
			for n, p := range s.params {
				if strings.HasPrefix(p.typ, "[]") {
					args[n] += "[:n]"
				}
			}
		}
		return "total += " + k.name + i.suffix + "(" + strings.Join(args, ", ") + ")"
	})
	w.advance(s)
	w.line("}\nreturn total")
}

// advance moves all slices to their next piece.
func (w *writer) advance(s signature) {
	names := s.slices()
	w.line("%s = %s[n:]", strings.Join(names, ", "), strings.Join(names, "[n:], "))
}

// plain writes the call of generic Go under a condition.
func (w *writer) plain(name string, s signature, condition string) {
	w.line("if %s {\n%s", condition, s.call(name+generic.suffix, s.names()))
	if s.result == "" {
		w.line("return")
	}
	w.line("}")
}

// isOneOf returns the condition that the implementation in use is one of those given.
func isOneOf(all []*implementation) string {
	var or []string
	for _, i := range all {
		or = append(or, "active == "+i.name)
	}
	return strings.Join(or, " || ")
}

// isNoneOf returns the opposite condition.
func isNoneOf(all []*implementation) string {
	return strings.NewReplacer("==", "!=", "||", "&&").Replace(isOneOf(all))
}

// choose writes the call for the implementation in use, which is in one of the groups.
func (w *writer) choose(groups []group, call func(i *implementation) string) {
	if len(groups) == 1 {
		w.line("%s", call(groups[0].server))
		return
	}
	w.line("switch active {")
	for n, g := range groups {
		if n == len(groups)-1 {
			w.line("default:")
		} else {
			var users []string
			for _, i := range g.users {
				users = append(users, i.name)
			}
			w.line("case %s:", strings.Join(users, ", "))
		}
		w.line("%s", call(g.server))
	}
	w.line("}")
}
