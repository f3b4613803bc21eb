package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// streamEvents is the number of events of a stream before its finish and [DONE]. A slow
// stream has as many as fit, one every slowPace.
const (
	streamEvents = 20
	slowPace     = 100 * time.Millisecond
)

// script holds the bytes of every answer, made once.
type script struct {
	answer, head, event, finish []byte
}

func newScript() *script {
	body := `{"id":"chatcmpl-123","object":"chat.completion","created":1700000000,"model":"` + benchModel + `","choices":[{"index":0,"message":{"role":"assistant","content":"A proxy reads what it is sent, sends what it has read, and is judged by what it costs to stand between. This answer is half a kilobyte, as short answers are, so that bytes do not hide the price of a request."},"finish_reason":"stop"}],"usage":{"prompt_tokens":29,"completion_tokens":47,"total_tokens":76}}`
	chunk := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
	event := func(delta, finish string) string {
		return chunk(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"` + benchModel + `","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n")
	}
	usage := chunk(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"` + benchModel + `","choices":[],"usage":{"prompt_tokens":29,"completion_tokens":20,"total_tokens":49}}` + "\n\n")
	return &script{
		answer: []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_123\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body),
		head:   []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Request-Id: req_123\r\nTransfer-Encoding: chunked\r\n\r\n"),
		event:  []byte(event(`{"content":" token"}`, "null")),
		finish: []byte(event(`{}`, `"stop"`) + usage + chunk("data: [DONE]\n\n") + "0\r\n\r\n"),
	}
}

// runUpstream serves chat completions on raw sockets: one goroutine a connection, one write
// an answer or an event, so that the upstream costs as little as it can.
func runUpstream(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet(partUpstream, flag.ContinueOnError)
	slowFor := f.Duration("slow-for", 8*time.Second, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, ln.Addr())
	context.AfterFunc(ctx, func() { ln.Close() })
	s := newScript()
	for {
		c, err := ln.Accept()
		if err != nil {
			return nil
		}
		go s.serve(c, *slowFor)
	}
}

func (s *script) serve(c net.Conn, slowFor time.Duration) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 16<<10)
	for {
		body, err := readRequest(in)
		if err != nil {
			return
		}
		stream, slow := bytes.Contains(body, []byte(`"stream":true`)), bytes.Contains(body, []byte(slowModel))
		_, _ = in.Discard(len(body))
		switch {
		case !stream:
			_, err = c.Write(s.answer)
		case slow:
			err = s.stream(c, int(slowFor/slowPace), slowPace)
		default:
			err = s.stream(c, streamEvents, 0)
		}
		if err != nil {
			return
		}
	}
}

func (s *script) stream(c net.Conn, events int, pace time.Duration) error {
	if _, err := c.Write(s.head); err != nil {
		return err
	}
	for range events {
		if _, err := c.Write(s.event); err != nil {
			return err
		}
		if pace > 0 {
			time.Sleep(pace)
		}
	}
	_, err := c.Write(s.finish)
	return err
}

// readRequest reads one request's head and returns its body, still in the buffer.
func readRequest(in *bufio.Reader) ([]byte, error) {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) <= 2 {
			return in.Peek(length)
		}
		if v, ok := header(line, "content-length:"); ok {
			if length, err = strconv.Atoi(string(v)); err != nil {
				return nil, err
			}
		}
	}
}

// header is the value of the line if it is the header of that name, which ends in a colon.
func header(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name):]), true
}
