package downstream

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHostileHeads: what could be read in two ways is not read at all. Each gets an answer in
// OpenAI's shape and a closed connection, and reaches no exchange.
func TestHostileHeads(t *testing.T) {
	line := "POST " + chat + " HTTP/1.1\r\n"
	head := line + "host: gateway\r\nauthorization: Bearer " + key + "\r\n"
	cases := map[string]struct {
		request string
		status  int
		code    string
	}{
		"content-length and chunked":  {head + "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 400, "invalid_request"},
		"chunked and content-length":  {head + "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n2\r\nab\r\n0\r\n\r\n", 400, "invalid_request"},
		"content-length twice":        {head + "content-length: 2\r\ncontent-length: 3\r\n\r\nabc", 400, "invalid_request"},
		"the same length twice":       {head + "content-length: 2\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"a list of lengths":           {head + "content-length: 2, 2\r\n\r\nab", 400, "invalid_request"},
		"a signed length":             {head + "content-length: +2\r\n\r\nab", 400, "invalid_request"},
		"a negative length":           {head + "content-length: -1\r\n\r\nab", 400, "invalid_request"},
		"a length beyond 64 bits":     {head + "content-length: 99999999999999999999\r\n\r\nab", 400, "invalid_request"},
		"an unknown coding":           {head + "transfer-encoding: xchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 400, "invalid_request"},
		"identity":                    {head + "transfer-encoding: identity\r\n\r\n", 400, "invalid_request"},
		"identity with a length":      {head + "transfer-encoding: identity\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"gzip, chunked":               {head + "transfer-encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 400, "invalid_request"},
		"chunked twice":               {head + "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400, "invalid_request"},
		"a blank before the colon":    {head + "transfer-encoding : chunked\r\n\r\n0\r\n\r\n", 400, "invalid_request"},
		"a blank in a name":           {head + "x y: a\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"a tab in a name":             {head + "x\ty: a\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"a blank before a name":       {line + " x: a\r\nhost: gateway\r\n\r\n", 400, "invalid_request"},
		"a folded value":              {head + "x: a\r\n b\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"a value folded by a tab":     {head + "x: a\r\n\tb\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"a folded length":             {head + "content-length:\r\n 2\r\n\r\nab", 400, "invalid_request"},
		"no colon":                    {head + "nonsense\r\n\r\n", 400, "invalid_request"},
		"no name":                     {head + ": a\r\n\r\n", 400, "invalid_request"},
		"a name that is no token":     {head + "x(y): a\r\n\r\n", 400, "invalid_request"},
		"a lone CR in a value":        {head + "x: a\rb\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"a NUL in a value":            {head + "x: a\x00b\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"a header line ending in LF":  {head + "x: a\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"HTTP/2.0":                    {"POST " + chat + " HTTP/2.0\r\nhost: gateway\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"HTTP/1.2":                    {"POST " + chat + " HTTP/1.2\r\nhost: gateway\r\ncontent-length: 2\r\n\r\nab", 400, "invalid_request"},
		"HTTP/0.9":                    {"GET /\r\n\r\n", 400, "invalid_request"},
		"the preface of HTTP/2":       {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "invalid_request"},
		"a TLS hello":                 {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "invalid_request"},
		"no host":                     {line + "content-length: 2\r\n\r\nab", 400, "invalid_request"},
		"two hosts":                   {head + "host: b\r\n\r\n", 400, "invalid_request"},
		"chunked in HTTP/1.0":         {"POST " + chat + " HTTP/1.0\r\nhost: gateway\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400, "invalid_request"},
		"a control byte in the path":  {"GET /v1/mo\x01dels HTTP/1.1\r\nhost: gateway\r\n\r\n", 400, "invalid_request"},
		"a head beyond the buffer":    {head + "x: " + strings.Repeat("x", headBuffer) + "\r\n\r\n", 431, "request_too_large"},
		"a path beyond the buffer":    {"GET /" + strings.Repeat("x", headBuffer) + " HTTP/1.1\r\nhost: gateway\r\n\r\n", 431, "request_too_large"},
		"a chunk size in hexadecimal": {head + "transfer-encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n", 400, "invalid_request"},
		"a chunk that runs over":      {head + "transfer-encoding: chunked\r\n\r\n2\r\nabXX0\r\n\r\n", 400, "invalid_request"},
		"a negative chunk":            {head + "transfer-encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n", 400, "invalid_request"},
		"chunks ending in LF":         {head + "transfer-encoding: chunked\r\n\r\n2\nab\n0\n\n", 400, "invalid_request"},
		"a length in the trailer":     {head + "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\ncontent-length: 5\r\n\r\n", 400, "invalid_request"},
	}
	d := newDouble()
	s := open(t, d, Options{})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			r := bufio.NewReader(conn)
			resp, body := say(t, conn, r, c.request)
			refusedWith(t, resp, body, c.status, c.code)
			require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
			require.True(t, resp.Close)
			closedNow(t, conn, r)
		})
	}
	require.Zero(t, d.begun.Load())
	require.NotContains(t, s.log.String(), key, "what cannot be parsed is not logged")
}

// TestUnusualHeads: what is unusual and unambiguous is served.
func TestUnusualHeads(t *testing.T) {
	head := "POST " + chat + " HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer " + key + "\r\n"
	s := open(t, newDouble(), Options{})
	for name, request := range map[string]string{
		"chunks":             head + "transfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
		"a chunk extension":  head + "transfer-encoding: chunked\r\n\r\n2;a=b\r\nab\r\n0\r\n\r\n",
		"a trailer":          head + "transfer-encoding: chunked\r\ntrailer: x-t\r\n\r\n2\r\nab\r\n0\r\nx-t: 1\r\n\r\n",
		"Chunked":            head + "Transfer-Encoding:\tChunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
		"a tab before value": head + "x:\ta\r\ncontent-length: 2\r\n\r\nab",
		"an empty value":     head + "x:\r\ncontent-length: 2\r\n\r\nab",
		"the absolute form":  strings.Replace(head, chat, "http://gateway"+chat, 1) + "content-length: 2\r\n\r\nab",
		"a query":            strings.Replace(head, chat, chat+"?api-version=1", 1) + "content-length: 2\r\n\r\nab",
		"upper-case names":   strings.Replace(head, "host", "HOST", 1) + "CONTENT-LENGTH: 2\r\n\r\nab",
		"blank lines before": "\r\n\r\n" + head + "content-length: 2\r\n\r\nab",
		"bytes beyond ASCII": head + "x: caf\xc3\xa9\r\ncontent-length: 2\r\n\r\nab",
		"a zero before":      head + "content-length: 02\r\n\r\nab",
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			resp, body := say(t, conn, bufio.NewReader(conn), request)
			require.Equal(t, 200, resp.StatusCode, body)
			require.Equal(t, `{"echo":"ab"}`, body)
		})
	}
}

// TestUnauthenticated: a wrong key costs a head and at most one byte of the body.
func TestUnauthenticated(t *testing.T) {
	d := newDouble()
	s := open(t, d, Options{MaxInflightBody: 1 << 20})
	for name, header := range map[string]string{"none": "", "wrong": "authorization: Bearer wrong\r\n"} {
		for _, body := range []string{"content-length: 60000000\r\n\r\n", "content-length: 60000000\r\n\r\n{", "transfer-encoding: chunked\r\n\r\n", "content-length: 0\r\n\r\n"} {
			t.Run(name, func(t *testing.T) {
				conn := s.dial(t)
				r := bufio.NewReader(conn)
				resp, text := say(t, conn, r, "POST "+chat+" HTTP/1.1\r\nhost: gateway\r\n"+header+body)
				refusedWith(t, resp, text, 401, "invalid_api_key")
				require.Equal(t, "Bearer", resp.Header.Get("WWW-Authenticate"))
				closedNow(t, conn, r)
			})
		}
	}
	require.Zero(t, d.begun.Load())
	require.Zero(t, s.bodies.used.Load())
}

// TestUnauthenticatedFlood: callers without a key that send large bodies see their 401 and are
// read no further than a moment's courtesy.
func TestUnauthenticatedFlood(t *testing.T) {
	s := open(t, newDouble(), Options{})
	done := make(chan int64, 20)
	for range cap(done) {
		conn := s.dial(t)
		go func() {
			_, err := io.WriteString(conn, "POST "+chat+" HTTP/1.1\r\nhost: gateway\r\ncontent-length: 1000000000\r\n\r\n")
			var sent int64
			for chunk := make([]byte, 64<<10); err == nil; {
				var n int
				n, err = conn.Write(chunk)
				sent += int64(n)
			}
			done <- sent
		}()
	}
	for range cap(done) {
		select {
		case sent := <-done: // what the kernel's buffers hold besides differs
			require.Less(t, sent, int64(64<<20))
		case <-time.After(2 * soon):
			require.Fail(t, "a caller without a key is still served")
		}
	}
}

// TestRefusalIsSeen: a caller that sends its whole body before it reads gets the answer, not
// a reset.
func TestRefusalIsSeen(t *testing.T) {
	s := open(t, newDouble(), Options{MaxRequestBody: 1 << 20})
	body := strings.Repeat("x", 5<<20)
	for range 5 {
		conn := s.dial(t)
		r := bufio.NewReader(conn)
		resp, text := say(t, conn, r, post(chat, body))
		refusedWith(t, resp, text, 413, "request_too_large")
	}
	stranger := strings.Replace(post(chat, body[:200<<10]), key, "wrong", 1)
	for range 5 {
		conn := s.dial(t)
		resp, text := say(t, conn, bufio.NewReader(conn), stranger)
		refusedWith(t, resp, text, 401, "invalid_api_key")
	}
}

func TestTooLarge(t *testing.T) {
	d := newDouble()
	s := open(t, d, Options{MaxRequestBody: 1000})
	head := "POST " + chat + " HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer " + key + "\r\n"
	for name, request := range map[string]string{
		"declared":      head + "content-length: 1001\r\n\r\n",
		"in chunks":     head + "transfer-encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("x", 1001) + "\r\n0\r\n\r\n",
		"endless":       head + "transfer-encoding: chunked\r\n\r\n" + strings.Repeat("64\r\n"+strings.Repeat("x", 100)+"\r\n", 20),
		"one big chunk": head + "transfer-encoding: chunked\r\n\r\n7fffffff\r\n" + strings.Repeat("x", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			resp, body := say(t, conn, bufio.NewReader(conn), request)
			refusedWith(t, resp, body, 413, "request_too_large")
		})
	}
	require.Zero(t, d.begun.Load())
	for _, request := range []string{
		post(chat, strings.Repeat("x", 1000)),
		head + "transfer-encoding: chunked\r\n\r\n3e8\r\n" + strings.Repeat("x", 1000) + "\r\n0\r\n\r\n",
	} {
		conn := s.dial(t)
		resp, _ := say(t, conn, bufio.NewReader(conn), request)
		require.Equal(t, 200, resp.StatusCode, "the limit itself is allowed")
	}
}

// TestSlowloris: neither head nor body may drip.
func TestSlowloris(t *testing.T) {
	s := open(t, newDouble(), Options{ReadHeaderTimeout: 300 * time.Millisecond, ReadBodyTimeout: 300 * time.Millisecond})
	for name, request := range map[string]string{
		"head": "POST " + chat + " HTTP/1.1\r\nhost: gateway\r\nx: ",
		"body": strings.Replace(post(chat, "{"), "length: 1", "length: 10000", 1),
		"chunks": "POST " + chat + " HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer " + key +
			"\r\ntransfer-encoding: chunked\r\n\r\n64\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			_, err := io.WriteString(conn, request)
			require.NoError(t, err)
			stop := make(chan struct{})
			dripped := make(chan struct{})
			go func() {
				defer close(dripped)
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
						if _, err := conn.Write([]byte("x")); err != nil {
							return
						}
					}
				}
			}()
			start := time.Now()
			resp, body := hear(t, bufio.NewReader(conn))
			refusedWith(t, resp, body, 408, "invalid_request")
			require.GreaterOrEqual(t, time.Since(start), 250*time.Millisecond)
			close(stop)
			<-dripped
		})
	}
}

