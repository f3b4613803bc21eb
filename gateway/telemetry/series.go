package telemetry

import (
	"strings"
	"sync"
	"sync/atomic"
)

// maxSeries bounds the series of one metric. The configuration of a large gateway stays far
// below it; what lies beyond shares one series.
const maxSeries = 10_000

// labels is a label set: the values, in the order of the metric's label names.
type labels interface {
	[1]string | [2]string | [3]string | [5]string
}

// series is the children of one labelled metric, resolved once per label set. A lookup takes
// no lock and allocates nothing; only the first use of a label set copies the map.
type series[K labels, M any] struct {
	known atomic.Pointer[map[K]M]
	mu    sync.Mutex
	child func(values ...string) M
}

func newSeries[K labels, M any](child func(values ...string) M) *series[K, M] {
	s := &series[K, M]{child: child}
	s.known.Store(&map[K]M{})
	return s
}

// of returns the child of a label set.
func (s *series[K, M]) of(k K) M {
	if m, ok := (*s.known.Load())[k]; ok {
		return m
	}
	return s.add(k)
}

// add resolves the child of a new label set.
func (s *series[K, M]) add(k K) M {
	for i := range len(k) { // a copy: the strings may lie in a request's buffer
		k[i] = strings.ToValidUTF8(strings.Clone(k[i]), "\uFFFD")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := *s.known.Load()
	if m, ok := old[k]; ok {
		return m
	}
	if len(old) >= maxSeries {
		for i := range len(k) {
			k[i] = Other
		}
		return s.child(values(&k)...)
	}
	m := s.child(values(&k)...)
	grown := make(map[K]M, len(old)+1)
	for name, child := range old {
		grown[name] = child
	}
	grown[k] = m
	s.known.Store(&grown)
	return m
}

// keep forgets every label set that is not wanted and returns those forgotten.
func (s *series[K, M]) keep(wanted func(K) bool) []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, gone := map[K]M{}, []K(nil)
	for k, m := range *s.known.Load() {
		if wanted(k) {
			kept[k] = m
		} else {
			gone = append(gone, k)
		}
	}
	s.known.Store(&kept)
	return gone
}

func values[K labels](k *K) []string {
	list := make([]string, len(*k))
	for i := range len(*k) {
		list[i] = (*k)[i]
	}
	return list
}
