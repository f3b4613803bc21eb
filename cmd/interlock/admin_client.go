package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/config"
)

const (
	adminVariable      = "INTERLOCK_ADMIN"
	adminTokenVariable = "INTERLOCK_ADMIN_TOKEN" // #nosec G101 -- the name of a variable
	adminDefault       = "http://127.0.0.1:8081"

	adminTimeout   = 30 * time.Second // of all but an export, which lasts as long as it flows
	maxAdminAnswer = 64 << 20
)

// adminFlags are what every command that speaks to a running gateway takes.
type adminFlags struct {
	url  string
	json bool
}

func (f *adminFlags) add(c *cobra.Command) {
	p := c.PersistentFlags()
	p.StringVar(&f.url, "admin", "", "the gateway's admin listener (default: $"+adminVariable+", else "+adminDefault+"); the token is $"+adminTokenVariable)
	p.BoolVar(&f.json, "json", false, "print JSON")
}

// client makes a client of the gateway that the flags, else the environment, name.
func (f *adminFlags) client() (*adminClient, error) {
	given, from := f.url, "--admin"
	if given == "" {
		given, from = os.Getenv(adminVariable), adminVariable
	}
	if given == "" {
		given = adminDefault
	}
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &exitError{status: 2, message: from + " is no address of an admin listener: allowed is http://HOST:PORT or https://HOST:PORT"}
	}
	return &adminClient{
		base: strings.TrimSuffix(u.String(), "/"), token: os.Getenv(adminTokenVariable),
		http: http.Client{
			// The token goes to the address that was named, and to no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// adminClient speaks to the admin API of a running gateway.
type adminClient struct {
	base, token string
	http        http.Client
}

// adminPath joins parts of a path, each percent-encoded.
func adminPath(parts ...string) string {
	b := "/admin/v1"
	for _, p := range parts {
		b += "/" + url.PathEscape(p)
	}
	return b
}

// call sends a request and returns the whole answer. body, unless nil, is sent as JSON.
func (a *adminClient) call(ctx context.Context, method, path string, body any, accept string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	var b bytes.Buffer
	if err := a.stream(ctx, method, path, body, accept, &limitedWriter{w: &b, left: maxAdminAnswer}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// get decodes an answer into v and returns it as it came, too.
func (a *adminClient) get(ctx context.Context, path string, v any) ([]byte, error) {
	return a.do(ctx, http.MethodGet, path, nil, v)
}

func (a *adminClient) do(ctx context.Context, method, path string, body, v any) ([]byte, error) {
	b, err := a.call(ctx, method, path, body, "application/json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s did not answer like the admin API: %w", a.base, err)
	}
	return b, nil
}

// stream sends a request and copies the answer as it comes.
func (a *adminClient) stream(ctx context.Context, method, path string, body any, accept string, w io.Writer) error {
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", accept)
	if sent != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(r)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // the address is named below
		}
		return fmt.Errorf("no gateway at %s: %w (name its admin listener with --admin or %s)", a.base, err, adminVariable)
	}
	defer resp.Body.Close() //nolint:errcheck // reading only
	if resp.StatusCode >= http.StatusMultipleChoices {
		return a.refused(resp)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the answer of %s broke off: %w", a.base, err)
	}
	return nil
}

// refused reads the error of an answer that is none of success.
func (a *adminClient) refused(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what there is of it is enough
	var e struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Errors []config.Problem `json:"errors"` // of a reload
	}
	if json.Unmarshal(b, &e) != nil || e.Error.Code == "" {
		return fmt.Errorf("%s answered %d and not like the admin API", a.base, resp.StatusCode)
	}
	message := printable(e.Error.Message)
	if resp.StatusCode == http.StatusUnauthorized {
		message += " (set " + adminTokenVariable + ")"
	}
	message = fmt.Sprintf("%s (%d %s)", message, resp.StatusCode, printable(e.Error.Code))
	for _, p := range e.Errors {
		message += "\nerror: " + printable(p.String())
	}
	return errors.New(message)
}

type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, fmt.Errorf("it is longer than %d MiB", maxAdminAnswer>>20)
	}
	l.left -= len(b)
	return l.w.Write(b)
}

// printable replaces what a terminal could take for a command: callers choose some of the
// texts that are shown. Several lines become one.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case r == '\n' || r == '\t':
			return ' '
		}
		return '\uFFFD'
	}, s)
}

// orDash is a text in a column.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// printJSON prints JSON indented, for people and programs alike.
func printJSON(w io.Writer, b []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(b), "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := w.Write(out.Bytes())
	return err
}
