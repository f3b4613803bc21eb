//go:build !unix

package wasm

import "io/fs"

// Where files have no owner and no mode, the folder's place must protect it.
func ownedByUs(fs.FileInfo) bool { return true }

func writableByOthers(fs.FileInfo) bool { return false }
