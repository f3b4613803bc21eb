package downstream

import "sync/atomic"

// budget bounds the bytes of request bodies that may still be needed for another attempt.
type budget struct {
	limit int64 // 0 = none
	used  atomic.Int64
}

// take reserves n bytes, or returns false and reserves nothing.
func (b *budget) take(n int64) bool {
	if b.limit <= 0 || n <= 0 {
		return true
	}
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) {
	if b.limit > 0 && n > 0 {
		b.used.Add(-n)
	}
}
