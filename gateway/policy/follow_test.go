package policy

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// bundleServer is a bundle server that tests publish to.
type bundleServer struct {
	*httptest.Server
	mu        sync.Mutex
	body      []byte
	etag      string
	changed   chan struct{}
	longPolls bool
	status    int // other than 200, for every question
	asked     int
	sent      int // bodies
	last      http.Header
}

func newBundleServer(t testing.TB) *bundleServer {
	s := &bundleServer{changed: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *bundleServer) publish(body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body, s.etag = body, fmt.Sprintf(`"%x"`, len(s.etag)+s.sent+s.asked+len(body)*7)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *bundleServer) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *bundleServer) counts() (asked, sent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.sent
}

func (s *bundleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	s.last = r.Header.Clone()
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	if s.longPolls {
		w.Header().Set("Content-Type", longPollType)
		if r.Header.Get("If-None-Match") == s.etag && strings.Contains(r.Header.Get("Prefer"), "wait=") {
			changed := s.changed
			s.mu.Unlock()
			select {
			case <-changed:
			case <-r.Context().Done():
			}
			s.mu.Lock()
		}
	}
	w.Header().Set("ETag", s.etag)
	if r.Header.Get("If-None-Match") == s.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sent++
	_, _ = w.Write(s.body)
}

// packed returns the changed default bundle as an archive, signed where there is a key.
func packed(t testing.TB, revision string, signing *Signing, changes map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, BuildBundle(testContext(t), &b, Path("x", copyBundle(t, changes)), BuildOptions{Revision: revision, Signing: signing}))
	return b.Bytes()
}

// inForce is what a follower has put in force.
type inForce struct {
	revision atomic.Pointer[Revision]
	*Follower
}

func (p *inForce) hooks() Hooks {
	return Hooks{
		Activate:   func(r *Revision) error { p.revision.Store(r); return nil },
		Refused:    func(Source, error) {},
		RolledBack: func(_, _ *Revision) {},
		NotKept:    func(Source, error) {},
	}
}

func followed(t testing.TB, set Set) *inForce {
	t.Helper()
	r, troubles, err := set.Open(testContext(t), nil)
	require.NoError(t, err)
	p := &inForce{}
	p.revision.Store(r)
	p.Follower = Follow(set, r, nil, troubles, p.hooks())
	t.Cleanup(p.Close)
	return p
}

func (p *inForce) becomes(t testing.TB, revision string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(p.revision.Load().ID(), "@"+revision+"-")
	}, 20*time.Second, 5*time.Millisecond, "%v", p.Status())
}

func (p *inForce) refuses(t testing.TB, says string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(p.Status().Bundles[0].LastError, says)
	}, 20*time.Second, 5*time.Millisecond, "%s: %v", says, p.Status())
}

const quick = 100 * time.Millisecond

