package server

import (
	"bufio"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// translatedStories are those of testdata/script that are told again with providers of another
// dialect behind each shipped adapter.
var translatedStories = []string{
	"fallback", "attempts_exhausted", "attempts_and_routes_exhausted", "all_rate_limited", "same_route_retry_after",
	"retry_after_does_not_fit", "isolation_after_401", "substitution_disclosed", "context_overflow", "outcome_unknown",
	"partial_stream_chat", "buffered_release", "heartbeat_then_failure", "deadline_exceeded", "group_order", "queue_full",
}

// Recovery is the same whoever translates: the same stories with each shipped adapter have the
// same statuses, headers, causes, attempts and calls, and answers that say the same.
func TestScriptsThroughPlugins(t *testing.T) {
	t.Parallel()
	shippedModules(t)
	for _, name := range sortedKeys(shipped) {
		for _, file := range translatedStories {
			t.Run(name+"/"+file, func(t *testing.T) {
				t.Parallel()
				tellTranslated(t, name, filepath.Join("testdata", "script", file+".txtar"))
			})
		}
	}
}

func tellTranslated(t *testing.T, adapter, file string) {
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	s := &story{t: t, file: file, archive: archive}
	require.Empty(t, s.part("policy.cells"), "the story has a policy of its own")
	scripts := s.scripts()
	for name, text := range scripts {
		// Those providers have a name of their own for a 503, and mean an overload.
		text = strings.ReplaceAll(text, "status 503", "status 500")
		scripts[name] = "dialect " + adapter + "\n" + text
	}
	st := setUpTranslated(t, adapter, scripts, s.part("interlock.yaml"))
	answers, order := s.ask(st)
	attempts := 0
	for _, n := range order {
		a := <-answers[n]
		require.NoError(t, a.Err, "request %s", n)
		s.sameAnswer(n+".answer", a)
		if want := s.part(n + ".ledger"); want != "" {
			r := st.recordOf(a.ID(), s.authorization(n))
			require.True(t, matches(want, r.text()), "request %s: want\n%sgot\n%s", n, want, r.text())
			attempts += len(r.Attempts)
		}
	}
	require.Equal(t, st.count(), attempts, "calls of the providers and attempts of the ledger")
	for line := range strings.Lines(s.part("calls")) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.Equal(t, count, strconv.Itoa(st.providers[name].Count()), "calls of %s", name)
	}
}

// setUpTranslated is setUp with every provider behind a shipped adapter.
func setUpTranslated(t *testing.T, adapter string, scripts map[string]string, yaml string) *stand {
	t.Helper()
	dir := t.TempDir()
	seed(t, filepath.Join(dir, "data"))
	yaml = strings.ReplaceAll(yaml, "adapter: openai,", `adapter: "plugin:`+adapter+`", auth: "`+shipped[adapter]+`",`)
	yaml = strings.ReplaceAll(yaml, "}}/v1\"", "}}\"")
	require.Contains(t, yaml, "plugin:"+adapter)
	return setUpIn(t, dir, scripts, yaml+"\n"+shippedPlugins(t, adapter))
}

// sameAnswer holds an answer against the one that the story has of a provider of OpenAI's format:
// status and headers are the same, an answer says the same, an error means the same.
func (s *story) sameAnswer(name string, a *answer) {
	t := s.t
	t.Helper()
	wantHead, wantBody, _ := strings.Cut(s.part(name), "\n\n")
	head, body, _ := strings.Cut(a.text(), "\n\n")
	require.True(t, matches(wantHead, head), "%s: want\n%s\n\ngot\n%s\n\n%s", name, wantHead, head, body)
	hear := hearAnswer
	if strings.Contains(wantHead, "text/event-stream") {
		hear = hearStream
	}
	want, err := hear(wantBody, "chat.completions")
	require.NoError(t, err)
	got, err := hear(body, "chat.completions")
	require.NoError(t, err)
	require.Equal(t, want.text, got.text, body)
	require.Equal(t, want.finish, got.finish, body)
	require.Equal(t, want.done, got.done, body)
	require.Equal(t, want.usages, got.usages, body)
	if want.usage != nil {
		for _, key := range []string{"prompt_tokens", "completion_tokens", "total_tokens"} {
			require.Equal(t, want.usage[key], got.usage[key], key)
		}
	}
	require.Equal(t, strings.Contains(wantBody, `"interlock":{"requested_model"`), strings.Contains(body, `"interlock":{"requested_model"`), "disclosure: %s", body)
	if want.err == nil {
		require.Nil(t, got.err, body)
		return
	}
	require.Equal(t, want.err["interlock"], got.err["interlock"], body)
	if object(want.err["interlock"])["terminal"] != "policy_stop" || want.err["code"] == "outcome_unknown" {
		require.Equal(t, want.err["code"], got.err["code"], body) // else it is the provider's own
		require.Equal(t, want.err["type"], got.err["type"], body)
	}
}

// A caller that leaves mid-stream takes the upstream call along, whoever translates.
func TestACallerThatLeavesAPluginsStream(t *testing.T) {
	t.Parallel()
	shippedModules(t)
	for _, name := range sortedKeys(shipped) {
		for _, how := range []string{"FIN", "RST"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				st := setUpTranslated(t, name, map[string]string{"a": "", "b": ""}, twoChannels)
				st.depart(t, "dialect "+name+"\non chat stream\n  role\n  text \"one\"\n  stall\n",
					`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`, how, "first", false, nil)
			})
		}
	}
}

// What one event brings is with the caller before the provider sends another.
func TestAPluginsStreamIsPassedOnAsItComes(t *testing.T) {
	t.Parallel()
	shippedModules(t)
	for _, name := range sortedKeys(shipped) {
		t.Run(name, func(t *testing.T) {
			st := setUpTranslated(t, name, map[string]string{
				"a": "dialect " + name + "\non chat stream\n  role\n  text \"one\"\n  stall\n", "b": "",
			}, twoChannels)
			c, err := net.Dial("tcp", st.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
			ask(t, c, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil) // closing its body would wait for the end
			require.NoError(t, err)
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() {
				if strings.Contains(lines.Text(), `"content":"one"`) {
					return
				}
			}
			t.Fatalf("the text did not come: %v", lines.Err())
		})
	}
}
