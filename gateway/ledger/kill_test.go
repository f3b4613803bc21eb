package ledger

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// After kill -9 the database is consistent and nothing is open. With sync every attempt
// that was acknowledged is there; with group_commit every one that was flushed.
func TestKillMinusNine(t *testing.T) {
	for _, mode := range []string{"sync", "group_commit"} {
		t.Run(mode, func(t *testing.T) {
			for round := range 3 {
				killOnce(t, t.TempDir(), mode == "sync", 50+rand.IntN(300*(round+1)))
			}
		})
	}
}

func killOnce(t *testing.T, dir string, sync bool, after int) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), "LEDGER_TEST_CHILD="+dir)
	if sync {
		child.Env = append(child.Env, "LEDGER_TEST_SYNC=1")
	}
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())

	opened, certain := map[string]bool{}, map[string]bool{}
	lines := 0
	for s := bufio.NewScanner(out); s.Scan(); {
		what, id, _ := strings.Cut(s.Text(), " ")
		switch what {
		case "opened":
			opened[id] = true
			if sync {
				certain[id] = true
			}
		case "flushing": // what was opened before this line is certain once "flushed" comes
			for id := range opened {
				if !certain[id] {
					certain[id] = false
				}
			}
		case "flushed":
			for id := range certain {
				certain[id] = true
			}
		}
		if lines++; lines == after {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())
	require.GreaterOrEqual(t, lines, after)

	f := start(t, dir, Options{})
	defer f.stop()
	require.NoError(t, f.db.Check(ctx))
	n := 0
	for id, sure := range certain {
		if sure {
			n++
			r := f.show(id)
			require.NotEqual(t, failure.Running, r.Terminal)
			require.Equal(t, "action "+id, r.UserAction)
		}
	}
	require.Positive(t, n)
	interrupted := 0
	require.NoError(t, f.Reader().each(ctx, Filter{}, true, func(r *Record) error {
		require.Len(t, r.Decisions, 1)
		require.NotEmpty(t, r.Attempts)
		switch r.Terminal {
		case failure.Interrupted:
			interrupted++
		case failure.Success:
			require.Equal(t, failure.EndSuccess, r.Attempts[len(r.Attempts)-1].End)
		default:
			t.Errorf("%s ended as %q", r.ID, r.Terminal)
		}
		for i := range r.Attempts {
			require.NotEqual(t, failure.Open, r.Attempts[i].End)
		}
		return nil
	}))
	require.Positive(t, interrupted)
}

// recordUntilKilled is the child: it says what it was told is safe.
func recordUntilKilled(dir string, sync bool) {
	db, err := storage.Open(context.Background(), storage.Options{URL: "sqlite:" + filepath.Join(dir, "l.db"), Sync: sync})
	if err != nil {
		panic(err)
	}
	o := Options{DB: db}
	if sync {
		o.Durability = Sync
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		panic(err)
	}
	work := func(w int) {
		for i := 0; ; i++ {
			r := l.Acquire()
			fillRequest(r, time.Now())
			id := r.ID
			r.UserAction = "action " + id
			if err := l.OpenAttempt(r, 1, nil); err != nil {
				panic(err)
			}
			fmt.Println("opened", id)
			if i%10 == 0 {
				continue // never ended
			}
			if i%3 == 0 {
				a := r.Attempt(1)
				a.Class, a.End = failure.ServerError, failure.EndFailed
				l.CloseAttempt(r, 1)
				r.NextAttempt().Cause = failure.SameRouteRetry
				if err := l.OpenAttempt(r, 2, nil); err != nil {
					panic(err)
				}
			}
			if i%7 == 0 && !sync {
				time.Sleep(15 * time.Millisecond) // ends in another group
			}
			fillAnswer(r)
			l.CloseAttempt(r, len(r.Attempts))
			l.CloseRequest(r)
			if w == 0 && i%20 == 1 {
				fmt.Println("flushing")
				if err := l.Flush(context.Background()); err != nil {
					panic(err)
				}
				fmt.Println("flushed")
			}
		}
	}
	for w := range 3 {
		go work(w + 1)
	}
	go func() {
		time.Sleep(patience)
		os.Exit(3)
	}()
	work(0)
}
