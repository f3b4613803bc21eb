package server

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/wasm"
)

// Many streams go through an adapter while its plugin is replaced again and again: each is whole,
// and the plugins that were replaced are closed at the end.
func TestStreamsThroughAPluginThatIsReplaced(t *testing.T) {
	t.Parallel()
	const streams, least = 200, 10
	dir := t.TempDir()
	seed(t, dir+"/data")
	yaml := strings.ReplaceAll(strings.ReplaceAll(twoChannels, "adapter: openai,", `adapter: "plugin:anthropic", auth: "header:x-api-key",`), "}}/v1\"", "}}\"") +
		"\nwatch: false\n" + strings.Replace(shippedPlugins(t, "anthropic"), ".wasm\"}", ".wasm\", limits: {call_timeout: {{n}}ms}}", 1)
	yaml = strings.ReplaceAll(yaml, "priority: 1,", "priority: 1, max_concurrency: 500,")
	with := func(n int) string { return strings.ReplaceAll(yaml, "{{n}}", strconv.Itoa(200+n)) }
	st := setUpIn(t, dir, map[string]string{
		"a": "dialect anthropic\non chat stream\n  pace 20ms\n  answer words 60\n", "b": "dialect anthropic\n",
	}, with(0))
	used := func() *wasm.Plugin { return st.plugins.current.byName["anthropic"].loaded }
	all := []*wasm.Plugin{used()}

	var group sync.WaitGroup
	begin := make(chan struct{})
	answers := make([]*answer, streams)
	errs := make([]error, streams)
	for i := range streams {
		group.Go(func() {
			<-begin
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			answers[i], errs[i] = st.post(ctx, "/v1/chat/completions", chatOf("m", true))
		})
	}
	done := make(chan struct{})
	close(begin)
	go func() { group.Wait(); close(done) }()
	reloads := 0
	for running := true; running || reloads < least; reloads++ {
		st.configure(with(reloads + 1))
		_, problems, err := st.Reload(t.Context())
		require.NoError(t, err, problems)
		require.NotContains(t, all, used(), "another plugin")
		all = append(all, used())
		select {
		case <-done:
			running = false
		default:
		}
	}
	<-done
	want := ""
	for i, a := range answers {
		require.NoError(t, errs[i])
		require.Equal(t, 200, a.Status, a.Body)
		require.NoError(t, a.Err)
		require.Equal(t, "chat/a", a.Header.Get("interlock-route"))
		got, err := hearStream(a.Body, "chat.completions")
		require.NoError(t, err)
		require.True(t, got.done)
		if want == "" {
			want = got.text
			require.Len(t, strings.Fields(want), 60, want)
		}
		require.Equal(t, want, got.text)
	}
	require.Equal(t, streams, st.count(), "nobody was tried twice")
	t.Log(reloads, "reloads during", streams, "streams")
	st.end()
	for _, p := range all {
		require.Eventually(t, func() bool { // the ones before the last are released in the background
			_, err := p.Call(wasm.Wait{}, wasm.OpDescribe, nil, nil)
			return err != nil && strings.Contains(err.Error(), wasm.Closed.String())
		}, 20*time.Second, time.Millisecond)
	}
}
