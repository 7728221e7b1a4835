// Package statedict saves the parameters of modules to safetensors files, and loads them, also under the names of other
// programs, such as PyTorch. An nn.StateDict is the table of names; Save and Load both use it, so one table serves both.
package statedict
