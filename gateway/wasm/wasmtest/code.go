package wasmtest

// Code joins pieces of code: bytes, slices of bytes, and ints that are a byte each.
func Code(pieces ...any) []byte {
	var b []byte
	for _, p := range pieces {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case rune:
			b = append(b, byte(p))
		case byte:
			b = append(b, p)
		case []byte:
			b = append(b, p...)
		default:
			panic("wasmtest: a piece of code is a byte or bytes")
		}
	}
	return b
}

// Instructions without immediates.
const (
	Unreachable = 0x00
	End         = 0x0b
	Else        = 0x05
	Return      = 0x0f
	Drop        = 0x1a
	I32Eqz      = 0x45
	I32LtU      = 0x49
	I32Add      = 0x6a
	I32Sub      = 0x6b
	I32Mul      = 0x6c
	I32And      = 0x71
	I32Xor      = 0x73
	I64Or       = 0x84
	I64Shl      = 0x86
	I64OfI32U   = 0xad
)

// I32Const returns i32.const v.
func I32Const(v int32) []byte { return append([]byte{0x41}, S64(int64(v))...) }

// I64Const returns i64.const v.
func I64Const(v int64) []byte { return append([]byte{0x42}, S64(v)...) }

// Get returns local.get i.
func Get(i uint32) []byte { return append([]byte{0x20}, U32(i)...) }

// Set returns local.set i.
func Set(i uint32) []byte { return append([]byte{0x21}, U32(i)...) }

// Tee returns local.tee i.
func Tee(i uint32) []byte { return append([]byte{0x22}, U32(i)...) }

// Call returns call i.
func Call(i uint32) []byte { return append([]byte{0x10}, U32(i)...) }

// Br returns br depth.
func Br(depth uint32) []byte { return append([]byte{0x0c}, U32(depth)...) }

// BrIf returns br_if depth.
func BrIf(depth uint32) []byte { return append([]byte{0x0d}, U32(depth)...) }

// Block returns a block without parameters and results around code.
func Block(code ...any) []byte { return Code(0x02, 0x40, Code(code...), End) }

// Loop returns a loop without parameters and results around code.
func Loop(code ...any) []byte { return Code(0x03, 0x40, Code(code...), End) }

// If returns an if without parameters and results around code.
func If(code ...any) []byte { return Code(0x04, 0x40, Code(code...), End) }

// Load32 returns i32.load with an offset.
func Load32(offset uint32) []byte { return append([]byte{0x28, 2}, U32(offset)...) }

// Store32 returns i32.store with an offset.
func Store32(offset uint32) []byte { return append([]byte{0x36, 2}, U32(offset)...) }

// Instructions on memory as a whole.
var (
	Grow  = []byte{0x40, 0}
	Pages = []byte{0x3f, 0}
	Fill  = []byte{0xfc, 11, 0}
	Copy  = []byte{0xfc, 10, 0, 0}
)

// Repeat returns code n times.
func Repeat(n int, code ...any) []byte {
	one := Code(code...)
	var b []byte
	for range n {
		b = append(b, one...)
	}
	return b
}
