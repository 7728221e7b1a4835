package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/attn-go/attn/internal/simd"
)

type versionCommand struct{}

// version returns the version of this program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown)"
}

func (versionCommand) Run(c console) error {
	_, err := fmt.Fprintf(c.out, "attn %s %s %s/%s %s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, simd.Implementation())
	return err
}
