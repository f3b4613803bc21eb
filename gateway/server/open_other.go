//go:build !unix

package server

import "os"

func openFile(path string) (*os.File, error) { return os.Open(path) }
