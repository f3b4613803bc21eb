package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// upstream is a provider on one loop: raw sockets, bytes made beforehand, one write for an
// answer or an event, so that it costs as little as it can.
//
// The first part of a path before /v1 names who calls, and calls are counted by it; a second
// one may be a fault: 503, stall (never answers), sick (503 while the switch is on). The
// dialect is the path's: /messages is Anthropic's, everything else OpenAI's.
//
//	GET /control/sick?on      the switch (?off)
//	GET /control/finish       slow streams end at their next event
//	GET /control/counts       {"caller": calls}
type upstream struct {
	loop      *loop
	listener  int
	openai    *script
	anthropic *script
	calls     map[string]*int
	sick      bool
	finishing int // grows; a slow stream ends when it is not what it was
}

// runUpstream serves until it is told to stop. It prints its address.
func runUpstream(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet(childUpstream, flag.ContinueOnError)
	addr := f.String("listen", "127.0.0.1:0", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := newLoop()
	if err != nil {
		return err
	}
	u := &upstream{loop: l, openai: openaiScript(), anthropic: anthropicScript(), calls: map[string]*int{}}
	at, err := u.listen(*addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, at)
	context.AfterFunc(ctx, func() { l.stop.Store(true); _ = unix.Shutdown(u.listener, unix.SHUT_RDWR) })
	return l.run()
}

func (u *upstream) listen(addr string) (string, error) {
	at, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return "", err
	}
	if u.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return "", err
	}
	_ = unix.SetsockoptInt(u.listener, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err := unix.Bind(u.listener, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}); err != nil {
		return "", fmt.Errorf("upstream: %s: %w", addr, err)
	}
	if err := unix.Listen(u.listener, 4096); err != nil {
		return "", err
	}
	if err := u.loop.add(u.listener, u); err != nil {
		return "", err
	}
	name, err := unix.Getsockname(u.listener)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%v:%d", at.IP, name.(*unix.SockaddrInet4).Port), nil
}

func (u *upstream) tick(time.Duration) {}

// ready accepts.
func (u *upstream) ready(uint32) {
	for {
		fd, _, err := unix.Accept4(u.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			return
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		s := &served{u: u, fd: fd}
		s.in = message{first: s.line, body: s.piece}
		if u.loop.add(fd, s) != nil {
			_ = unix.Close(fd)
		}
	}
}

// served is one connection.
type served struct {
	u    *upstream
	fd   int
	gone bool
	in   message
	out  output

	path string
	said wish
	kept []byte // of the body: the beginning, then the latest

	script   *script
	left     int // events still to come
	slow     bool
	eights   bool
	released int
}

const keepBody = 4 << 10

func (s *served) line(line []byte) error {
	f := bytes.Fields(line)
	if len(f) != 3 {
		return fmt.Errorf("a request line %q", line)
	}
	if string(f[1]) != s.path {
		s.path = string(f[1])
	}
	s.said, s.kept = wish{}, s.kept[:0]
	return nil
}

func (s *served) piece(p []byte) {
	if len(s.kept)+len(p) > 2*keepBody {
		readWish(s.kept, &s.said)
		s.kept = append(s.kept[:0], p[max(0, len(p)-keepBody):]...)
		readWish(p[:min(len(p), keepBody)], &s.said)
		return
	}
	s.kept = append(s.kept, p...)
}

func (s *served) ready(uint32) {
	if err := s.out.flush(s.fd); err != nil {
		s.end()
		return
	}
	for !s.gone {
		n, err := unix.Read(s.fd, s.u.loop.in[:])
		if err == unix.EAGAIN || err == unix.EINTR {
			return
		}
		if n <= 0 || err != nil {
			s.end()
			return
		}
		for p := s.u.loop.in[:n]; len(p) > 0 && !s.gone; {
			k, whole, err := s.in.feed(p)
			if err != nil {
				s.end()
				return
			}
			if p = p[k:]; whole {
				s.answer()
			}
		}
		if n < len(s.u.loop.in) {
			return // edge-triggered: more will be told
		}
	}
}

func (s *served) end() {
	if !s.gone {
		s.gone = true
		s.u.loop.drop(s.fd)
	}
}

func (s *served) send(b []byte) {
	if s.gone {
		return
	}
	if err := s.out.send(s.fd, b); err != nil {
		s.end()
	}
}

// answer is what a whole request gets.
func (s *served) answer() {
	if rest, ok := strings.CutPrefix(s.path, "/control/"); ok {
		s.send(whole(s.u.control(rest)))
		return
	}
	before, _, _ := strings.Cut(s.path, "/v1/")
	caller, fault, _ := strings.Cut(strings.TrimPrefix(before, "/"), "/")
	n := s.u.calls[caller]
	if n == nil {
		n = new(int)
		s.u.calls[caller] = n
	}
	*n++
	switch {
	case fault == "503" || fault == "sick" && s.u.sick:
		s.send(unavailable)
		return
	case fault == "stall":
		return
	}
	readWish(s.kept, &s.said)
	if s.script = s.u.openai; strings.HasSuffix(s.path, "/messages") {
		s.script = s.u.anthropic
	}
	if !s.said.stream {
		if size, ok := strings.CutPrefix(s.said.model, modelOut); ok {
			n, _ := strconv.Atoi(size)
			s.send(s.script.sized(n))
			return
		}
		s.send(s.script.answer)
		return
	}
	s.send(s.script.head)
	s.left, s.slow, s.eights = streamEvents, false, false
	switch {
	case strings.HasPrefix(s.said.model, modelSlow):
		s.left, s.slow, s.released = -1, true, s.u.finishing
		s.tick(now())
	case strings.HasPrefix(s.said.model, modelEight):
		s.left, s.eights = eightEvents, true
		s.tick(now())
	case strings.HasPrefix(s.said.model, modelPaced):
		s.tick(now())
	default:
		for range streamEvents {
			s.send(s.script.event)
		}
		s.finish()
	}
}

func (s *served) finish() {
	if s.said.usage {
		s.send(s.script.usage)
	} else {
		s.send(s.script.finish)
	}
}

// tick sends the next event of a paced stream, or its end.
func (s *served) tick(now time.Duration) {
	switch {
	case s.gone:
	case s.slow && s.released != s.u.finishing, s.left == 0:
		s.finish()
	case s.slow:
		s.send(s.script.event)
		s.u.loop.at(now+paceSlow, s)
	case s.eights:
		s.left -= 8
		s.send(s.script.eight)
		s.u.loop.at(now+paceEvents, s)
	default:
		s.left--
		s.send(s.script.event)
		s.u.loop.at(now+paceEvents, s)
	}
}

func (u *upstream) control(what string) string {
	switch what {
	case "sick?on", "sick?off":
		u.sick = what == "sick?on"
	case "finish":
		u.finishing++
	case "counts":
		b, err := json.Marshal(u.calls)
		if err == nil {
			return string(b)
		}
	}
	return "{}"
}
