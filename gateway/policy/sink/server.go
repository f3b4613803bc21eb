package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy/peer"
)

const (
	postTimeout  = 30 * time.Second
	longestPause = Pause(30 * time.Second)
)

// Server takes JSON by POST. It is used by one goroutine at a time.
type Server struct {
	url  string
	peer *peer.Client
}

// At is where OPA sends something to a service: its URL and a last part.
func At(service, last string) string {
	u, err := url.Parse(service)
	if err != nil || strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/"+last) {
		return service // the configuration has checked it
	}
	return u.JoinPath(last).String()
}

// NewServer is a server at an address. The error is of the files that who names.
func NewServer(address string, who peer.Options) (*Server, error) {
	transport := func() *http.Transport {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 1
		return t
	}
	c, err := peer.New(who, transport, http.Client{
		Timeout:       postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	return &Server{url: address, peer: c}, err
}

// Post sends one body. An answer other than success is an error.
func (s *Server) Post(ctx context.Context, body []byte, zipped bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is no URL")
	}
	req.Header.Set("Content-Type", "application/json")
	if zipped {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := s.peer.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // reading only
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &refused{resp.StatusCode}
	}
	return nil
}

// Shown is the address for people, without a password.
func (s *Server) Shown() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return "?"
	}
	return u.Redacted()
}

// Close drops idle connections.
func (s *Server) Close() { s.peer.Close() }

// refused is an answer of the server other than success.
type refused struct{ status int }

func (r *refused) Error() string { return fmt.Sprintf("the server answered %d", r.status) }

// Final reports whether the same body would meet the same answer: what is wrong is with it, and
// not with the server, its load, its address or who may call it.
func Final(err error) bool {
	var r *refused
	if !errors.As(err, &r) {
		return false
	}
	switch r.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// Pause is how long to wait before something is sent once more.
type Pause time.Duration

// FirstPause is the one after the first failure.
const FirstPause = Pause(100 * time.Millisecond)

// Next is twice as long, within a bound.
func (p Pause) Next() Pause { return min(2*p, longestPause) }

// Wait waits between half of it and all of it, or until over is closed.
func (p Pause) Wait(over <-chan struct{}) {
	t := time.NewTimer(time.Duration(p/2 + rand.N(p/2)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	}
}