// TestTheStoryOfABundle goes from the first start to a restart without the server.
func TestTheStoryOfABundle(t *testing.T) {
	pair, other := ecPair(t, elliptic.P256()), ecPair(t, elliptic.P256())
	signing := &Signing{Key: pair.private, KeyID: "k1"}
	server := newBundleServer(t)
	server.publish(packed(t, "v1", signing, nil))
	set := Set{
		Sources: []Source{Remote("platform", server.URL+"/b.tar.gz?secret=hunter22", RemoteOptions{Poll: quick, Token: "hunter22"}).
			SignedWith(verifier(t, pair.public, "k1", ""))},
		Dir: filepath.Join(t.TempDir(), "policy"), Options: patient,
	}
	p := followed(t, set)
	require.Equal(t, again, firstAction(t, p.revision.Load()))
	require.True(t, p.Status().Bundles[0].Signed)

	// One cell changes, is signed and published.
	server.publish(packed(t, "v2", signing, map[string]string{matrixFile: lastInsteadOfOnce(t)}))
	p.becomes(t, "v2")
	require.Equal(t, elsewhere, firstAction(t, p.revision.Load()))

	// Five ways to break it. The one before decides on.
	rules := "package interlock.replay\n\n"
	good := p.revision.Load()
	etag := p.Status().Bundles[0].ETag
	for _, bad := range []struct {
		says    string
		signing *Signing
		changes map[string]string
	}{
		{"the signature does not hold", &Signing{Key: other.private, KeyID: "k1"}, nil},
		{"undefined ref: input.failre", signing, map[string]string{"interlock/replay.rego": rules + `decision := {"actions": ["stop"], "reason": "r"} if input.failre.phase == "x"`}},
		{"timeout", signing, map[string]string{"interlock/replay.rego": rules + endless}},
		{"data.interlock.matrix is read", signing, map[string]string{matrixFile: ""}},
		{"there is no rule data.interlock.failure.decision", signing, map[string]string{"interlock/failure.rego": ""}},
	} {
		server.publish(packed(t, "v3", bad.signing, bad.changes))
		p.refuses(t, bad.says)
		require.Same(t, good, p.revision.Load())
		require.Equal(t, elsewhere, firstAction(t, p.revision.Load()))
		require.Equal(t, etag, p.Status().Bundles[0].ETag, "what is refused is not remembered")
		require.NotContains(t, fmt.Sprint(p.Status()), "hunter22")
	}
	require.Equal(t, 5, p.Status().Refused)

	// A restart while the server gives the last of them, and one without the server.
	p.Close()
	p = followed(t, set)
	require.Contains(t, p.revision.Load().ID(), "@v2-")
	require.Contains(t, p.Status().Bundles[0].LastError, "failure.decision")
	p.Close()
	server.fail(http.StatusServiceUnavailable)
	p = followed(t, set)
	require.Contains(t, p.revision.Load().ID(), "@v2-")
	require.Equal(t, elsewhere, firstAction(t, p.revision.Load()))
	require.True(t, p.Status().Bundles[0].FromDisk)
	require.True(t, p.Status().Bundles[0].Signed, "verified again")
	require.Contains(t, p.Status().Bundles[0].LastError, "503")

	// The server comes back.
	server.publish(packed(t, "v4", signing, nil))
	server.fail(0)
	p.becomes(t, "v4")
	require.False(t, p.Status().Bundles[0].FromDisk)
	require.Empty(t, p.Status().Bundles[0].LastError)
	p.Close()

	// What was written to on disk is not believed.
	files, err := filepath.Glob(filepath.Join(set.Dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(files[0], packed(t, "v9", &Signing{Key: other.private, KeyID: "k1"}, nil), 0o600))
	server.fail(http.StatusNotFound)
	_, _, err = set.Open(testContext(t), nil)
	require.ErrorContains(t, err, "404")
	require.ErrorContains(t, err, "the signature does not hold")
	require.NoError(t, os.Remove(files[0]))
	_, _, err = set.Open(testContext(t), nil)
	require.ErrorContains(t, err, "no last good one on disk")
}

// endless does not end within any probe's time.
const endless = `decision := {"actions": ["stop"], "reason": "slow"} if {
	n := count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a == b])
	n > 0
}
`

// Bundles that must change together come into force when the last of them is there.
func TestTogether(t *testing.T) {
	mine, theirs := t.TempDir(), newBundleServer(t)
	matrix := func(roots ...string) string { return `{"roots": ["` + strings.Join(roots, `", "`) + `"]}` }
	archive := func(revision, manifest string) []byte {
		var b bytes.Buffer
		dir := folder(t, map[string]string{".manifest": manifest, matrixFile: text(t, matrixFile)})
		require.NoError(t, BuildBundle(testContext(t), &b, Path("x", dir), BuildOptions{Revision: revision}))
		return b.Bytes()
	}
	writeFile(t, filepath.Join(mine, ".manifest"), matrix("interlock/kinds"))
	writeFile(t, filepath.Join(mine, "interlock/kinds/data.json"), text(t, "interlock/kinds/data.json"))
	theirs.publish(archive("v1", matrix("interlock/matrix", "own")))
	p := followed(t, Set{Options: patient, Sources: []Source{
		Remote("theirs", theirs.URL, RemoteOptions{Poll: quick}), Path("mine", mine),
	}})
	// They claim what is mine, until I let go of it.
	theirs.publish(archive("v2", matrix("interlock/matrix", "own", "interlock/kinds/more")))
	p.refuses(t, "overlap")
	writeFile(t, filepath.Join(mine, "interlock/kinds/data.json"), `{}`)
	require.NoError(t, os.RemoveAll(filepath.Join(mine, "interlock")))
	writeFile(t, filepath.Join(mine, "mine/data.json"), `{"x": 1}`)
	writeFile(t, filepath.Join(mine, ".manifest"), matrix("mine"))
	require.Eventually(t, func() bool {
		st := p.Status()
		return st.Bundles[1].Roots[0] == "mine"
	}, 20*time.Second, 10*time.Millisecond, "%v", p.Status())
}

// A long poll brings a change at once, and a server that is asked so is not asked more.
func TestLongPoll(t *testing.T) {
	server := newBundleServer(t)
	server.longPolls = true
	server.publish(packed(t, "v1", nil, nil))
	p := followed(t, Set{Options: patient, Sources: []Source{Remote("platform", server.URL, RemoteOptions{Poll: quick})}})
	for i := range 3 {
		revision := fmt.Sprintf("w%d", i)
		server.publish(packed(t, revision, nil, nil))
		p.becomes(t, revision)
	}
	asked, sent := server.counts()
	require.LessOrEqual(t, asked, 10)
	require.LessOrEqual(t, sent, 5)
	server.mu.Lock()
	require.Equal(t, "modes=snapshot;wait=30", server.last.Get("Prefer"))
	server.mu.Unlock()
}

// slowForDear are changes of the default bundle that pass every probe: only failures of the model
// "dear" are never decided in time.
func slowForDear(t testing.TB) map[string]string {
	rules := edited(t, "interlock/failure.rego", "package interlock.failure\n", "package interlock.failure\n\nimport data.interlock.slow\n")
	i := strings.Index(rules, "\ndecision :=")
	require.Positive(t, i, rules)
	return map[string]string{
		"interlock/failure.rego": rules[:i] + "\ndecision := {\"class\": \"unknown\", \"reason\": \"slow\"} if slow.slow\n" + rules[i:],
		"interlock/slow.rego": `package interlock.slow

slow if {
	input.model == "dear"
	count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a == b]) > 0
}
`,
	}
}

// fails asks a revision for decisions until it must be rolled back.
func (p *inForce) fails(t testing.TB) {
	t.Helper()
	in := FailureInput{Model: "dear", Failure: FailureFacts{Status: 500}}
	slow := p.revision.Load()
	for range 8 {
		d, meta := slow.Failure(testContext(t), &in)
		require.ErrorContains(t, meta.Err, "timeout")
		require.Equal(t, failure.Unknown, d.Class)
	}
	require.Eventually(t, func() bool { return p.revision.Load() != slow }, 20*time.Second, 10*time.Millisecond)
}

// TestRollBack: a revision that passes every probe and then keeps timing out is taken out, and
// stays out: whoever reads the same content again, on a reload or by watching, is told why.
func TestRollBack(t *testing.T) {
	dir := copyBundle(t, nil)
	set := Set{Options: Options{Timeout: 250 * time.Millisecond}, Sources: []Source{Path("test", dir)}}
	var err error
	set.Withdrawn, err = OpenWithdrawn("")
	require.NoError(t, err)
	p := followed(t, set)
	first := p.revision.Load()
	for path, text := range slowForDear(t) {
		writeFile(t, filepath.Join(dir, path), text)
	}
	require.Eventually(t, func() bool { return p.revision.Load() != first }, 20*time.Second, 10*time.Millisecond, "%v", p.Status())
	bad := p.revision.Load()
	p.fails(t)
	require.Same(t, first, p.revision.Load())
	require.Equal(t, 1, p.Status().RollBacks)
	require.Contains(t, p.Status().Bundles[0].LastError, "kept timing out")
	require.Equal(t, first.ID(), p.Active().ID())

	// A reload: the sources are read again, with or without another follower.
	r, troubles, err := set.Open(testContext(t), first)
	require.NoError(t, err)
	require.Equal(t, first.ID(), r.ID())
	require.Len(t, troubles, 1)
	var out *WithdrawnError
	require.ErrorAs(t, troubles[0].Err, &out)
	require.Contains(t, bad.ID(), out.ID)
	p.Close()
	next := &inForce{}
	next.revision.Store(r)
	told := make(chan error, 10)
	hooks := next.hooks()
	hooks.Refused = func(_ Source, err error) { told <- err }
	next.Follower = Follow(set, r, nil, troubles, hooks)
	t.Cleanup(next.Close)
	require.Contains(t, next.Status().Bundles[0].LastError, "until its content changes")

	// Written again, it is the same content. A word more, and it is another: what it is then is
	// found out anew.
	for path, text := range slowForDear(t) {
		writeFile(t, filepath.Join(dir, path), text)
	}
	writeFile(t, filepath.Join(dir, "interlock/later/data.json"), "{")
	next.refuses(t, "interlock/later/data.json") // it has looked, and the bad content was there all the time
	require.Equal(t, r.ID(), next.revision.Load().ID())
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "interlock/later")))
	next.refuses(t, "until its content changes")
	require.Equal(t, r.ID(), next.revision.Load().ID())
	writeFile(t, filepath.Join(dir, "interlock/later/data.json"), "{}")
	require.Eventually(t, func() bool { return next.revision.Load().ID() != r.ID() }, 20*time.Second, 10*time.Millisecond, "%v", next.Status())
	require.Empty(t, next.Status().Bundles[0].LastError)
	require.Empty(t, set.Withdrawn.by, "it has another content")
}

