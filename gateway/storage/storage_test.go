package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("STORAGE_TEST_CHILD"); dir != "" {
		writeUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

func opened(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(dir, "i.db"), LockWait: 100 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestOpenURL(t *testing.T) {
	for _, tc := range []struct{ url, want string }{
		{"postgres://u:secret@h/db", "not built yet"},
		{"sqlite:", "sqlite:PATH"},
		{"sqlite::memory:", "sqlite:PATH"},
		{"mysql://x", "sqlite:PATH"},
		{"", "sqlite:PATH"},
	} {
		_, err := Open(t.Context(), Options{URL: tc.url})
		require.ErrorContains(t, err, tc.want)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := Open(t.Context(), Options{URL: "postgres://h/db"})
	require.ErrorIs(t, err, ErrNotBuilt)
}

func TestOpenOddPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b%20?c#d")
	db := opened(t, dir)
	require.NoError(t, db.PutSwitch(t.Context(), Switch{Kind: "model", Name: "a/b"}))
	_, err := os.Stat(filepath.Join(dir, "i.db"))
	require.NoError(t, err)
}

func TestNewerFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, opened(t, dir).Close())
	raw, err := sql.Open("sqlite", filepath.Join(dir, "i.db"))
	require.NoError(t, err)
	_, err = raw.Exec("PRAGMA user_version = 99")
	require.NoError(t, err)
	require.NoError(t, raw.Close())
	for _, readOnly := range []bool{false, true} {
		_, err = Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(dir, "i.db"), ReadOnly: readOnly})
		require.ErrorIs(t, err, ErrNewerFormat)
		require.ErrorContains(t, err, "99")
	}
}

// Examining finds what opening would, with a gateway on the file or none, and changes nothing.
func TestExamineChangesNothing(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "deep", "i.db")
	examine := func() error {
		t.Helper()
		contents := func() map[string]string {
			all := map[string]string{}
			require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					b, err := os.ReadFile(path)
					require.NoError(t, err)
					all[path] = string(b)
				}
				return err
			}))
			return all
		}
		before := contents()
		err := Examine(url)
		require.Equal(t, before, contents())
		return err
	}
	require.NoError(t, examine())
	require.NoDirExists(t, filepath.Join(dir, "deep"))

	db := opened(t, filepath.Join(dir, "deep"))
	require.FileExists(t, filepath.Join(dir, "deep", "i.db-wal"))
	require.NoError(t, examine(), "another gateway has it")
	require.NoError(t, db.write.do(t.Context(), true, func(tx *Tx) error { return tx.script("PRAGMA user_version = 98") }))
	require.ErrorIs(t, examine(), ErrNewerFormat, "the file itself does not say so yet")
	require.ErrorContains(t, examine(), "98")
	require.NoError(t, db.Close())
	require.NoFileExists(t, filepath.Join(dir, "deep", "i.db-wal"))
	require.ErrorIs(t, examine(), ErrNewerFormat)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "deep", "i.db"), []byte(strings.Repeat("no database", 20)), 0o600))
	require.ErrorIs(t, examine(), ErrCorrupt)
	url = "sqlite:" + filepath.Join(dir, "deep", "i.db", "below", "i.db")
	require.ErrorContains(t, examine(), "i.db is not a directory")
	url = "sqlite:" + filepath.Join(dir, "deep")
	require.ErrorContains(t, examine(), "deep is a directory")
	url = "postgres://u:secret@h/db"
	require.ErrorIs(t, examine(), ErrNotBuilt)
}

func TestForeignAndDamagedFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.db")
	raw, err := sql.Open("sqlite", foreign)
	require.NoError(t, err)
	_, err = raw.Exec("CREATE TABLE t (x)")
	require.NoError(t, err)
	require.NoError(t, raw.Close())
	before, err := os.ReadFile(foreign)
	require.NoError(t, err)
	for _, readOnly := range []bool{false, true} {
		_, err = Open(t.Context(), Options{URL: "sqlite:" + foreign, ReadOnly: readOnly})
		require.ErrorIs(t, err, ErrForeign)
	}
	after, err := os.ReadFile(foreign)
	require.NoError(t, err)
	require.Equal(t, before, after, "a foreign file was changed")

	garbage := filepath.Join(dir, "garbage.db")
	require.NoError(t, os.WriteFile(garbage, []byte(strings.Repeat("not a database ", 1000)), 0o600))
	_, err = Open(t.Context(), Options{URL: "sqlite:" + garbage})
	require.ErrorIs(t, err, ErrCorrupt)

	require.NoError(t, opened(t, dir).Close())
	own := filepath.Join(dir, "i.db")
	bytes, err := os.ReadFile(own)
	require.NoError(t, err)
	for i := 4096; i < len(bytes); i++ {
		bytes[i] ^= 0x5a
	}
	require.NoError(t, os.WriteFile(own, bytes, 0o600))
	_, err = Open(t.Context(), Options{URL: "sqlite:" + own})
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestOneGatewayOnAFile(t *testing.T) {
	dir := t.TempDir()
	db := opened(t, dir)
	_, err := Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(dir, "i.db"), LockWait: time.Millisecond})
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, db.Close())
	require.NoError(t, db.Close())
	require.NoError(t, opened(t, dir).Close())
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(dir, "i.db"), ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	db := opened(t, dir)
	ro, err := Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(dir, "i.db"), ReadOnly: true})
	require.NoError(t, err)
	defer ro.Close() //nolint:errcheck // a test
	require.NoError(t, db.PutSwitch(t.Context(), Switch{Kind: "group", Name: "g"}))
	all, err := ro.Switches(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.ErrorIs(t, ro.PutSwitch(t.Context(), Switch{Kind: "group", Name: "g"}), ErrReadOnly)
}

