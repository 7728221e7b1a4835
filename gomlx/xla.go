//go:build xla

package main

import "github.com/gomlx/go-xla/compute/xla" // the backends xla:cpu, xla:cuda and xla:tpu, by cgo

// A plugin is looked for in PJRT_PLUGIN_LIBRARY_PATH and where systems keep libraries, and
// is not downloaded.
func init() { xla.EnableAutoInstall(false) }
