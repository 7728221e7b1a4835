package wasm

// Instructions.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opI32Load      = 0x28
	opI32Const     = 0x41
	opI32Eqz       = 0x45
	opI32Eq        = 0x46
	opI32LtS       = 0x48
	opI32GeS       = 0x4e
	opI32Add       = 0x6a
	opI32Shl       = 0x74
	opVector       = 0xfd // the prefix of the instructions below
)

// Instructions of vectors.
const (
	v128Load         = 0x00
	v128Load16x4U    = 0x04
	v128Load32Splat  = 0x09
	v128Store        = 0x0b
	v128Const        = 0x0c
	i8x16Shuffle     = 0x0d
	i32x4Splat       = 0x11
	i64x2Splat       = 0x12
	f32x4Splat       = 0x13
	f32x4ExtractLane = 0x1f
	i8x16Eq          = 0x23
	i32x4GtS         = 0x3b
	i32x4GeU         = 0x40
	f32x4Eq          = 0x41
	f32x4Lt          = 0x43
	v128And          = 0x4e
	v128AndNot       = 0x4f
	v128Or           = 0x50
	v128Xor          = 0x51
	v128Bitselect    = 0x52
	v128AnyTrue      = 0x53
	v128Load32Lane   = 0x56
	v128Store32Lane  = 0x5a
	v128Store64Lane  = 0x5b
	v128Load32Zero   = 0x5c
	v128Load64Zero   = 0x5d
	i16x8ExtendLowS  = 0x87
	i16x8ExtendHighS = 0x88
	i32x4ExtendLowS  = 0xa7
	i32x4ExtendHighS = 0xa8
	i32x4Shl         = 0xab
	i64x2ShrU        = 0xcd
	i64x2Add         = 0xce
	i64x2Mul         = 0xd5
	f32x4Abs         = 0xe0
	f32x4Sqrt        = 0xe3
	f32x4Add         = 0xe4
	f32x4Sub         = 0xe5
	f32x4Mul         = 0xe6
	f32x4Div         = 0xe7
	f32x4Max         = 0xe9
	f32x4PMin        = 0xea
	f32x4PMax        = 0xeb
	f32x4ConvertS    = 0xfa
)