// TestBodyHasItsOwnTime: a slow body is not measured with the head's clock.
func TestBodyHasItsOwnTime(t *testing.T) {
	s := open(t, newDouble(), Options{ReadHeaderTimeout: 200 * time.Millisecond, ReadBodyTimeout: soon})
	conn := s.dial(t)
	text := post(chat, "ab")
	_, err := io.WriteString(conn, text[:len(text)-1])
	require.NoError(t, err)
	time.Sleep(400 * time.Millisecond)
	resp, body := say(t, conn, bufio.NewReader(conn), "b")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, `{"echo":"ab"}`, body)
}

// TestIdle: a connection without a request is closed without a word.
func TestIdle(t *testing.T) {
	s := open(t, newDouble(), Options{ReadHeaderTimeout: 100 * time.Millisecond, IdleTimeout: 150 * time.Millisecond})
	fresh := s.dial(t)
	closedNow(t, fresh, fresh)
	used := s.dial(t)
	r := bufio.NewReader(used)
	resp, _ := say(t, used, r, post(chat, "ab"))
	require.Equal(t, 200, resp.StatusCode)
	closedNow(t, used, r)
}

// TestTruncatedBody: a caller that leaves within its body is nobody to answer.
func TestTruncatedBody(t *testing.T) {
	d := newDouble()
	s := open(t, d, Options{})
	for _, text := range []string{
		strings.Replace(post(chat, "{"), "length: 1", "length: 100", 1),
		"POST " + chat + " HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer " + key + "\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
	} {
		conn := s.dial(t)
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
		require.NoError(t, conn.CloseWrite())
		rest, err := io.ReadAll(conn)
		if err == nil {
			require.Empty(t, string(rest))
		}
	}
	require.Zero(t, d.begun.Load())
}

