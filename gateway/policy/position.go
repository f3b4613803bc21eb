package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// place is where something stands in a file: line and column, both from 1.
type place struct{ line, column int }

// places are where the values of a document stand, by JSON pointer: their names, or in a list
// themselves. Faults of data name a line with it.
type places map[string]place

// positions maps the JSON pointer of every value in a document to the offset where its name,
// or in an array the value itself, begins.
type positions map[string]int64

// scan reads one JSON document token by token. It refuses what a decoder would pass over in
// silence: a name that stands twice in one object, of which the last would win.
func scan(text []byte) (positions, *Fault) {
	s := &scanner{decoder: json.NewDecoder(bytes.NewReader(text)), text: text, at: positions{}}
	s.decoder.UseNumber()
	err := s.value("")
	if err == nil {
		if _, more := s.decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the end of the document")
		}
	}
	if err == nil {
		return s.at, nil
	}
	offset := s.decoder.InputOffset()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		offset = syntax.Offset - 1
	}
	if twice := (*twiceError)(nil); errors.As(err, &twice) {
		offset = twice.offset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		offset, err = int64(len(text)), errors.New("the document ends too early")
	}
	fault := &Fault{Message: err.Error()}
	fault.Line, fault.Column = lineOf(text, offset)
	return nil, fault
}

type scanner struct {
	decoder *json.Decoder
	text    []byte
	at      positions
	depth   int
}

type twiceError struct {
	name   string
	offset int64
}

func (e *twiceError) Error() string {
	return fmt.Sprintf("%q stands twice in this object", clip(e.name))
}

const maxDepth = 100

func (s *scanner) value(pointer string) error {
	if s.depth++; s.depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	defer func() { s.depth-- }()
	token, err := s.decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		for s.decoder.More() {
			before := s.begin()
			name, err := s.decoder.Token()
			if err != nil {
				return err
			}
			key, _ := name.(string)
			inner := pointer + "/" + escapePointer(key)
			if _, twice := s.at[inner]; twice {
				return &twiceError{key, before}
			}
			s.at[inner] = before
			if err := s.value(inner); err != nil {
				return err
			}
		}
		_, err = s.decoder.Token()
	case json.Delim('['):
		for i := 0; s.decoder.More(); i++ {
			inner := pointer + "/" + strconv.Itoa(i)
			s.at[inner] = s.begin()
			if err := s.value(inner); err != nil {
				return err
			}
		}
		_, err = s.decoder.Token()
	}
	return err
}

// begin returns the offset of the next token: past blanks and the comma before it.
func (s *scanner) begin() int64 {
	at := s.decoder.InputOffset()
	for at < int64(len(s.text)) && strings.IndexByte(" \t\r\n,", s.text[at]) >= 0 {
		at++
	}
	return at
}

// pointerOf returns the JSON pointer of a path.
func pointerOf(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + escapePointer(name))
	}
	return b.String()
}

func escapePointer(name string) string {
	if strings.ContainsAny(name, "~/") {
		return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	}
	return name
}

// lineOf returns the line and column, both from 1, of a byte offset.
func lineOf(text []byte, offset int64) (line, column int) {
	offset = min(max(offset, 0), int64(len(text)))
	before := text[:offset]
	return bytes.Count(before, []byte("\n")) + 1, int(offset) - bytes.LastIndexByte(before, '\n')
}
