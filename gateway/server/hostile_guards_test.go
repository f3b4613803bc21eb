package server

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a guard does wrong, a closed one lets nothing through, an open one lets the traffic go
// as if it were not there, and in neither case does anything of what it made reach anybody.
func TestHostileGuards(t *testing.T) {
	t.Parallel()
	const script = `on chat body contains "case-1"
  answer "eventtrap"
on chat body contains "case-2"
  answer "eventspin"
on chat body contains "case-3"
  answer "eventline"
on chat body contains "case-4"
  answer "eventgarbage"
on chat
  answer "fine"
`
	for _, onError := range []string{"closed", "open"} {
		t.Run(onError, func(t *testing.T) {
			t.Parallel()
			st := guardedStand(t, script, onError)
			for _, does := range []string{"trap", "spin", "garbage", "huge", "badreason"} {
				before := st.providers["a"].Count()
				a := st.chat(saying + does + `"}]}`)
				require.NotContains(t, a.Body, "no JSON", does)
				if onError == "closed" {
					require.Equal(t, 503, a.Status, does)
					require.Equal(t, "policy_unavailable", a.errorCode(), does)
					require.Equal(t, before, st.providers["a"].Count(), does)
				} else {
					require.Equal(t, 200, a.Status, does+a.Body)
					require.Contains(t, a.Body, "fine", does)
					require.Contains(t, guardDecisions(st.record(a.ID())), `{"on":"request","plugin":"watchman"} {"action":"failed_open"}`, does)
				}
				require.Equal(t, 200, st.chat(saying+`x"}]}`).Status, "the next one is served, after "+does) // and closes the circuit's count
			}
			for i, does := range []string{"eventtrap", "eventspin", "eventline", "eventgarbage"} {
				a := st.chat(saying + "case-" + strconv.Itoa(i+1) + `"}],"stream":true}`)
				require.NotContains(t, a.Body, "forged", does)
				require.NotContains(t, a.Body, "no JSON", does)
				if onError == "closed" {
					require.NotContains(t, a.Body, "[DONE]", does+a.Body)
					require.NotEqual(t, 200, a.Status, does+a.Body)
				} else {
					require.Equal(t, 200, a.Status, does+a.Body)
					require.Contains(t, a.Body, "[DONE]", does)
				}
				require.Equal(t, 200, st.chat(saying+`x"}]}`).Status, does)
			}
		})
	}
}