func TestControlStateSurvivesARestart(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	db := opened(t, dir)
	at := time.Date(2026, 11, 30, 1, 2, 3, 4, time.UTC)

	sw := Switch{Kind: "channel", Name: "primary/openai-eu", Reason: "why", Until: at, Who: "ann", At: at}
	require.NoError(t, db.PutSwitch(ctx, Switch{Kind: sw.Kind, Name: sw.Name, Reason: "first"}))
	require.NoError(t, db.PutSwitch(ctx, sw))
	require.NoError(t, db.PutSwitch(ctx, Switch{Kind: "action", Name: "same_route_retry", At: at}))

	key, err := db.AddKey(ctx, Key{
		Name: "ci", SHA256: [32]byte{1}, Groups: []string{"g"}, Models: []string{"*"}, Budget: "b",
		Budgets: []string{"c"}, RPM: 5, Labels: map[string]string{"team": "web"}, Who: "ann", Created: at,
	})
	require.NoError(t, err)
	_, err = db.AddKey(ctx, Key{Name: "ci", SHA256: [32]byte{2}})
	require.ErrorContains(t, err, `"ci" exists`)
	_, err = db.AddKey(ctx, Key{Name: "other", SHA256: [32]byte{1}})
	require.Error(t, err)

	iso := Isolation{Scope: "account/a", Reason: "401", Since: at, Fingerprint: "abcd"}
	require.NoError(t, db.PutIsolation(ctx, iso))
	id, err := db.AddChange(ctx, Change{At: at, Who: "ann", What: "switch", Before: "", After: "{}", Reason: "r"})
	require.NoError(t, err)
	second, err := db.AddChange(ctx, Change{Who: "bob", What: "reload"})
	require.NoError(t, err)
	require.Greater(t, second, id)
	require.NoError(t, db.Close())

	db = opened(t, dir)
	switches, err := db.Switches(ctx)
	require.NoError(t, err)
	require.Equal(t, []Switch{{Kind: "action", Name: "same_route_retry", At: at}, sw}, switches)
	gone, err := db.DeleteSwitch(ctx, sw.Kind, sw.Name)
	require.NoError(t, err)
	require.Equal(t, sw, gone)
	_, err = db.DeleteSwitch(ctx, sw.Kind, sw.Name)
	require.ErrorIs(t, err, ErrNotFound)

	keys, err := db.Keys(ctx)
	require.NoError(t, err)
	require.Equal(t, []Key{key}, keys)
	_, err = db.DeleteKey(ctx, key.ID)
	require.NoError(t, err)
	_, err = db.DeleteKey(ctx, key.ID)
	require.ErrorIs(t, err, ErrNotFound)

	isolations, err := db.Isolations(ctx)
	require.NoError(t, err)
	require.Equal(t, []Isolation{iso}, isolations)
	_, err = db.DeleteIsolation(ctx, iso.Scope)
	require.NoError(t, err)
	_, err = db.DeleteIsolation(ctx, iso.Scope)
	require.ErrorIs(t, err, ErrNotFound)

	changes, err := db.Changes(ctx, 0, 0)
	require.NoError(t, err)
	require.Len(t, changes, 2)
	require.Equal(t, "reload", changes[0].What)
	changes, err = db.Changes(ctx, changes[0].ID, 1)
	require.NoError(t, err)
	require.Equal(t, []Change{{ID: id, At: at, Who: "ann", What: "switch", After: "{}", Reason: "r"}}, changes)
}

