//go:build xla

package main

import "github.com/gomlx/go-xla/compute/xla" // the backends xla:cpu, xla:cuda and xla:tpu, by cgo

// The plugin is searched in PJRT_PLUGIN_LIBRARY_PATH and in the system's library folders; it is not downloaded.
func init() { xla.EnableAutoInstall(false) }
