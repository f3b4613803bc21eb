package route

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

// storeTime bounds one write.
const storeTime = 10 * time.Second

// keeper brings the store to what accounts are, outside the path of requests: an isolation is
// rare, and a request must not wait for a disk on its account. Its goroutine lives only while
// something is to be written.
type keeper struct {
	store  Store // nil: nothing is kept
	failed func(error)

	mu    sync.Mutex
	dirty []isolated
	idle  chan struct{} // closed when everything is written; nil while nothing is to do
}

// isolated is what has an isolation, or had one.
type isolated interface {
	kept() (storage.Isolation, bool)
}

// gone is an isolation in the store that nothing has any more.
type gone storage.Isolation

func (g gone) kept() (storage.Isolation, bool) { return storage.Isolation(g), false }

// changed has the store brought to what i is by the time it is written: however changes
// overtake each other, the last one holds.
func (k *keeper) changed(i isolated) {
	if k.store == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dirty = append(k.dirty, i)
	if k.idle == nil {
		k.idle = make(chan struct{})
		go k.work()
	}
}

func (k *keeper) work() {
	for {
		k.mu.Lock()
		if len(k.dirty) == 0 {
			close(k.idle)
			k.idle = nil
			k.mu.Unlock()
			return
		}
		next := k.dirty[0]
		k.dirty = k.dirty[1:]
		k.mu.Unlock()
		if err := k.write(next); err != nil {
			k.failed(err)
		}
	}
}

func (k *keeper) write(i isolated) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	is, ok := i.kept()
	var err error
	if ok {
		err = k.store.PutIsolation(ctx, is)
	} else if _, err = k.store.DeleteIsolation(ctx, is.Scope); errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("isolation of %s: %w", is.Scope, err)
	}
	return nil
}

func (k *keeper) flush(ctx context.Context) error {
	k.mu.Lock()
	idle := k.idle
	k.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
