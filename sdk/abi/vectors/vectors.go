// Package vectors holds inputs and outputs of the reference guest: what every SDK must reproduce
// byte for byte. It owns the files beside it and how they are read; README.md says what the
// reference guest does.
package vectors

import (
	"embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

//go:embed *.txt
var files embed.FS

// Vector is one call and what it answers. It is made on an instance that was configured with
// Config and has answered nothing else, or anything else: that must not matter.
type Vector struct {
	Name   string // unique
	Op     uint32
	Config string // JSON; "" for the operations configure and describe: the instance is new
	In     []byte
	Out    []byte
	Failed bool // Out is an error
}

// All returns every vector, in order.
func All() ([]Vector, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []Vector
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		list, err := Parse(strings.TrimSuffix(e.Name(), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// Parse reads a file's text. Its vectors' names begin with that of the file.
func Parse(file, text string) (list []Vector, err error) {
	var v *Vector
	for i, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, " ")
		if v == nil && key != "#" && key != "" {
			return nil, fmt.Errorf("%s.txt:%d: no name yet", file, i+1)
		}
		switch key {
		case "":
		case "#":
			list = append(list, Vector{Name: file + ": " + value})
			v = &list[len(list)-1]
		case "op":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 32)
			v.Op = uint32(n)
		case "config":
			v.Config = value
		case "in":
			v.In, err = hex.DecodeString(value)
		case "out", "error":
			v.Failed = key == "error"
			v.Out, err = hex.DecodeString(value)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", file, i+1, err)
		}
	}
	return list, nil
}

// Format is the text that Parse reads, of vectors of one file.
func Format(file string, list []Vector) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# %s\nop %d\n", strings.TrimPrefix(v.Name, file+": "), v.Op)
		if v.Config != "" {
			fmt.Fprintf(&b, "config %s\n", v.Config)
		}
		key := "out"
		if v.Failed {
			key = "error"
		}
		fmt.Fprintf(&b, "in %x\n%s %x\n", v.In, key, v.Out)
	}
	return b.String()
}
