package downstream

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/interlock-gateway/interlock/gateway/flow"
)

// streamPlain streams to an HTTP/1.0 caller, which knows no chunks: the bytes as they are, to
// the end of the connection. A stream that breaks ends in a reset.
func streamPlain(ctx *fasthttp.RequestCtx, a *answer) {
	head := plainHead(a.reply, time.Now())
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) { // in a goroutine of its own; the connection is closed after it
		defer a.finish()
		_, err := c.Write(head)
		if err == nil {
			_, err = a.WriteTo(c)
		}
		if err != nil && a.socket != nil {
			a.socket.reset()
		}
	})
}

// oneLine keeps a value from starting another header.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// plainHead renders a head without the framing that the HTTP library would add.
func plainHead(r *flow.Reply, now time.Time) []byte {
	b := append([]byte("HTTP/1.1 "), strconv.Itoa(r.Status)...)
	b = append(append(append(b, ' '), fasthttp.StatusMessage(r.Status)...), "\r\n"...)
	set := func(name, value string) {
		b = append(append(append(append(b, name...), ": "...), oneLine.Replace(value)...), "\r\n"...)
	}
	set("date", now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	fields(r, set)
	set("connection", "close")
	return append(b, "\r\n"...)
}
