package server

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// reloadAndStopDuringAStream: a stream stays on the generation it began on, through a reload
// that takes its channel away and through a stop, which waits for it.
func reloadAndStopDuringAStream(t *testing.T) {
	st := baseline(t, "T31")
	before := st.Gateway().Generation().Number
	first := make(chan *seen, 1)
	go func() { first <- st.stream(r0) }()
	_, err := st.providers["A"].WaitCalls(patience(t), 1)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // output is out
		return st.providers["A"].Calls()[0].Written > 1000
	}, 10*time.Second, 5*time.Millisecond)

	channelA := `      - {name: a, provider: a, credential: sk-AAAA-canary-0001, priority: 1, models: {chat: {upstream_model: ma}},
         timeouts: {connect: 1s, first_byte: 2s, first_output: 2s, idle: 2s}}
`
	st.configure(with(t, k0, channelA, ""))
	after, problems, err := st.Reload(context.Background())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, before+1, after, "a request's generation is its snapshot")

	second := st.stream(r0)
	require.Equal(t, "from B", second.whole(t).Text)
	require.Equal(t, "chat/b", second.Header.Get("interlock-route"))
	st.stop() // as SIGTERM does
	select {
	case <-st.Done():
		require.Fail(t, "the gateway ended with a stream running")
	case got := <-first:
		out := got.whole(t)
		require.Equal(t, "one one one one one one one one one one ", out.Text)
		require.Equal(t, map[string]bool{"cA": true}, out.IDs)
		require.Equal(t, "chat/a", got.Header.Get("interlock-route"))
		select {
		case <-st.Done():
		case <-time.After(10 * time.Second):
			require.Fail(t, "the gateway did not end after its last stream")
		}
		st.calls(map[string]int{"A": 1, "B": 1})
		st.requireKept(got.ID(), "a")
		st.requireKept(second.ID(), "b")
	}
}

// requireKept reads a record from the storage of a gateway that has stopped.
func (st *stand) requireKept(id, channel string) {
	st.t.Helper()
	ctx := patience(st.t)
	db, err := storage.Open(ctx, storage.Options{URL: st.Gateway().Generation().Config.Storage.URL})
	require.NoError(st.t, err)
	defer db.Close()
	r, err := ledger.NewReader(db).Show(ctx, id)
	require.NoError(st.t, err)
	require.Equal(st.t, "success", r.Terminal.String())
	require.Len(st.t, r.Attempts, 1)
	require.Equal(st.t, channel, r.Attempts[0].Channel)
}
