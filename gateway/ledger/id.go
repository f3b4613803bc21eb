package ledger

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
)

const idPrefix = "req_"

// A request's row number is its place in time: the millisecond it was received, then 20
// bits. NewID puts the same 20 bits first into the ID's random part, so that an ID leads
// to its row without an index. IDs made elsewhere are found through the table of names.
const placeBits = 20

var idCounter atomic.Uint32

func init() { idCounter.Store(rand.Uint32()) }

// NewID makes a request ID for a request received at t: "req_" and a ULID of that
// millisecond. IDs made here cost the ledger no index entry of their own, as long as the
// record's ReceivedAt is t.
func NewID(t time.Time) string {
	var u ulid.ULID
	_ = u.SetTime(uint64(t.UnixMilli())) // #nosec G115 -- only a time before 1970 could be negative
	low := idCounter.Add(1) & (1<<placeBits - 1)
	random := rand.Uint64()
	u[6], u[7] = byte(low>>12), byte(low>>4)
	u[8] = byte(low<<4) | byte(random>>60)
	for i := range 7 {
		u[9+i] = byte(random >> (8 * i))
	}
	var id [len(idPrefix) + ulid.EncodedSize]byte
	copy(id[:], idPrefix)
	_ = u.MarshalTextTo(id[len(idPrefix):])
	return string(id[:])
}

// parseID reads an ID of the form that NewID makes. Only the canonical spelling counts:
// it is what the ID is given back as.
func parseID(id string) (ulid.ULID, bool) {
	s, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(s) != ulid.EncodedSize {
		return ulid.ULID{}, false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return ulid.ULID{}, false
		}
	}
	u, err := ulid.ParseStrict(s)
	return u, err == nil
}

// placeOf returns the row number that an ID itself names.
func placeOf(id string) (seq int64, ok bool) {
	u, ok := parseID(id)
	if !ok {
		return 0, false
	}
	low := int64(u[6])<<12 | int64(u[7])<<4 | int64(u[8])>>4
	return placeAt(int64(u.Time())) | low, true // #nosec G115 -- 48 bits
}

// placeAt returns the first row number of a millisecond. Row numbers are positive.
func placeAt(ms int64) int64 {
	return min(max(ms, 0), 1<<(62-placeBits)) << placeBits
}

// wantedPlace returns the row number for a record, and whether its ID leads there.
func wantedPlace(r *Record) (seq int64, named bool) {
	first := placeAt(r.ReceivedAt.UnixMilli())
	if seq, ok := placeOf(r.ID); ok && seq>>placeBits == first>>placeBits {
		return seq, true
	}
	return first | int64(rand.Uint32N(1<<placeBits)), false
}
