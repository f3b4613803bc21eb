package policy

// List is a short list of words in canonical form (sorted, without repeats), so that inputs
// which mean the same are equal. The zero value is the empty list. It is a JSON array; build
// one where a generation is built, or with interning per request: ListOf allocates.
type List struct{ json string }

// ListOf returns the canonical list of the words.
func ListOf(words ...string) List { panic("skeleton") }

// OrderedListOf returns the list of the words in the given order.
func OrderedListOf(words ...string) List { panic("skeleton") }

// JSON returns the list as a JSON array.
func (l List) JSON() string { panic("skeleton") }

// Object is a flat JSON object in canonical form (sorted keys). The zero value is the empty
// object. Labels of a key, requirements and quality gates of an alias are such objects.
type Object struct{ json string }

// LabelsOf returns the labels as a canonical object. It allocates: once per generation.
func LabelsOf(labels map[string]string) Object { panic("skeleton") }

// ObjectOf returns any value that marshals to a JSON object in canonical form. It allocates:
// once per generation.
func ObjectOf(v any) (Object, error) { panic("skeleton") }

// JSON returns the object as JSON.
func (o Object) JSON() string { panic("skeleton") }
