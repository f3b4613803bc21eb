package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy/peer"
)

// RemoteOptions say how a bundle server is asked.
type RemoteOptions struct {
	Poll                  time.Duration // between two questions; 0 = 10 s. A server that knows long polling is asked without a pause
	Token                 string        // a bearer token; "": none
	ClientCert, ClientKey string        // files in PEM; read again for every connection. "": none
	CAFile                string        // a file in PEM; "": the system's authorities
}

// remote is a bundle server as a Source has it.
type remote struct {
	url     string
	options RemoteOptions
}

// Remote is the bundle that a server gives at an address.
func Remote(name, address string, o RemoteOptions) Source {
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	return Source{name: name, remote: remote{url: address, options: o}}
}

const (
	defaultPoll      = 10 * time.Second
	maxDownload      = 64 << 20
	maxRedirects     = 5
	headersTimeout   = 30 * time.Second
	downloadTimeout  = 2 * time.Minute
	longPollWait     = 30 * time.Second
	longPollType     = "application/vnd.openpolicyagent.bundles" // by which a server says that it knows long polling
	maxETag          = 1 << 10
	remoteArchive    = "the answer" // how errors name what was downloaded
	maxHeaderOfReply = 64 << 10
)

// client asks one bundle server. It is used by one goroutine at a time.
type client struct {
	source Source
	peer   *peer.Client
}

// answer is what a bundle server said: another bundle, or that it is still the same one.
type answer struct {
	bundle    *Bundle // nil: not modified
	etag      string
	longPolls bool // the server knows long polling
}

// statusError is an answer without a bundle.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the bundle server answers %d %s", e.status, http.StatusText(e.status))
}

// AnsweredStatus is the status of a bundle server's answer without a bundle that an error tells
// of; 0 = it tells of none.
func AnsweredStatus(err error) int {
	var answered *statusError
	if errors.As(err, &answered) {
		return answered.status
	}
	return 0
}

// final reports whether asking again soon is of no use.
func (e *statusError) final() bool {
	return e.status < 500 && e.status != http.StatusRequestTimeout && e.status != http.StatusTooManyRequests
}

// newClient checks the address and the files that the source names.
func newClient(s Source) (*client, error) {
	o := s.remote.options
	address, err := url.Parse(s.remote.url)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, errors.New("the address is no http or https URL")
	}
	asks := peer.Options{Token: o.Token, ClientCert: o.ClientCert, ClientKey: o.ClientKey, CAFile: o.CAFile}
	transport := func() *http.Transport {
		return &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  longPollWait + headersTimeout,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxHeaderOfReply,
			DisableCompression:     true, // the archive is compressed; its limits are its own
		}
	}
	c, err := peer.New(asks, transport, http.Client{
		CheckRedirect: func(next *http.Request, before []*http.Request) error {
			return redirect(next.URL, before[0].URL, len(before), asks.Credentials() || address.User != nil)
		},
	})
	if err != nil {
		return nil, err
	}
	return &client{source: s, peer: c}, nil
}

// redirect keeps credentials, and what was asked for over TLS, where they were meant to go.
func redirect(to, from *url.URL, count int, credentials bool) error {
	switch {
	case count > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case from.Scheme == "https" && to.Scheme != "https":
		return errors.New("a redirect away from https is not followed")
	case credentials && (to.Host != from.Host || to.Scheme != from.Scheme):
		return errors.New("a redirect to another host is not followed with credentials")
	}
	return nil
}

func (c *client) close() { c.peer.Close() }

// get asks for the bundle, unless it is still the one with that ETag. wait is how long the
// server may take to tell of another; 0 = not at all.
func (c *client) get(ctx context.Context, etag string, wait time.Duration) (answer, error) {
	a, err := c.ask(ctx, etag, wait)
	var faults Errors
	if err != nil && !errors.As(err, &faults) {
		err = fmt.Errorf("policy bundle %s: %w", c.source.name, err)
	}
	return a, err
}

func (c *client) ask(ctx context.Context, etag string, wait time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+downloadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.source.remote.url, nil)
	if err != nil {
		return answer{}, errors.New("the address is no URL")
	}
	prefer := "modes=snapshot"
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
		if wait > 0 {
			prefer += fmt.Sprintf(";wait=%d", int(wait/time.Second))
		}
	}
	req.Header.Set("Prefer", prefer)
	resp, err := c.peer.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{
		etag:      resp.Header.Get("ETag"),
		longPolls: strings.HasPrefix(resp.Header.Get("Content-Type"), longPollType),
	}
	if len(a.etag) > maxETag {
		a.etag = ""
	}
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return a, nil
	case resp.StatusCode != http.StatusOK:
		return a, &statusError{resp.StatusCode}
	}
	raw, err := readLimited(resp.Body, maxDownload)
	if err != nil {
		return a, peer.Unaddressed(err)
	}
	a.bundle, err = unpack(ctx, c.source, raw)
	if a.bundle != nil {
		a.bundle.etag = a.etag
	}
	return a, err
}

func readLimited(r io.Reader, limit int) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(raw) > limit {
		err = fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return raw, err
}

// unpack reads and verifies an archive that a server sent.
func unpack(ctx context.Context, s Source, raw []byte) (*Bundle, error) {
	c := &collector{all: s.key.set()}
	if err := c.tarball(ctx, remoteArchive, raw); err != nil {
		return nil, err
	}
	b, err := newBundle(s, c, true)
	if err != nil {
		return nil, err
	}
	b.raw = raw
	return b, nil
}

// shownURL returns an address without what may be a secret: who asks, and the query.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "a URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