func TestInvestigationIsOpenedOncePerCauseAndScope(t *testing.T) {
	db, ctx := opened(t, t.TempDir()), t.Context()
	opens, mu := 0, sync.Mutex{}
	ids := map[string]bool{}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			i, opened, err := db.OpenInvestigation(ctx, Investigation{Kind: "isolation", Scope: "account/a", Cause: "upstream_auth"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if opened {
				opens++
			}
			ids[i.ID] = true
		})
	}
	all.Wait()
	require.Equal(t, 1, opens)
	require.Len(t, ids, 1)
	_, opened, err := db.OpenInvestigation(ctx, Investigation{Kind: "isolation", Scope: "account/b", Cause: "upstream_auth"})
	require.NoError(t, err)
	require.True(t, opened)

	for id := range ids {
		closed, err := db.CloseInvestigation(ctx, id, "ann", "new credential")
		require.NoError(t, err)
		require.Equal(t, "ann", closed.ClosedBy)
		require.False(t, closed.ClosedAt.IsZero())
		_, err = db.CloseInvestigation(ctx, id, "ann", "")
		require.ErrorIs(t, err, ErrNotFound)
	}
	_, opened, err = db.OpenInvestigation(ctx, Investigation{Kind: "isolation", Scope: "account/a", Cause: "upstream_auth"})
	require.NoError(t, err)
	require.True(t, opened, "a closed one does not stand in the way of a new one")
	open, err := db.Investigations(ctx, true)
	require.NoError(t, err)
	require.Len(t, open, 2)
	every, err := db.Investigations(ctx, false)
	require.NoError(t, err)
	require.Len(t, every, 3)
}

func TestUpdateRollsBackAndGoesOn(t *testing.T) {
	db, ctx := opened(t, t.TempDir()), t.Context()
	boom := errors.New("boom")
	err := db.Update(ctx, func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO meta (name, value) VALUES (?, ?)", "a", int64(1))
		require.NoError(t, err)
		return boom
	})
	require.ErrorIs(t, err, boom)
	require.False(t, Away(err))
	require.Panics(t, func() {
		_ = db.Update(ctx, func(tx *Tx) error { panic("inside") })
	})
	require.NoError(t, db.Update(ctx, func(tx *Tx) error {
		_, err := tx.Int("SELECT value FROM meta WHERE name = ?", "a")
		require.ErrorIs(t, err, ErrNotFound)
		_, err = tx.Exec("INSERT INTO meta (name, value) VALUES (?, ?)", "a", int64(1))
		return err
	}))
	err = db.Update(ctx, func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO meta (name, value) VALUES (?, ?)", "a", int64(1))
		return err
	})
	require.Error(t, err)
	require.False(t, Away(err), "a constraint says nothing about the storage")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, db.Update(cancelled, func(*Tx) error { return nil }), context.Canceled)
}

func TestALockedDatabaseIsAwayAndComesBack(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	db, err := Open(ctx, Options{URL: "sqlite:" + filepath.Join(dir, "i.db"), BusyTimeout: 20 * time.Millisecond})
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test
	other, err := sql.Open("sqlite", filepath.Join(dir, "i.db"))
	require.NoError(t, err)
	defer other.Close() //nolint:errcheck // a test
	conn, err := other.Conn(ctx)
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // a test
	_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	require.NoError(t, err)
	err = db.PutSwitch(ctx, Switch{Kind: "group", Name: "g"})
	require.Error(t, err)
	require.True(t, Away(err), err)
	_, err = conn.ExecContext(ctx, "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, db.PutSwitch(ctx, Switch{Kind: "group", Name: "g"}))
}

func TestUsedAndCheck(t *testing.T) {
	db := opened(t, t.TempDir())
	used, err := db.Used(t.Context())
	require.NoError(t, err)
	require.Positive(t, used)
	require.NoError(t, db.Check(t.Context()))
}

// A switch that was acknowledged is there after kill -9.
func TestKillMinusNine(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), "STORAGE_TEST_CHILD="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	last, line := -1, 0
	for last < 20 {
		if _, err := fmt.Fscanln(out, &line); err != nil {
			break
		}
		last = line
	}
	require.NoError(t, child.Process.Kill())
	for { // what it had acknowledged before it died
		if _, err := fmt.Fscanln(out, &line); err != nil {
			break
		}
		last = line
	}
	_ = child.Wait()
	require.GreaterOrEqual(t, last, 20)
	db := opened(t, dir)
	require.NoError(t, db.Check(t.Context()))
	all, err := db.Switches(t.Context())
	require.NoError(t, err)
	names := map[string]bool{}
	for _, s := range all {
		names[s.Name] = true
	}
	for i := range last + 1 {
		require.True(t, names[fmt.Sprint(i)], "switch %d of %d is missing", i, last)
	}
}

func writeUntilKilled(dir string) {
	db, err := Open(context.Background(), Options{URL: "sqlite:" + filepath.Join(dir, "i.db")})
	if err != nil {
		panic(err)
	}
	for i := range 100_000 {
		if err := db.PutSwitch(context.Background(), Switch{Kind: "group", Name: fmt.Sprint(i)}); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
	os.Exit(0)
}