func TestExpectContinue(t *testing.T) {
	d := newDouble()
	s := open(t, d, Options{MaxRequestBody: 1000})
	head := func(key, path string, length int) string {
		return "POST " + path + " HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer " + key +
			"\r\nexpect: 100-continue\r\ncontent-length: " + strconv.Itoa(length) + "\r\n\r\n"
	}
	for name, c := range map[string]struct {
		request string
		status  int
		code    string
	}{
		"wrong key":    {head("wrong", chat, 2), 401, "invalid_api_key"},
		"too large":    {head(key, chat, 1001), 413, "request_too_large"},
		"unknown path": {head(key, "/v1/nothing", 2), 404, "not_found"},
		"hostile":      {strings.Replace(head(key, chat, 2), "expect", "x y: z\r\nexpect", 1), 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			r := bufio.NewReader(conn)
			resp, body := say(t, conn, r, c.request)
			refusedWith(t, resp, body, c.status, c.code)
			closedNow(t, conn, r)
		})
	}
	require.Zero(t, d.begun.Load())

	conn := s.dial(t)
	r := bufio.NewReader(conn)
	_, err := io.WriteString(conn, head(key, chat, 2))
	require.NoError(t, err)
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	_, err = r.ReadString('\n')
	require.NoError(t, err)
	resp, body := say(t, conn, r, "ab")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, `{"echo":"ab"}`, body)
}

// TestNoSmuggling: what is refused takes what lies behind it with it.
func TestNoSmuggling(t *testing.T) {
	d := newDouble()
	s := open(t, d, Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	smuggled := post(chat, "ab")
	resp, _ := say(t, conn, r, "POST "+chat+" HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer "+key+
		"\r\ncontent-length: "+strconv.Itoa(len(smuggled)+5)+"\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"+smuggled)
	require.Equal(t, 400, resp.StatusCode)
	closedNow(t, conn, r)
	require.Zero(t, d.begun.Load())
}

func FuzzInspect(f *testing.F) {
	for _, s := range []string{"a: b\r\n\r\n", "a : b\r\n", " a: b\r\n", "a: b\n", "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", "a\rb: c\r\n", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		if n, flaw := inspect([]byte("HTTP/1.1"), fields); flaw != "" || n < 0 {
			return
		}
		// What passes has one reading: lines in CR LF, a name of visible ASCII, a colon.
		for line := range strings.SplitSeq(string(fields), "\r\n") {
			if line == "" {
				return
			}
			name, _, ok := strings.Cut(line, ":")
			if !ok || name == "" || strings.ContainsAny(name, " \t\r\n\x00") || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("passed %q", line)
			}
		}
	})
}
