package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/itchio/lzma"
)

// squeeze compresses a file with LZMA, which assets/lzma.js decompresses: programs are a third smaller than with gzip.
// LZMA has no checksum, and a program with a wrong byte may run and compute wrong numbers, so the CRC-32 of the content
// follows.
func squeeze(data []byte) ([]byte, error) {
	var packed bytes.Buffer
	w := lzma.NewWriterSizeLevel(&packed, int64(len(data)), lzma.BestCompression)
	_, err := w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint32(packed.Bytes(), crc32.ChecksumIEEE(data)), nil
}

// joined is the largest number of zeros between two data segments that become one.
const joined = 64

// dataSection is the number of the section of a WebAssembly module that has the initial contents of the memory.
const dataSection = 11

// A segment is a part of the initial memory.
type segment struct{ from, to int }

// joinSegments returns a WebAssembly module whose initial memory, after change, is in fewer segments. The linker starts
// a segment after every few zeros. In a table with an entry per 4,096 addresses that makes 80,000 segments of two
// bytes, whose headers are a tenth of a compressed program; zeros cost almost nothing.
func joinSegments(module []byte, change func(memory []byte) error) ([]byte, error) {
	const header = 8
	if !bytes.HasPrefix(module, []byte("\x00asm\x01\x00\x00\x00")) {
		return nil, errors.New("not a WebAssembly module of version 1")
	}
	out := slices.Clone(module[:header])
	r := &wasmReader{rest: module[header:]}
	for len(r.rest) > 0 && r.err == nil {
		start := r.rest
		number := r.byte()
		content := r.bytes(r.unsigned())
		if number != dataSection {
			out = append(out, start[:len(start)-len(r.rest)]...)
			continue
		}
		data, err := joinData(content, change)
		if err != nil {
			return nil, err
		}
		out = append(binary.AppendUvarint(append(out, number), uint64(len(data))), data...)
	}
	return out, r.err
}

// Instructions of the offset of a segment.
const (
	i32Const = 0x41
	end      = 0x0b
)

// joinData joins the segments of a data section. Where segments overlap, the last one counts.
func joinData(section []byte, change func(memory []byte) error) ([]byte, error) {
	r := &wasmReader{rest: section}
	var memory []byte
	var used []segment
	for n := r.unsigned(); n > 0 && r.err == nil; n-- {
		kind, op, from, last := r.byte(), r.byte(), r.signed(), r.byte()
		data := r.bytes(r.unsigned())
		if r.err == nil && (kind != 0 || op != i32Const || last != end || from < 0) {
			return nil, fmt.Errorf("a data segment of kind %d with offset %#x %d %#x, want a constant", kind, op, from, last)
		}
		to := from + len(data)
		memory = append(memory, make([]byte, max(0, to-len(memory)))...)
		copy(memory[from:], data)
		used = append(used, segment{from, to})
	}
	if r.err != nil {
		return nil, r.err
	}
	if err := change(memory); err != nil {
		return nil, err
	}
	slices.SortFunc(used, func(x, y segment) int { return x.from - y.from })
	var few []segment
	for _, s := range used {
		if n := len(few); n > 0 && s.from-few[n-1].to <= joined {
			few[n-1].to = max(few[n-1].to, s.to)
		} else {
			few = append(few, s)
		}
	}
	out := binary.AppendUvarint(nil, uint64(len(few)))
	for _, s := range few {
		out = append(appendSigned(append(out, 0, i32Const), s.from), end)
		out = append(binary.AppendUvarint(out, uint64(s.to-s.from)), memory[s.from:s.to]...)
	}
	return out, nil
}

// A wasmReader reads the values of a WebAssembly module. After an error it returns zeros.
type wasmReader struct {
	rest []byte
	err  error
}

func (r *wasmReader) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.err = nil, errors.New("a WebAssembly module is cut short")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *wasmReader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *wasmReader) unsigned() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > 1<<32 {
		n = -1
	}
	r.bytes(n)
	return int(v)
}

// signed reads a number in LEB128, the last byte of which begins with the sign.
func (r *wasmReader) signed() (v int) {
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= int(b&0x7f) << shift
		if b < 0x80 {
			return v << (57 - shift) >> (57 - shift)
		}
	}
	r.bytes(-1)
	return 0
}

// appendSigned appends a number that is not negative as signed reads it.
func appendSigned(b []byte, v int) []byte {
	for ; v > 0x3f; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}