// TestRollBackOfAServersBundle: what a server still gives stays out over a restart, too.
func TestRollBackOfAServersBundle(t *testing.T) {
	server := newBundleServer(t)
	server.publish(packed(t, "v1", nil, nil))
	set := Set{
		Options: Options{Timeout: 250 * time.Millisecond}, Dir: t.TempDir(),
		Sources: []Source{Remote("platform", server.URL, RemoteOptions{Poll: quick})},
	}
	open := func() *inForce {
		var err error
		set.Withdrawn, err = OpenWithdrawn(set.Dir)
		require.NoError(t, err)
		return followed(t, set)
	}
	p := open()
	server.publish(packed(t, "v2", nil, slowForDear(t)))
	p.becomes(t, "v2")
	p.fails(t)
	p.becomes(t, "v1")
	_, sent := server.counts()
	require.Eventually(t, func() bool { _, now := server.counts(); return now > sent+1 }, 20*time.Second, 5*time.Millisecond)
	require.Contains(t, p.Status().Bundles[0].LastError, "until its content changes")
	require.Equal(t, 0, p.Status().Refused, "it is told as a roll-back, once")
	p.becomes(t, "v1")
	p.Close()

	p = open()
	p.becomes(t, "v1")
	require.Contains(t, p.Status().Bundles[0].LastError, "until its content changes")
	server.publish(packed(t, "v3", nil, nil))
	p.becomes(t, "v3")
	require.Empty(t, p.Status().Bundles[0].LastError)
	p.Close()
	p = open()
	p.becomes(t, "v3")
	require.Empty(t, set.Withdrawn.by)
	p.Close()

	// What cannot be read any more is told, and does not keep a gateway from starting.
	require.NoError(t, os.WriteFile(filepath.Join(set.Dir, withdrawnFile), []byte("{"), 0o600))
	w, err := OpenWithdrawn(set.Dir)
	require.Error(t, err)
	require.NotNil(t, w)
}

