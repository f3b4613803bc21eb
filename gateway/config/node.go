package config

// kind is what a node of the file is.
type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	text
	mapping
	sequence
)

func (k kind) String() string {
	return [...]string{"nothing", "true or false", "a whole number", "a number", "a text", "a mapping", "a list"}[k]
}

// node is one value of the file, whatever its syntax.
type node struct {
	kind   kind
	text   string // of a scalar: a number or boolean in JSON's spelling
	line   int
	column int
	fields []field
	items  []*node
}

// field is one key of a mapping with its value.
type field struct {
	name   string
	line   int
	column int
	value  *node
}
