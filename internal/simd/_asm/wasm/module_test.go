package wasm

import (
	"bytes"
	"testing"
)

// Numbers are encoded as the specification's examples are.
func TestLEB128(t *testing.T) {
	for _, c := range []struct {
		got, want []byte
	}{
		{unsigned(0), []byte{0}},
		{unsigned(127), []byte{0x7f}},
		{unsigned(128), []byte{0x80, 0x01}},
		{unsigned(624485), []byte{0xe5, 0x8e, 0x26}},
		{signed(0), []byte{0}},
		{signed(63), []byte{0x3f}},
		{signed(64), []byte{0xc0, 0x00}},
		{signed(-1), []byte{0x7f}},
		{signed(-64), []byte{0x40}},
		{signed(-123456), []byte{0xc0, 0xbb, 0x78}},
	} {
		if !bytes.Equal(c.got, c.want) {
			t.Errorf("% x, want % x", c.got, c.want)
		}
	}
}

// A local that is read right after it was set stays on the stack, but not across the start of a
// loop, and a local of an ended scope is used again.
func TestLocals(t *testing.T) {
	f := new(Module).Func("f", []Type{I32}, nil)
	x := f.ParamX(0)
	f.Scope(func() { x.Set(x.Plus(1)) })
	f.Loop(func(again Label) { f.BranchIf(again, x.Plus(2)) })
	want := []byte{
		opLocalGet, 0, opI32Const, 1, opI32Add, opLocalTee, 1, opLocalSet, 0,
		opLoop, voidBlock, opLocalGet, 0, opI32Const, 2, opI32Add, opLocalTee, 1, opBrIf, 0, opEnd,
	}
	if !bytes.Equal(f.code, want) || len(f.locals) != 1 {
		t.Errorf("code\n% x with %d locals, want\n% x with 1", f.code, len(f.locals), want)
	}
}

// The last byte of a local with a long number is not taken for another local.
func TestManyLocals(t *testing.T) {
	f := new(Module).Func("f", []Type{I32, I32}, nil)
	f.pop(129) // 0x81 0x01
	f.get(1)
	if want := []byte{opLocalSet, 0x81, 0x01, opLocalGet, 1}; !bytes.Equal(f.code, want) {
		t.Errorf("code % x, want % x", f.code, want)
	}
}
