package main

import (
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// A wasmProgram writes a kernel for WebAssembly, whose vectors have four floats. The kernels are the
// same as for NEON, and the comments there apply here too. The differences are:
//
//   - A product and its sum are rounded twice: there is no fused multiply-add. Code that relies on
//     exact products splits a constant such that its products are exact.
//   - The engine assigns registers. On amd64 there are 16, so there are fewer sums at a time.
//   - Pointers and integers have 32 bits.
type wasmProgram struct {
	*wasm.Func
	*implementation
	params []param
}

// The functions of the module that kernels call for a part of a vector: the first n floats, at
// least 1, and all of them from 4 on.
var wasmLoadPart, wasmStorePart *wasm.Func

// writingWASM is the program that the code of a kernel is written to.
var writingWASM *wasmProgram

// wasm adds the code for WebAssembly.
func (c code) wasm(write func(f *wasmProgram)) code {
	c[wasmVectors] = func() { write(writingWASM) }
	return c
}

// wasmFiles returns the module with the kernels for WebAssembly and the declarations of its
// functions.
func wasmFiles() map[string][]byte {
	m := new(wasm.Module)
	writeParts(m)
	for _, f := range families {
		for k, i := range f.coded("wasm") {
			s := parse(k.asm)
			params, results := s.wasm()
			writingWASM = &wasmProgram{m.Kernel(k.name, params, results), i, s.params}
			k.code[i]()
		}
	}
	module, sum := m.Bytes()
	return map[string][]byte{"wasm/kernels.wasm": module, "stubs_wasm.go": wasmStubs(sum)}
}

// wasm returns the types of parameters and results in WebAssembly. Instead of several results, a
// kernel has a pointer to them as its last parameter.
func (s signature) wasm() (params, results []wasm.Type) {
	for _, p := range s.params {
		params = append(params, wasmType(p.typ))
	}
	switch {
	case s.several():
		params = append(params, wasm.I32)
	case s.result != "":
		results = append(results, wasmType(s.result))
	}
	return params, results
}

// several reports whether there are several results.
func (s signature) several() bool { return strings.HasPrefix(s.result, "(") }

func wasmType(typ string) wasm.Type {
	switch typ {
	case "float32":
		return wasm.F32
	case "float64":
		return wasm.F64
	case "uint64":
		return wasm.I64
	}
	return wasm.I32
}

// writeParts writes the functions for parts of vectors.
// Parts are functions of the module, not code of each kernel: they run once a slice, and each kernel would
// be larger.
func writeParts(m *wasm.Module) {
	f := m.Func("loadPart", []wasm.Type{wasm.I32, wasm.I32}, []wasm.Type{wasm.V128})
	partOf(f, f.ParamX(1), func() { f.Return(f.LoadV(f.ParamX(0), 0)) }, loadingPart(f, f.ParamX(0), f.ReturnV))
	f.Return(f.Zero())
	wasmLoadPart = f

	f = m.Func("storePart", []wasm.Type{wasm.I32, wasm.I32, wasm.V128}, nil)
	p, v := f.ParamX(0), f.ParamV(2)
	partOf(f, f.ParamX(1), func() { f.StoreV(v, p, 0) }, [3]func(){
		func() { f.StoreLane(v, 0, p, 0) },
		func() { f.StoreLow(v, p, 0) },
		func() { f.StoreLow(v, p, 0); f.StoreLane(v, 2, p, 8) },
	})
	f.Return()
	wasmStorePart = f
}

// loadingPart returns the code that loads one, two and three floats and passes them to use.
func loadingPart(f *wasm.Func, p wasm.X, use func(v wasm.V)) [3]func() {
	return [3]func(){
		func() { use(f.LoadOne(p, 0)) },
		func() { use(f.LoadTwo(p, 0)) },
		func() { use(f.LoadLane(f.LoadTwo(p, 0), 2, p, 8)) },
	}
}

// partOf writes code that does one of several things for n floats: all for 4 and more.
func partOf(f *wasm.Func, n wasm.X, all func(), some [3]func()) {
	f.IfElse(n.AtLeast(3), func() {
		f.IfElse(n.AtLeast(4), all, some[2])
	}, func() {
		f.IfElse(n.AtLeast(2), some[1], some[0])
	})
}

func (f *wasmProgram) index(name string) int {
	i := slices.IndexFunc(f.params, func(p param) bool { return p.name == name })
	if i < 0 {
		panic(f.Name() + " has no parameter " + name)
	}
	return i
}

// x returns a parameter: a pointer or an integer.
func (f *wasmProgram) x(name string) wasm.X { return f.ParamX(f.index(name)) }

// readAt reads vector i from p on, or only n floats of it if n is not nil; other lanes become 0. It
// does not access memory outside of these floats.
func (f *wasmProgram) readAt(p wasm.X, i int, n *wasm.X) wasm.V {
	if n == nil {
		return f.LoadV(p, i*vectorBytes)
	}
	return f.CallV(wasmLoadPart, p.Plus(i*vectorBytes), *n)
}

// writeAt writes vector i from p on, or only n floats of it.
func (f *wasmProgram) writeAt(v wasm.V, p wasm.X, i int, n *wasm.X) {
	if n == nil {
		f.StoreV(v, p, i*vectorBytes)
		return
	}
	f.Call(wasmStorePart, p.Plus(i*vectorBytes), *n, v)
}

// ones returns ones in the first n lanes, zeros elsewhere.
func (f *wasmProgram) ones(n wasm.X) wasm.V {
	return f.SplatX(n).MoreInts(f.Bits([4]uint32{0, 1, 2, 3}))
}

// fold combines all lanes of the vectors with op, the furthest apart first, and returns a vector
// with the result in all lanes.
func (f *wasmProgram) fold(all []wasm.V, op func(v, w wasm.V) wasm.V) wasm.V {
	for len(all) > 1 {
		half := make([]wasm.V, len(all)/2)
		for i := range half {
			half[i] = op(all[i], all[i+len(half)])
		}
		all = half
	}
	v := all[0]
	v = op(v, v.Shuffle(v, 2, 3, 0, 1))
	return op(v, v.Shuffle(v, 1, 0, 3, 2))
}

// wasmBuild is the build constraint for kernels in WebAssembly. A program with imports cannot run
// where they are missing, so it has to be built for them.
const wasmBuild = "wasm && wasmsimd"

// wasmStubs returns the declarations of the imported kernels. Those whose parameters have other
// types in WebAssembly are called through a function that converts them.
func wasmStubs(sum int32) []byte {
	w := newWriter(wasmBuild + " && !purego")
	w.line("import \"unsafe\"\n")
	w.line("// kernelsSum identifies the kernels of this version.\nconst kernelsSum = %d\n", sum)
	w.comment("kernelsAvailable returns 0 in an engine without vectors, otherwise the sum of the host's kernels.")
	w.line("//\n//go:wasmimport attn available\nfunc kernelsAvailable() int32\n")
	for _, f := range families {
		for k := range f.coded("wasm") {
			w.imported(k)
		}
	}
	return w.file()
}

// imported writes the declaration of an imported kernel, and the function that calls it.
func (w *writer) imported(k *kernel) {
	s, name := parse(k.asm), k.name+wasmVectors.suffix
	var params, args []string
	for _, p := range s.params {
		switch {
		case p.typ == "int":
			params, args = append(params, p.name+" int32"), append(args, "int32("+p.name+")")
		case foreign.MatchString(p.typ): // which an imported function cannot have
			params, args = append(params, p.name+" unsafe.Pointer"), append(args, "unsafe.Pointer("+p.name+")")
		default:
			params, args = append(params, p.name+" "+p.typ), append(args, p.name)
		}
	}
	result := s.result
	if s.several() {
		params, args, result = append(params, "results *float32"), append(args, "&results[0]"), ""
	}
	w.comment(name + " " + k.does)
	w.line("func %s%s {", name, k.asm)
	call := k.name + "Import(" + strings.Join(args, ", ") + ")"
	switch {
	case s.several():
		w.line("var results [2]float32\n%s\nreturn results[0], results[1]", call)
	case s.result != "":
		w.line("return %s", call)
	default:
		w.line("%s", call)
	}
	list := strings.Join(params, ", ")
	if len(list) > 90 {
		list = "\n" + strings.Join(params, ",\n") + ",\n"
	}
	w.line("}\n\n//go:wasmimport attn %s\n//go:noescape\nfunc %sImport(%s) %s\n", k.name, k.name, list, result)
}
