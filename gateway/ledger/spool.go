package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// spool is the file that takes records while storage is away: frames of a length, a
// checksum and a portable body, both little-endian, appended in groups and synced. A frame
// that a crash cut off ends the file.
//
// A nil spool holds nothing and takes nothing.
type spool struct {
	path  string
	limit int64
	f     *os.File
	head  int64 // the first frame that was not loaded
	size  int64
}

const (
	spoolMagic   = "ILSPOOL1"
	frameHead    = 8
	maxFrame     = 64 << 20
	spoolReadEnd = 4 << 20 // bytes looked at in one part
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func openSpool(path string, limit int64) (*spool, error) {
	if path == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &spool{path: path, limit: limit, f: f, head: int64(len(spoolMagic))}
	if err := s.begin(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("spool %s: %w", path, err)
	}
	return s, nil
}

// begin reads how far the file is whole and cuts off the rest.
func (s *spool) begin() error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < int64(len(spoolMagic)) { // new, or a crash while it was made
		return s.empty()
	}
	var magic [len(spoolMagic)]byte
	if _, err := s.f.ReadAt(magic[:], 0); err != nil {
		return err
	}
	if string(magic[:]) != spoolMagic {
		return errors.New("it is not a spool of this version of interlock: move it away")
	}
	s.size = info.Size()
	whole := s.head
	for {
		_, n, err := s.frameAt(whole)
		if err != nil {
			if !errors.Is(err, errCut) {
				return err
			}
			break
		}
		whole += n
	}
	s.size = whole
	return s.f.Truncate(whole)
}

func (s *spool) empty() error {
	if err := s.f.Truncate(0); err != nil {
		return err
	}
	if _, err := s.f.WriteAt([]byte(spoolMagic), 0); err != nil {
		return err
	}
	s.head = int64(len(spoolMagic))
	s.size = s.head
	return nil
}

// waiting is the number of bytes that were not loaded.
func (s *spool) waiting() int64 {
	if s == nil {
		return 0
	}
	return s.size - s.head
}

func (s *spool) fits(n int) bool { return s.size+int64(n) <= s.limit }

// append writes frames and syncs them. On an error none of them is in the spool.
func (s *spool) append(frames []byte) error {
	_, err := s.f.WriteAt(frames, s.size)
	if err == nil {
		err = s.f.Sync()
	}
	if err != nil {
		return errors.Join(err, s.f.Truncate(s.size))
	}
	s.size += int64(len(frames))
	return nil
}

var errCut = errors.New("ledger: the spool ends early")

// frameAt reads the frame at an offset and returns its payload and whole length; errCut
// where there is none, or one that is not whole.
func (s *spool) frameAt(at int64) (payload []byte, n int64, err error) {
	var head [frameHead]byte
	if at+frameHead > s.size {
		return nil, 0, errCut
	}
	if _, err := s.f.ReadAt(head[:], at); err != nil {
		return nil, 0, err
	}
	size := int64(binary.LittleEndian.Uint32(head[:]))
	if size == 0 || size > maxFrame || at+frameHead+size > s.size {
		return nil, 0, errCut
	}
	payload = make([]byte, size)
	if _, err := s.f.ReadAt(payload, at+frameHead); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, 0, errCut
	}
	return payload, frameHead + size, nil
}

// peek reads the first frames that were not loaded, at most limit, and how many bytes
// they take.
func (s *spool) peek(limit int) (entries []entry, read int64, err error) {
	for len(entries) < limit && s.head+read < s.size && read < spoolReadEnd {
		payload, n, err := s.frameAt(s.head + read)
		if errors.Is(err, errCut) {
			// It was whole when it was written: the disk has lost it. What follows
			// cannot be found any more.
			return entries, s.size - s.head, nil
		}
		if err != nil {
			return nil, 0, err
		}
		read += n
		r, _, err := decodeRecord(payload, nil, nil)
		if err != nil {
			continue // whole, but not readable: a fault of the version that wrote it
		}
		r.row = &row{unsure: true}
		entries = append(entries, entry{rec: r, origin: r})
	}
	return entries, read, nil
}

// advance forgets frames that were loaded. An empty spool is truncated.
func (s *spool) advance(n int64) error {
	s.head += n
	if s.head >= s.size {
		return s.empty()
	}
	return nil
}

func (s *spool) close() error {
	if s == nil {
		return nil
	}
	return s.f.Close()
}

// appendFrame appends a record as a frame.
func appendFrame(dst []byte, portable *encoder, r *Record) ([]byte, error) {
	at := len(dst)
	dst, err := portable.record(append(dst, make([]byte, frameHead)...), r)
	if err != nil {
		return nil, err
	}
	body := dst[at+frameHead:]
	if len(body) > maxFrame {
		return nil, fmt.Errorf("ledger: a record of %d bytes", len(body))
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(body))) // #nosec G115 -- bounded above
	binary.LittleEndian.PutUint32(dst[at+4:], crc32.Checksum(body, castagnoli))
	return dst, nil
}
