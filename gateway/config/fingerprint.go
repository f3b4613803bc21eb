package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"reflect"
	"slices"
)

// Digest returns a fingerprint of any value made of the configuration's types: equal values
// have equal ones, in this process and in any other of the same version. By it a reload tells
// what stayed as it was. Secrets count, and cannot be read back.
func Digest(v any) string {
	h := sha256.New()
	write(h, reflect.ValueOf(v))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func write(h hash.Hash, v reflect.Value) {
	if !v.IsValid() {
		_, _ = h.Write([]byte{0})
		return
	}
	_, _ = h.Write([]byte{byte(v.Kind())})
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		write(h, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			write(h, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		number(h, uint64(v.Len()))
		for i := range v.Len() {
			write(h, v.Index(i))
		}
	case reflect.Map:
		number(h, uint64(v.Len()))
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if a.String() < b.String() {
				return -1
			}
			return 1
		})
		for _, k := range keys {
			write(h, k)
			write(h, v.MapIndex(k))
		}
	case reflect.String:
		number(h, uint64(v.Len()))
		_, _ = h.Write([]byte(v.String()))
	case reflect.Bool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		number(h, n)
	case reflect.Int, reflect.Int64:
		number(h, uint64(v.Int()))
	case reflect.Uint8:
		number(h, v.Uint())
	case reflect.Float64:
		number(h, math.Float64bits(v.Float()))
	default:
		panic("config: no fingerprint of " + v.Type().String())
	}
}

func number(h hash.Hash, n uint64) {
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, n))
}
