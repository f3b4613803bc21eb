//go:build unix

package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// openFile opens a file to read. A pipe that takes its place meanwhile does not hold it up.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}
