package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sighting is one event of a stream as the caller saw it.
type sighting struct {
	Data string
	At   time.Time
}

// seen is a stream, or another answer, as the caller saw it.
type seen struct {
	answer
	Sent, Ended time.Time
	Events      []sighting
}

// watch calls the gateway and notes when each event comes. An answer that is no stream is in
// Body. The error of a call without an answer is in Err.
func (st *stand) watch(ctx context.Context, body string, headers ...string) *seen {
	s := &seen{Sent: time.Now()}
	defer func() { s.Ended = time.Now() }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+st.Addr().String()+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(st.t, err)
	req.Header.Set("Authorization", "Bearer "+callersKey)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := st.client.Do(req)
	if err != nil {
		s.Err = err
		return s
	}
	defer resp.Body.Close()
	s.Status, s.Header = resp.StatusCode, resp.Header
	var whole strings.Builder
	lines := bufio.NewReader(io.TeeReader(resp.Body, &whole))
	data, begun := "", false
	for {
		line, err := lines.ReadString('\n')
		text := strings.TrimRight(line, "\r\n")
		if d, ok := strings.CutPrefix(text, "data:"); ok {
			if begun {
				data += "\n"
			}
			data, begun = data+strings.TrimPrefix(d, " "), true
		} else if text == "" && begun {
			s.Events = append(s.Events, sighting{data, time.Now()})
			data, begun = "", false
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.Err = err
			}
			s.Body = whole.String()
			return s
		}
	}
}

// stream is watch bounded by half a minute.
func (st *stand) stream(body string, headers ...string) *seen {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return st.watch(ctx, body, headers...)
}

// chunk is what tests look at in one event.
type chunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Delta struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"delta"`
		Finish *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	} `json:"usage"`
	Error *struct {
		Message   string `json:"message"`
		Code      string `json:"code"`
		Interlock struct {
			Terminal string `json:"terminal"`
			Attempts int    `json:"attempts"`
		} `json:"interlock"`
	} `json:"error"`
}

const done = "[DONE]"

// told is what a stream told its caller.
type told struct {
	Text     string
	Finishes []string
	Roles    int
	IDs      map[string]bool
	Errors   []string // their codes
	Dones    int
	Usages   []chunk
	Empty    int // chunks without a choice and without an error
	Last     string
}

// tell reads the events, each of which has to be [DONE] or JSON.
func (s *seen) tell(t *testing.T) told {
	t.Helper()
	out := told{IDs: map[string]bool{}}
	for _, e := range s.Events {
		out.Last = e.Data
		if e.Data == done {
			out.Dones++
			continue
		}
		var c chunk
		require.NoError(t, json.Unmarshal([]byte(e.Data), &c), "an event is no JSON: %.300s", e.Data)
		if c.Error != nil {
			out.Errors = append(out.Errors, c.Error.Code)
			continue
		}
		out.IDs[c.ID] = true
		if len(c.Choices) == 0 {
			out.Empty++
		}
		if c.Usage != nil {
			out.Usages = append(out.Usages, c)
		}
		for _, ch := range c.Choices {
			out.Text += ch.Delta.Content
			if ch.Delta.Role != "" {
				out.Roles++
			}
			if ch.Finish != nil {
				out.Finishes = append(out.Finishes, *ch.Finish)
			}
		}
	}
	return out
}

// whole demands a complete stream of one answer and returns what it told.
func (s *seen) whole(t *testing.T) told {
	t.Helper()
	require.NoError(t, s.Err)
	require.Equal(t, 200, s.Status, s.Body)
	require.Contains(t, s.Header.Get("Content-Type"), "text/event-stream")
	out := s.tell(t)
	require.Empty(t, out.Errors, s.Body)
	require.Equal(t, []string{"stop"}, out.Finishes)
	require.Equal(t, 1, out.Dones, "one [DONE]")
	require.Equal(t, done, out.Last, "[DONE] comes last")
	return out
}

// onlyB demands B's whole answer and not a byte of A's.
func (s *seen) onlyB(t *testing.T) {
	t.Helper()
	out := s.whole(t)
	require.Equal(t, "from B", out.Text)
	require.Equal(t, 1, out.Roles, "one role chunk")
	require.Equal(t, map[string]bool{"cB": true}, out.IDs, "nothing of A reaches the caller")
	require.NotContains(t, s.Body, "cA")
	require.Equal(t, "chat/b", s.Header.Get("interlock-route"))
	require.Equal(t, "same_contract_fallback", s.Header.Get("interlock-cause"))
	require.Equal(t, "2", s.Header.Get("interlock-attempts"))
}

// broken demands a stream that broke behind text: one error event, then the clean end.
func (s *seen) broken(t *testing.T, text string) told {
	t.Helper()
	require.NoError(t, s.Err, "the body ends cleanly")
	require.Equal(t, 200, s.Status, s.Body)
	out := s.tell(t)
	require.Equal(t, text, out.Text)
	require.Equal(t, []string{"partial_stream"}, out.Errors)
	require.Empty(t, out.Finishes)
	require.Zero(t, out.Dones)
	require.NotContains(t, s.Body, done)
	var last chunk
	require.NoError(t, json.Unmarshal([]byte(out.Last), &last))
	require.NotNil(t, last.Error, "the error comes last")
	require.NotEmpty(t, last.Error.Message)
	require.Equal(t, "partial", last.Error.Interlock.Terminal)
	require.Equal(t, 1, last.Error.Interlock.Attempts)
	return out
}

// content is the text of an answer that is no stream.
func (a *answer) content(t *testing.T) string {
	t.Helper()
	var v struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.Body), &v), a.Body)
	require.Len(t, v.Choices, 1, a.Body)
	return v.Choices[0].Message.Content
}

// refused demands an error in OpenAI's shape and no stream.
func (a *answer) refused(t *testing.T, status int, code, again string) {
	t.Helper()
	require.NoError(t, a.Err)
	require.Equal(t, status, a.Status, a.Body)
	require.Contains(t, a.Header.Get("Content-Type"), "application/json")
	require.Equal(t, code, a.errorCode(), a.Body)
	require.Equal(t, again, a.Header.Get("x-should-retry"))
}
