package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// message reads HTTP/1.1 messages from pieces of any size: heads, and bodies by length or in
// chunks. It is for both sides of a connection and keeps nothing of a body.
type message struct {
	first func(line []byte) error // the request or status line
	body  func(piece []byte)      // a piece of the body, chunks undone

	part    part
	line    []byte // of a line that came in pieces, its beginning
	left    int    // bytes of the body or of the chunk
	length  int    // -1: none given
	chunked bool
	close   bool // the connection does not outlive the message
}

// part is where in a message the reader is.
type part uint8

const (
	partFirst part = iota
	partHeader
	partBody
	partChunkSize
	partChunk
	partChunkEnd
	partTrailer
)

// feed reads the bytes up to the end of a message at most: n of them, whole if it ended.
func (m *message) feed(p []byte) (n int, whole bool, err error) {
	for n < len(p) && !whole {
		if m.part == partBody || m.part == partChunk {
			k := min(m.left, len(p)-n)
			m.body(p[n : n+k])
			n += k
			if m.left -= k; m.left > 0 {
				break
			}
			if m.part == partBody {
				whole = true
			} else {
				m.part = partChunkEnd
			}
			continue
		}
		end := bytes.IndexByte(p[n:], '\n')
		if end < 0 {
			if m.line = append(m.line, p[n:]...); len(m.line) > 64<<10 {
				return n, false, errors.New("a line of more than 64 KiB")
			}
			return len(p), false, nil
		}
		line := p[n : n+end]
		n += end + 1
		if len(m.line) > 0 {
			m.line = append(m.line, line...)
			line = m.line
		}
		whole, err = m.take(bytes.TrimSuffix(line, []byte("\r")))
		m.line = m.line[:0]
		if err != nil {
			return n, false, err
		}
	}
	if whole {
		m.part = partFirst
	}
	return n, whole, nil
}

// take reads a line.
func (m *message) take(line []byte) (whole bool, err error) {
	switch m.part {
	case partFirst:
		m.length, m.chunked, m.close = -1, false, false
		m.part = partHeader
		return false, m.first(line)
	case partHeader:
		if len(line) == 0 {
			return m.beginBody()
		}
		return false, m.header(line)
	case partChunkSize:
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		if err != nil {
			return false, fmt.Errorf("a chunk's size: %w", err)
		}
		if m.left, m.part = int(n), partChunk; n == 0 {
			m.part = partTrailer
		}
	case partChunkEnd:
		if len(line) > 0 {
			return false, errors.New("a chunk longer than it says")
		}
		m.part = partChunkSize
	case partTrailer:
		return len(line) == 0, nil
	}
	return false, nil
}

func (m *message) header(line []byte) error {
	if v, ok := header(line, "content-length:"); ok {
		n, err := strconv.Atoi(string(v))
		if err != nil || n < 0 {
			return fmt.Errorf("a content-length of %q", v)
		}
		m.length = n
	} else if v, ok := header(line, "transfer-encoding:"); ok {
		m.chunked = bytes.EqualFold(v, []byte("chunked"))
	} else if v, ok := header(line, "connection:"); ok {
		m.close = bytes.EqualFold(v, []byte("close"))
	}
	return nil
}

func (m *message) beginBody() (whole bool, err error) {
	switch {
	case m.chunked:
		m.part = partChunkSize
	case m.length > 0:
		m.part, m.left = partBody, m.length
	case m.length < 0 && m.close:
		return false, errors.New("a body that only ends with its connection")
	default:
		return true, nil
	}
	return false, nil
}

// header is the value of the line if it is the header of that name, which ends in a colon.
func header(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name):]), true
}
