//go:build wasip1

// A guest made by the Go toolchain: what it does is chosen by the first byte of its input.
package main

import (
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
	"unsafe"
)

//go:embed manifest.json
var manifest []byte

var (
	in, out []byte
	config  string
	hoard   [][]byte
)

func main() {}

//go:wasmexport interlock_abi
func abi() uint32 { return 1 << 16 }

//go:wasmexport interlock_alloc
func alloc(n uint32) uint32 {
	if uint32(cap(in)) < n {
		in = make([]byte, n)
	}
	return address(in)
}

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

//go:wasmexport interlock_call
func call(op, n uint32) uint64 {
	b := in[:n]
	out = out[:0]
	failed := uint64(0)
	switch op {
	case 0:
		b = b[4+binary.LittleEndian.Uint32(b):]
		config = string(b[4 : 4+binary.LittleEndian.Uint32(b)])
		if config == `{"word":"no"}` {
			failed = 1 << 63
			for _, s := range []string{"config", "this word is not wanted", ""} {
				out = append(binary.LittleEndian.AppendUint32(out, uint32(len(s))), s...)
			}
			out = binary.LittleEndian.AppendUint32(out, 0)
		}
	case 5:
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(manifest))), manifest...)
	default:
		act(b)
	}
	return failed | uint64(address(out))<<32 | uint64(len(out))
}

func act(b []byte) {
	switch b[0] {
	case 'e': // echo
		out = append(out, b...)
	case 'c':
		out = append(out, config...)
	case 'g': // garbage of its own for each call
		m := map[string][]byte{}
		for i := range 20 {
			m[strconv.Itoa(i)] = append([]byte(nil), b...)
		}
		out = strconv.AppendInt(out, int64(len(m)), 10)
	case 'j': // what an adapter does: it looks at each byte once and copies most
		depth := 0
		for _, c := range b {
			switch c {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			case '"', '\\', ',', ':':
			default:
				out = append(out, c)
			}
		}
		out = strconv.AppendInt(out, int64(depth), 10)
	case 'm':
		for {
			hoard = append(hoard, make([]byte, 1<<20))
		}
	case 'p':
		panic("oh no")
	case 'w':
		fmt.Println("hello from the guest", len(b))
		os.Stderr.WriteString("and again\n")
		out = append(out, "written"...)
	case 'r':
		var r [16]byte
		rand.Read(r[:])
		out = append(out, r[:]...)
	case 't':
		a := time.Now()
		for time.Since(a) == 0 {
		}
		out = strconv.AppendInt(out, int64(time.Since(a)), 10)
		out = append(out, ' ')
		out = strconv.AppendInt(out, a.UnixMilli(), 10)
	case 'z':
		time.Sleep(time.Hour)
	case 'd':
		<-make(chan int)
	case 'n':
		out = fmt.Appendf(out, "%d args %d env;", len(os.Args), len(os.Environ()))
		if _, err := os.Open("/etc/passwd"); err != nil {
			out = append(out, " no file;"...)
		}
		if _, err := os.ReadDir("/"); err != nil {
			out = append(out, " no folder;"...)
		}
		if _, err := net.Dial("tcp", "127.0.0.1:80"); err != nil {
			out = append(out, " no socket"...)
		}
	case 'x':
		os.Exit(3)
	}
}
