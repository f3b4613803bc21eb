package config

import (
	"reflect"
)

// Change is what differs between two configurations.
type Change struct {
	// Sections are the top-level keys whose values differ, in the order of the file.
	Sections []string
	// Restart are the keys among the changed ones that need a restart to take effect: the
	// listeners' and the storage's.
	Restart []string
}

// Diff compares two configurations.
func Diff(before, after *Config) Change {
	var c Change
	a, b := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for _, f := range fieldsOf(a.Type()) {
		x, y := a.Field(f.index), b.Field(f.index)
		if Digest(x.Interface()) == Digest(y.Interface()) {
			continue
		}
		c.Sections = append(c.Sections, f.name)
		switch f.name {
		case "listen", "storage":
			c.Restart = append(c.Restart, leaves(x, y, f.name)...)
		case "admin":
			if before.Admin.Listen != after.Admin.Listen {
				c.Restart = append(c.Restart, "admin.listen")
			}
		}
	}
	return c
}

// leaves lists the keys below a mapping that differ.
func leaves(x, y reflect.Value, path string) (keys []string) {
	for _, f := range fieldsOf(x.Type()) {
		a, b := x.Field(f.index), y.Field(f.index)
		switch {
		case Digest(a.Interface()) == Digest(b.Interface()):
		case a.Kind() == reflect.Struct && len(fieldsOf(a.Type())) > 0:
			keys = append(keys, leaves(a, b, Join(path, f.name))...)
		default:
			keys = append(keys, Join(path, f.name))
		}
	}
	return keys
}
