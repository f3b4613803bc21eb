package downstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/flow"
)

func countLines(text, with string) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

// TestUpload: whatever the pieces a body comes in, what is read is the body, the limit holds,
// and the budget covers the bytes in memory.
func TestUpload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "body")
		want = bytes.Repeat(want, rapid.IntRange(1, 40).Draw(t, "times"))
		limit := rapid.Int64Range(0, 100_000).Draw(t, "limit")
		declared := int64(len(want))
		if rapid.Bool().Draw(t, "chunked") {
			declared = chunked
		}
		cut := rapid.IntRange(0, 3).Draw(t, "cut") == 0 && len(want) > 0
		var r io.Reader = bytes.NewReader(want)
		if cut {
			r = io.MultiReader(bytes.NewReader(want[:len(want)-1]), iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		switch rapid.IntRange(0, 3).Draw(t, "pieces") {
		case 0:
			r = iotest.OneByteReader(r)
		case 1:
			r = iotest.HalfReader(r)
		case 2:
			r = iotest.DataErrReader(r)
		}
		b := &budget{limit: rapid.Int64Range(1, 200_000).Draw(t, "budget")}
		u := &upload{bytes: make([]byte, 0, rapid.SampledFrom([]int{0, 512, 64 << 10}).Draw(t, "kept"))}
		kept := int64(cap(u.bytes))
		err := u.read(r, declared, limit, b)
		if b.used.Load() > b.limit || b.used.Load() != u.taken {
			t.Fatalf("used %d, taken %d of %d", b.used.Load(), u.taken, b.limit)
		}
		if held := int64(cap(u.bytes)); held > max(kept, u.taken) {
			t.Fatalf("%d bytes held, %d taken", held, u.taken)
		}
		tooLarge := int64(len(want)) > limit
		switch {
		case err == nil:
			if cut || tooLarge || !bytes.Equal(u.bytes, want) {
				t.Fatalf("%d bytes read of %d (limit %d, cut %v)", len(u.bytes), len(want), limit, cut)
			}
		case errors.Is(err, errTooLarge):
			if !tooLarge {
				t.Fatal("within the limit")
			}
		case errors.Is(err, errBusy):
			if int64(len(want))*4+firstRoom <= b.limit {
				t.Fatal("there was room")
			}
		default:
			if !cut {
				t.Fatal(err)
			}
		}
		u.give(b)
		u.release()
		if b.used.Load() != 0 || cap(u.bytes) > keptBody || len(u.bytes) != 0 {
			t.Fatalf("left: %d used, %d held", b.used.Load(), cap(u.bytes))
		}
	})
}

// TestUploadTrustsNoLength: a content-length alone gets little memory.
func TestUploadTrustsNoLength(t *testing.T) {
	u := &upload{}
	err := u.read(strings.NewReader("{"), 1<<30, 1<<31, &budget{})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.LessOrEqual(t, cap(u.bytes), trusted)
}

// TestUploadKeepsLittle: a pooled buffer never is a large one.
func TestUploadKeepsLittle(t *testing.T) {
	for size, kept := range map[int64]bool{keptBody: true, keptBody + 1: false} {
		u := &upload{}
		require.NoError(t, u.read(io.LimitReader(zeros{}, size), size, size, &budget{}))
		require.Len(t, u.bytes, int(size))
		u.release()
		require.Equal(t, kept, cap(u.bytes) > 0)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestLargeBodiesAreReleased: idle connections do not keep what they once carried.
func TestLargeBodiesAreReleased(t *testing.T) {
	d := newDouble()
	d.run = func(*script) *flow.Reply { return jsonReply("{}") }
	s := open(t, d, Options{})
	text := post(chat, strings.Repeat("x", 8<<20))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 20 {
		conn := s.dial(t)
		resp, _ := say(t, conn, bufio.NewReader(conn), text)
		require.Equal(t, 200, resp.StatusCode)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(32<<20), "20 idle connections, 8 MiB each")
}

// TestAllocations guards the front's own part of a request.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector empties pools at random")
	}
	body := strings.Repeat("x", 300)
	whole, event := jsonReply(strings.Repeat("y", 500)), []byte("data: "+strings.Repeat("z", 100)+"\n\n")
	stream := streamReply(nil)
	for name, c := range map[string]struct {
		reply *flow.Reply
		pump  func(*script, io.Writer) error
		limit float64
	}{
		"whole": {whole, nil, 3},
		"stream": {stream, func(_ *script, w io.Writer) error {
			for range 20 {
				if _, err := w.Write(event); err != nil {
					return err
				}
			}
			return nil
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble()
			d.run = func(*script) *flow.Reply { return c.reply }
			d.pump = c.pump
			s := open(t, d, Options{})
			conn := s.dial(t)
			text := []byte(post(chat, body))
			answer := make([]byte, 64<<10)
			once := func() {
				if _, err := conn.Write(text); err != nil {
					t.Fatal(err)
				}
				for n := 0; ; {
					m, err := conn.Read(answer[n:])
					if err != nil {
						t.Fatal(err)
					}
					n += m
					if c.reply.Stream && bytes.HasSuffix(answer[:n], []byte("\r\n0\r\n\r\n")) ||
						!c.reply.Stream && bytes.HasSuffix(answer[:n], c.reply.Body) {
						return
					}
				}
			}
			for range 10 {
				once()
			}
			// The double itself allocates a script, its channel and what counts its writes;
			// the library a reader for what may be left of a body and a writer of chunks.
			require.LessOrEqual(t, testing.AllocsPerRun(200, once), c.limit)
		})
	}
}

