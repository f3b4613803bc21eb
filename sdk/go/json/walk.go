package json

// Walker reads a document in one pass and checks it on the way, as Parse does. It is for what
// every call has to read: a value that Parse and Members would look at once for each object
// around it, a Walker looks at once.
//
//	w := json.Walk(body)
//	if w.Object() {
//		for w.Member() {
//			if string(w.Key) == "messages" && w.Array() {
//				for w.Item() {
//					…
//				}
//			} else {
//				other = w.Value()
//			}
//		}
//	}
//	if !w.End() {
//		return errInvalid
//	}
//
// The value at hand has to be taken, by Value or by entering it and going on until Member or Item
// is false. Nothing that was read may be believed before End is true: the part behind it may not
// be JSON. Where the document is not valid, every method is false or nil from there on.
type Walker struct {
	// Key is the member's, decoded, after Member was true. It aliases the document unless it has
	// escapes.
	Key []byte

	b     []byte
	i     int
	depth int
	fresh bool // nothing was read of the object or array
	whole bool // the document's value was read
	bad   bool
}

// Walk returns a Walker with the whole document at hand.
func Walk(b []byte) Walker { return Walker{b: b, i: blanks(b, 0)} }

// Kind tells what the value at hand is by its first byte.
func (w *Walker) Kind() Kind {
	if w.i >= len(w.b) {
		return Absent
	}
	return Value(w.b[w.i:]).Kind()
}

// Object enters the value at hand if it is an object. If it is not, nothing happens.
func (w *Walker) Object() bool { return w.enter('{') }

// Array enters the value at hand if it is an array. If it is not, nothing happens.
func (w *Walker) Array() bool { return w.enter('[') }

func (w *Walker) enter(c byte) bool {
	if w.i >= len(w.b) || w.b[w.i] != c {
		return false
	}
	if w.depth >= MaxDepth {
		return w.fail()
	}
	w.depth++
	w.i++
	w.fresh = true
	return true
}

func (w *Walker) fail() bool {
	w.bad, w.i = true, len(w.b)
	return false
}

// Member goes to the object's next member, whose value is then at hand. At the object's end it is
// false, and the walker stands behind the object.
func (w *Walker) Member() bool {
	if !w.next('}') {
		return false
	}
	b, from := w.b, w.i
	if from >= len(b) || b[from] != '"' {
		return w.fail()
	}
	end, escaped := checkString(b, from)
	if end < 0 {
		return w.fail()
	}
	if w.i = checkColon(b, end); w.i < 0 {
		return w.fail()
	}
	w.Key = b[from+1 : end-1 : end-1]
	if escaped {
		w.Key = appendDecoded(nil, w.Key)
	}
	return true
}

// Item goes to the array's next element, which is then at hand. At the array's end it is false,
// and the walker stands behind the array.
func (w *Walker) Item() bool { return w.next(']') }

// next goes behind the comma, or behind the end of what was entered.
func (w *Walker) next(end byte) bool {
	b := w.b
	i := blanks(b, w.i)
	if i >= len(b) {
		return w.fail()
	}
	c := b[i]
	switch {
	case c == end:
		w.depth--
		w.i = i + 1
		w.fresh, w.whole = false, w.depth == 0
		return false
	case w.fresh:
		w.fresh = false
	case c == ',':
		i = blanks(b, i+1)
	default:
		return w.fail()
	}
	w.i = i
	return true
}

// Value takes the value at hand.
func (w *Walker) Value() Value {
	b, from := w.b, w.i
	end := -1
	if from < len(b) && b[from] == '"' {
		end, _ = checkString(b, from)
	} else {
		end = check(b, from, w.depth)
	}
	if end < 0 {
		w.fail()
		return nil
	}
	w.i, w.whole = end, w.depth == 0
	return Value(b[from:end:end])
}

// End says whether the whole document was read, and is valid.
func (w *Walker) End() bool { return w.whole && !w.bad && blanks(w.b, w.i) == len(w.b) }