// TestDecisionsDuringActivations: no decision fails or waits for a swap, at 500 a second, while
// one revision follows on another.
func TestDecisionsDuringActivations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	server := newBundleServer(t)
	bundles := [][]byte{packed(t, "v0", nil, nil), packed(t, "v1", nil, map[string]string{matrixFile: lastInsteadOfOnce(t)})}
	server.publish(bundles[0])
	p := followed(t, Set{Options: patient, Sources: []Source{Remote("platform", server.URL, RemoteOptions{Poll: quick})}})
	ctx, cancel := context.WithCancel(testContext(t))
	var activations atomic.Int64
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := 1; ctx.Err() == nil; i++ {
			server.publish(bundles[i%2])
			for ctx.Err() == nil && !strings.Contains(p.revision.Load().ID(), fmt.Sprintf("@v%d-", i%2)) {
				pause(ctx, time.Millisecond)
			}
			activations.Add(1)
		}
	}()
	const each = 2 * time.Millisecond
	var failed, wrong, decisions int
	var longest time.Duration
	begun := time.Now()
	for elapsed := time.Duration(0); elapsed < 4*time.Second; elapsed = time.Since(begun) {
		if time.Duration(decisions)*each > elapsed {
			pause(ctx, each) // never behind: what a busy machine missed is made up for
			continue
		}
		decisions++
		r := p.revision.Load()
		in := openInput(failure.Network, failure.BeforeHeaders, true)
		in.Budget.AttemptsLeft = decisions % 4 // not always from the cache
		start := time.Now()
		d, meta := r.Replay(ctx, &in)
		longest = max(longest, time.Since(start))
		if meta.Err != nil {
			failed++
		}
		if meta.Record.Revision != r.ID() || len(d.Actions) == 0 {
			wrong++
		}
	}
	cancel()
	<-published
	t.Logf("%d decisions during %d activations; the longest took %v", decisions, activations.Load(), longest)
	require.Zero(t, failed)
	require.Zero(t, wrong)
	require.GreaterOrEqual(t, decisions, 1900)
	require.Greater(t, activations.Load(), int64(3))
	require.Less(t, longest, time.Second, "nothing waits for an activation; this machine may be busy")
}
