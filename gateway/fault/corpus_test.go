package fault

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the wanted bytes of testdata/*/*.txtar")

// TestCorpus runs every case of testdata over real sockets and compares each
// byte that comes. A case is a txtar of scripts (NAME.fault), the calls to make
// and what is wanted. Time is leapt over, so a case takes no longer for its
// delays.
//
// A call is "NAME stream|json", and then: usage (asked for), prefill (the last
// message is the assistant's), same (on the connection of the call before),
// leave (the caller closes once the script stalls), * N (N times). "wait 59s"
// lets time pass.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, file) })
	}
}

func runCase(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	c := &caseRun{t: t, clock: newLeapClock(), providers: map[string]*Provider{}, peers: map[string]*peer{}}
	var calls string
	wanted := -1
	for i, f := range archive.Files {
		switch name, isScript := strings.CutSuffix(f.Name, ".fault"); {
		case isScript:
			c.provide(name, string(f.Data))
		case f.Name == "calls":
			calls = string(f.Data)
		case f.Name == "want":
			wanted = i
		}
	}
	require.GreaterOrEqual(t, wanted, 0, "the case wants nothing")
	for _, line := range strings.Split(strings.TrimSpace(calls), "\n") {
		c.line(line)
	}
	if *update {
		archive.Files[wanted].Data = []byte(c.out.String())
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
		return
	}
	require.Equal(t, string(archive.Files[wanted].Data), c.out.String())
}

type caseRun struct {
	t         *testing.T
	clock     *leapClock
	providers map[string]*Provider
	peers     map[string]*peer
	out       strings.Builder
}

func (c *caseRun) provide(name, text string) {
	s, errs := Parse(name+".fault", text)
	require.Empty(c.t, errs)
	require.Equal(c.t, text, s.String(), "%s is not in canonical form", name)
	c.providers[name] = start(c.t, Options{Script: s, Name: name, Clock: c.clock})
}

var times = regexp.MustCompile(` \* (\d+)$`)

func (c *caseRun) line(line string) {
	if pause, ok := strings.CutPrefix(line, "wait "); ok {
		d, err := time.ParseDuration(pause)
		require.NoError(c.t, err)
		c.clock.leap(d)
		fmt.Fprintf(&c.out, "%s\n", line)
		return
	}
	n := 1
	if m := times.FindStringSubmatch(line); m != nil {
		n, _ = strconv.Atoi(m[1])
		line = strings.TrimSuffix(line, m[0])
	}
	first := ""
	for i := range n {
		seen := c.call(line)
		if i == 0 {
			first = seen
			fmt.Fprintf(&c.out, "%s\n%s", line, seen)
		}
		// Later ones may differ in their numbers only.
		require.Equal(c.t, strings.SplitN(first, "\n", 2)[0], strings.SplitN(seen, "\n", 2)[0])
	}
	if n > 1 {
		fmt.Fprintf(&c.out, "  %d times\n", n)
	}
}

func (c *caseRun) call(line string) string {
	fields := strings.Fields(line)
	p := c.providers[fields[0]]
	require.NotNil(c.t, p, "no provider %s", fields[0])
	has := func(word string) bool { return slices.Contains(fields[1:], word) }
	client := c.peers[fields[0]]
	if client == nil || !has("same") {
		if client != nil {
			_ = client.conn.Close()
		}
		client = dial(c.t, p)
		c.peers[fields[0]] = client
	}
	number := p.Count() + 1
	client.post(chatPath, requestBody(fields[0], has))
	return c.observe(p, client, number, has("leave"))
}

func requestBody(provider string, has func(string) bool) string {
	body := `{"model":"m` + strings.ToLower(provider) + `"`
	if has("stream") {
		body += `,"stream":true`
	}
	if has("usage") {
		body += `,"stream_options":{"include_usage":true}`
	}
	body += `,"messages":[{"role":"user","content":"hi"}`
	if has("prefill") {
		body += `,{"role":"assistant","content":"one two"}`
	}
	return body + `]}`
}

// observe reads what the call brings and how it ends.
func (c *caseRun) observe(p *Provider, client *peer, number int, leave bool) string {
	call, err := p.WaitStalled(patient(c.t), number)
	require.NoError(c.t, err)
	seen := showBytes(client.read(call.Written))
	after := "open"
	if leave {
		require.True(c.t, call.Stalled)
		require.NoError(c.t, client.conn.Close())
		call, err = p.WaitClosed(patient(c.t), number)
		require.NoError(c.t, err)
		require.False(c.t, call.PeerClosed.IsZero())
		after = "left"
	} else if !p.settles(c.t, number) {
		var more string
		more, after = client.rest()
		require.Empty(c.t, more)
	}
	return fmt.Sprintf("  %s %s after %s, connection %s\n%s", call.End, call.Phase, call.Took, after, seen)
}

// settles waits until the call is over and reports whether its connection is
// kept.
func (p *Provider) settles(t testing.TB, number int) (kept bool) {
	require.NoError(t, p.await(patient(t), func() bool {
		r := p.journal.find(number)
		kept = r.kept
		return r.kept || r.connClosed
	}))
	return kept
}

// shower writes an answer as quoted strings that lose nothing: a line of the
// head each, a chunk each ("chunk SIZE"), "…" for what the text shares with the
// one above it up to its delta, and runs of x counted.
type shower struct {
	out   strings.Builder
	above string // the shared beginning of the text above
}

func showBytes(answer string) string {
	s := &shower{}
	head, body, whole := strings.Cut(answer, "\r\n\r\n")
	if !whole {
		s.lines("", answer)
		return s.out.String()
	}
	s.lines("", head+"\r\n\r\n")
	if !strings.Contains(head, "chunked") {
		s.events(body)
		return s.out.String()
	}
	single := ""
	for body != "" {
		size, text, rest := cutChunk(body)
		if size != "1" && single != "" {
			s.text("chunks of 1: ", single)
			single = ""
		}
		switch {
		case size == "":
			s.lines("", body)
		case size == "1":
			single += text
		default:
			s.text("chunk "+size+" ", text)
		}
		body = rest
	}
	return s.out.String()
}

var chunkHead = regexp.MustCompile(`^([0-9a-f]+)\r\n`)

// cutChunk cuts the first whole chunk off; the size is "" where there is none.
func cutChunk(body string) (size, text, rest string) {
	m := chunkHead.FindStringSubmatch(body)
	if m == nil {
		return "", "", ""
	}
	n, _ := strconv.ParseInt(m[1], 16, 32)
	body = body[len(m[0]):]
	if int64(len(body)) < n+2 || body[n:n+2] != "\r\n" {
		return "", "", ""
	}
	return m[1], body[:n], body[n+2:]
}

func (s *shower) lines(label, text string) {
	for _, line := range strings.SplitAfter(text, "\n") {
		if line != "" {
			s.text(label, line)
		}
	}
}

// events shows the events of an unchunked body, one each.
func (s *shower) events(body string) {
	for _, e := range strings.SplitAfter(body, "\n\n") {
		if e != "" {
			s.text("", e)
		}
	}
}

var run = regexp.MustCompile(`x{100,}`)

func (s *shower) text(label, text string) {
	shown := text
	if i := strings.Index(text, `"delta":`); i >= 0 {
		if text[:i] == s.above {
			shown = "…" + text[i:]
		}
		s.above = text[:i]
	}
	q := run.ReplaceAllStringFunc(quoteText(shown), func(m string) string { return fmt.Sprintf("«x × %d»", len(m)) })
	fmt.Fprintf(&s.out, "  %s%s\n", label, strings.ReplaceAll(q, `\"`, `"`))
}
