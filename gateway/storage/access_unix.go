//go:build unix

package storage

import "syscall"

// access asks the system whether this process may write a file, or make one in a folder.
func access(path string, folder bool) error {
	const search, write = 1, 2
	if folder {
		return syscall.Access(path, search|write)
	}
	return syscall.Access(path, write)
}
