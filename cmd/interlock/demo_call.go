package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// sight is what a caller saw of one request, and what the ledger says of it.
type sight struct {
	err    error // what kept the request from being made or looked up
	status int
	header http.Header
	text   string // what the answer says
	code   string // the error's
	took   time.Duration
	record demoRecord
	// aborted is how long after the caller had left its provider lost the call; 0 where the
	// caller stayed.
	aborted time.Duration
}

// demoRecord is the part of a ledger record that is shown.
type demoRecord struct {
	RequestID string `json:"request_id"`
	Terminal  string `json:"terminal"`
	Attempts  []struct {
		Number       int    `json:"number"`
		Cause        string `json:"cause"`
		Group        string `json:"group"`
		Channel      string `json:"channel"`
		Model        string `json:"model"`
		Reason       string `json:"reason"`
		DelayMS      int64  `json:"delay_ms"`
		Circuit      string `json:"circuit"`
		Status       *int   `json:"status"`
		Class        string `json:"class"`
		Phase        string `json:"phase"`
		RetryAfterMS *int64 `json:"retry_after_ms"`
		Terminal     string `json:"terminal"`
	} `json:"attempts"`
	Decisions []struct {
		Point  string `json:"point"`
		Output struct {
			Actions []string `json:"actions"`
			Reason  string   `json:"reason"`
		} `json:"output"`
	} `json:"decisions"`
}

// play makes one request through the front door and looks it up in the ledger.
func (st *stage) play(ctx context.Context, sc *scene) (seen sight) {
	select {
	case <-time.After(sc.after):
	case <-ctx.Done():
		seen.err = ctx.Err()
		return seen
	}
	began := time.Now()
	resp, err := st.send(ctx, sc)
	if err != nil {
		seen.err = err
		return seen
	}
	seen.status, seen.header = resp.StatusCode, resp.Header
	switch {
	case sc.leaves:
		err = st.leave(ctx, resp, &seen)
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		err = readEvents(resp.Body, &seen)
	default:
		err = readAnswer(resp.Body, &seen)
	}
	seen.took = time.Since(began)
	_ = resp.Body.Close() // it was read, or left on purpose
	if err != nil {
		seen.err = fmt.Errorf("reading the answer: %w", err)
		return seen
	}
	seen.err = st.lookUp(ctx, resp.Header.Get("x-request-id"), &seen.record)
	return seen
}

func (st *stage) send(ctx context.Context, sc *scene) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, st.url()+sc.path, strings.NewReader(sc.body()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+st.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(sc.headers); i += 2 {
		req.Header.Set(sc.headers[i], sc.headers[i+1])
	}
	return st.client.Do(req)
}

// demoError is an error's body, or the error event of a stream.
type demoError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

func readAnswer(r io.Reader, seen *sight) error {
	var a struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Error *demoError `json:"error"`
	}
	if err := json.NewDecoder(r).Decode(&a); err != nil {
		return err
	}
	if a.Error != nil {
		seen.code, seen.text = a.Error.Code, a.Error.Message
	}
	for i := range a.Choices {
		seen.text += a.Choices[i].Message.Content
	}
	return nil
}

// readEvents reads a chat stream to its end.
func readEvents(r io.Reader, seen *sight) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if err := readEvent(lines.Text(), seen); err != nil {
			return err
		}
	}
	return lines.Err()
}

func readEvent(line string, seen *sight) error {
	data, ok := strings.CutPrefix(line, "data: ")
	if !ok || data == "[DONE]" {
		return nil
	}
	var chunk struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
		} `json:"choices"`
		Error *demoError `json:"error"`
	}
	if err := json.Unmarshal([]byte(data), &chunk); err != nil {
		return err
	}
	if chunk.Error != nil {
		seen.code = chunk.Error.Code
	}
	for i := range chunk.Choices {
		seen.text += chunk.Choices[i].Delta.Content
	}
	return nil
}

// leave reads a stream's first words and goes away. It waits until the provider has lost the
// call, too.
func (st *stage) leave(ctx context.Context, resp *http.Response, seen *sight) error {
	lines := bufio.NewScanner(resp.Body)
	for strings.Count(seen.text, " ") < 3 {
		if !lines.Scan() {
			return errors.Join(errors.New("the stream ended too early"), lines.Err())
		}
		if err := readEvent(lines.Text(), seen); err != nil {
			return err
		}
	}
	left := time.Now()
	if err := resp.Body.Close(); err != nil {
		return err
	}
	p := st.providers["north"]
	call, err := p.WaitEnd(ctx, p.Count())
	if err != nil {
		return err
	}
	seen.aborted = max(call.At.Add(call.Took).Sub(left), time.Microsecond)
	return nil
}

// lookUp reads a request's record, as its caller may, once it is closed.
func (st *stage) lookUp(ctx context.Context, id string, into *demoRecord) error {
	for deadline := time.Now().Add(5 * time.Second); ; {
		status, err := st.readRecord(ctx, id, into)
		if err != nil {
			return fmt.Errorf("the ledger: %w", err)
		}
		if status == http.StatusOK && into.Terminal != "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the ledger has no closed record of %s: status %d", id, status)
		}
		select { // the record is closed after the answer, within milliseconds
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (st *stage) readRecord(ctx context.Context, id string, into *demoRecord) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, st.url()+"/interlock/v1/requests/"+id, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+st.key)
	resp, err := st.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	*into = demoRecord{}
	return resp.StatusCode, json.NewDecoder(resp.Body).Decode(into)
}
