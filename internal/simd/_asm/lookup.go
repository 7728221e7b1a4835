package main

import (
	"fmt"
	"iter"
	"slices"
)

// The assembly of an operation has the signature of the operation, unless the table specifies
// another.
func init() {
	for _, f := range families {
		for i := range f.kernels {
			if k := &f.kernels[i]; k.asm == "" {
				k.asm = parse(k.op).assembly()
			}
		}
	}
}

// architectures returns the architectures that have assembly.
func architectures() []string {
	var all []string
	for _, i := range implementations {
		if i.goarch != "" && !slices.Contains(all, i.goarch) {
			all = append(all, i.goarch)
		}
	}
	return all
}

// implementationsOf returns the implementations with assembly for an architecture, the best
// first.
func implementationsOf(arch string) []*implementation {
	var all []*implementation
	for _, i := range slices.Backward(implementations) {
		if i != generic && i.goarch == arch {
			all = append(all, i)
		}
	}
	return all
}

// coded returns the kernels of a family with the implementations that have code for an architecture.
func (f *family) coded(arch string) iter.Seq2[*kernel, *implementation] {
	return func(yield func(*kernel, *implementation) bool) {
		for n := range f.kernels {
			for _, i := range implementationsOf(arch) {
				if k := &f.kernels[n]; k.code[i] != nil && !yield(k, i) {
					return
				}
			}
		}
	}
}

// server returns the implementation whose kernel i uses: i itself, the first fallback that has the
// kernel, or generic Go.
func (k *kernel) server(i *implementation) *implementation {
	for i != generic && k.code[i] == nil {
		i = i.or
	}
	return i
}

// server returns the implementation whose kernels the driver calls for i, or generic. Drivers count
// in vectors, so the implementation must have vectors of the same length as i.
func (d *driver) server(i *implementation) *implementation {
	var server *implementation
	for _, name := range d.calls {
		s := kernelNamed(name).server(i)
		switch {
		case s == generic:
			return generic
		case server == nil:
			server = s
		case server != s:
			panic(fmt.Sprintf("%s calls kernels of both %s and %s", d.name, server.name, s.name))
		}
	}
	if server.lanes != i.lanes {
		panic(fmt.Sprintf("%s counts in vectors of %s but calls kernels of %s", d.name, i.name, server.name))
	}
	return server
}

// sameBits lists kernels that must give the same bits. Multiply may call any of them. They all
// round a product and its sum once, which generic Go does not.
var sameBits = []string{"gemm1", "gemvTransposed", "axpy", "mulAdd"}

// check panics if an implementation takes only some of these kernels from generic Go.
func check() {
	for _, i := range implementations {
		for _, name := range sameBits {
			plain := func(name string) bool { return kernelNamed(name).server(i) == generic }
			if plain(name) != plain(sameBits[0]) {
				panic(fmt.Sprintf("%s needs all or none of %q, because they must give the same bits", i.name, sameBits))
			}
		}
	}
}

// A group is implementations that use the same kernel.
type group struct {
	server *implementation
	users  []*implementation
}

// groups returns the implementations of an architecture, the best first, grouped by their servers.
// It also returns the implementations served by generic Go, including generic itself.
func groups(arch string, server func(*implementation) *implementation) (assembly []group, plain []*implementation) {
	for _, i := range append(implementationsOf(arch), generic) {
		s := server(i)
		if s == generic {
			plain = append(plain, i)
			continue
		}
		at := slices.IndexFunc(assembly, func(g group) bool { return g.server == s })
		if at < 0 {
			at = len(assembly)
			assembly = append(assembly, group{server: s})
		}
		assembly[at].users = append(assembly[at].users, i)
	}
	return assembly, plain
}

func kernelNamed(name string) *kernel {
	for _, f := range families {
		for i := range f.kernels {
			if f.kernels[i].name == name {
				return &f.kernels[i]
			}
		}
	}
	panic("no kernel " + name)
}
