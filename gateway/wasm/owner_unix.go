//go:build unix

package wasm

import (
	"io/fs"
	"os"
	"syscall"
)

func ownedByUs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }
