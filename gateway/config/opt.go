package config

// Opt is a value that may be left out, where that is not the same as any value.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some is a value that is set.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Or returns the value, or another one where it is not set.
func (o Opt[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// optional is what the loader sees of an Opt.
type optional interface {
	target() any // a pointer to the value
	mark()       // it is set
}

func (o *Opt[T]) target() any { return &o.Value }
func (o *Opt[T]) mark()       { o.Set = true }
