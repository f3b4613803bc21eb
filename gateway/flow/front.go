package flow

// Head is what the front knows of a request when its headers are in: the lookup of one
// header by its lower-case name, nil where it is absent. The bytes are valid until the
// request's Exchange is closed.
type Head interface{ Peek(name string) []byte }

// Field is one header of a Reply.
type Field struct{ Name, Value string }

// Reply is what the front writes. With Stream the body comes from Exchange.WriteTo after
// the head; otherwise Body is the whole body, valid until Exchange.Close.
type Reply struct {
	Status      int
	ContentType string
	Header      []Field
	Body        []byte
	Stream      bool
}