// TestSocketDeadlines: deadlines hold although they reach the kernel late.
func TestSocketDeadlines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	list := &sockets{Listener: l, stall: soon}
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	accepted, err := list.Accept()
	require.NoError(t, err)
	s := accepted.(*socket)
	defer s.Close()

	one := make([]byte, 1)
	require.NoError(t, s.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = s.Read(one)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, s.SetReadDeadline(time.Time{}))
	ended := make(chan error, 1)
	go func() { _, err := s.Read(one); ended <- err }()
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, s.SetReadDeadline(longPast), "a read that waits")
	select {
	case err := <-ended:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(soon):
		require.Fail(t, "the deadline did not reach the read")
	}

	require.NoError(t, s.SetWriteDeadline(longPast))
	_, err = s.Write(one)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, s.SetDeadline(time.Time{}))
	_, err = s.Write(one)
	require.NoError(t, err, "a deadline of the past is forgotten")
	s.cut()
	_, err = s.Write(one)
	require.ErrorIs(t, err, errCut)
}

// TestCutEndsAWrite: a write that waits for the caller ends when the caller has left.
func TestCutEndsAWrite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	list := &sockets{Listener: l, stall: time.Hour}
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	accepted, err := list.Accept()
	require.NoError(t, err)
	s := accepted.(*socket)
	defer s.Close()
	ended := make(chan error, 1)
	go func() { _, err := s.Write(make([]byte, 64<<20)); ended <- err }()
	time.Sleep(20 * time.Millisecond)
	s.cut()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(soon):
		require.Fail(t, "the write still waits")
	}
}

func TestConnectionLimits(t *testing.T) {
	s := open(t, newDouble(), Options{MaxConnsPerIP: 1})
	first := s.dial(t)
	r := bufio.NewReader(first)
	_, _ = say(t, first, r, get("/v1/models"))
	second := s.dial(t)
	_, err := second.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	resp, _ := say(t, first, r, get("/v1/models"))
	require.Equal(t, 200, resp.StatusCode)
}

func TestRefusalsAreCounted(t *testing.T) {
	s := open(t, newDouble(), Options{})
	conn := s.dial(t)
	_, _ = say(t, conn, bufio.NewReader(conn), strings.Replace(post(chat, "{}"), key, "wrong", 1))
	families, err := s.options.Metrics.Registry().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "interlock_requests_total" {
			require.Len(t, f.Metric, 1)
			require.InDelta(t, 1, f.Metric[0].Counter.GetValue(), 0)
			require.Contains(t, f.Metric[0].String(), "chat_completions")
			require.Contains(t, f.Metric[0].String(), "policy_stop")
			return
		}
	}
	require.Fail(t, "not counted")
}

func BenchmarkRequest(b *testing.B) {
	d := newDouble()
	reply := jsonReply(strings.Repeat("y", 500))
	d.run = func(*script) *flow.Reply { return reply }
	s := open(b, d, Options{})
	conn := s.dial(b)
	require.NoError(b, conn.SetDeadline(time.Time{}))
	text, answer := []byte(post(chat, strings.Repeat("x", 300))), make([]byte, 8<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(text); err != nil {
			b.Fatal(err)
		}
		for n := 0; !bytes.HasSuffix(answer[:n], reply.Body); {
			m, err := conn.Read(answer[n:])
			if err != nil {
				b.Fatal(err)
			}
			n += m
		}
	}
}

func BenchmarkInspect(b *testing.B) {
	fields := []byte("host: gateway\r\nauthorization: Bearer " + strings.Repeat("k", 48) + "\r\naccept: application/json\r\n" +
		"content-type: application/json\r\nuser-agent: OpenAI/Python 2.8.0\r\nx-stainless-lang: python\r\nx-stainless-package-version: 2.8.0\r\n" +
		"x-stainless-os: Linux\r\nx-stainless-arch: x64\r\nx-stainless-runtime: CPython\r\nx-stainless-retry-count: 0\r\n" +
		"accept-encoding: gzip, deflate\r\nconnection: keep-alive\r\ncontent-length: 300\r\n\r\n")
	version := []byte("HTTP/1.1")
	b.ReportAllocs()
	for b.Loop() {
		if _, flaw := inspect(version, fields); flaw != "" {
			b.Fatal(flaw)
		}
	}
}
