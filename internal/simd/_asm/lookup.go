package main

import (
	"fmt"
	"slices"
)

// Kernels of operations have the assembly of their signature, unless the table has another.
func init() {
	for _, f := range families {
		for i := range f.kernels {
			if k := &f.kernels[i]; k.asm == "" {
				k.asm = parse(k.op).assembly()
			}
		}
	}
}

// architectures returns those that have assembly.
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

// server returns the implementation whose kernel i uses: its own, or that of the
// first to stand in for it that has one, or generic Go.
func (k *kernel) server(i *implementation) *implementation {
	for i != generic && k.code[i] == nil {
		i = i.or
	}
	return i
}

// server returns the implementation whose kernels the driver calls for i, or
// generic. Drivers count in vectors, so it must be one with vectors like those
// of i.
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
			panic(fmt.Sprintf("%s calls kernels of %s and of %s", d.name, server.name, s.name))
		}
	}
	if server.lanes != i.lanes {
		panic(fmt.Sprintf("%s counts in vectors of %s but calls kernels of %s", d.name, i.name, server.name))
	}
	return server
}

// sameBits lists kernels that promise one another the same bits. Multiply takes
// now one, now the other, and all round a product and its sum once, which generic
// Go does not.
var sameBits = []string{"gemm1", "gemvTransposed", "axpy", "mulAdd"}

// check panics if an implementation takes some of those from generic Go.
func check() {
	for _, i := range implementations {
		for _, name := range sameBits {
			plain := func(name string) bool { return kernelNamed(name).server(i) == generic }
			if plain(name) != plain(sameBits[0]) {
				panic(fmt.Sprintf("%s needs all of %q or none, for they promise the same bits", i.name, sameBits))
			}
		}
	}
}

// A group is implementations that use the same kernel.
type group struct {
	server *implementation
	users  []*implementation
}

// groups returns the implementations of an architecture by who serves them, the
// best first, and those that generic Go serves, among them itself.
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

func driverNamed(name string) *driver {
	for _, f := range families {
		for i := range f.drivers {
			if f.drivers[i].name == name {
				return &f.drivers[i]
			}
		}
	}
	panic("no driver " + name)
}
