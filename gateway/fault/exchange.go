package fault

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// exchange is one call being answered.
type exchange struct {
	provider *Provider
	conn     *connection
	record   *record
	request  *request
	script   *Script
	plan     plan
	steps    []step
	vars     vars
	seed     uint64

	identity  identity
	voice     voice
	streaming bool
	static    *bodyText // the whole body where it is known before the head
	troubled  []string  // further headers of an error: name, value, …
	code      int       // the status
	coder     *coder    // nil without a content coding
	pace      time.Duration
	paceDue   bool // an event was written, so the next one is paced

	headSent, bodySent, wired, ended bool
	sent                             int64 // bytes of the body, coded
	closeAfter                       bool
}

// bodyText is a body with its type.
type bodyText struct{ text, contentType string }

// perform does the rule's steps and completes the answer.
func (x *exchange) perform() error {
	if err := x.prepare(); err != nil {
		return err
	}
	for _, s := range x.steps {
		if err := s.run(x); err != nil {
			return err
		}
	}
	if x.ended || x.wired && !x.headSent {
		return nil
	}
	return x.finish()
}

// prepare settles what the answer is before its first byte.
func (x *exchange) prepare() error {
	if x.code == 0 { // else the call was refused before any rule
		if x.code = x.plan.status; x.code == 0 {
			x.code = http.StatusOK
		}
	}
	speaks := x.plan.speaks
	switch {
	case x.static != nil:
	case x.plan.body != nil:
		x.static = &bodyText{x.plan.body.content.render(x.vars), x.plan.body.contentType}
	case x.code >= 400 && !speaks:
		x.refuse(x.code, x.plan.problem)
	case !speaks && x.code == http.StatusOK && !x.plan.writes:
		speaks = x.healthy()
	case !speaks:
		x.static = &bodyText{}
	}
	x.streaming = speaks && (x.plan.as == modeStream || x.plan.as == modeAny && x.request.asked.stream)
	if speaks && !x.streaming {
		x.collect()
	}
	return x.encode()
}

// refuse makes the answer an error object.
func (x *exchange) refuse(status int, p problem) {
	x.code = status
	x.static = &bodyText{contentType: "application/json"}
	x.static.text, x.troubled = x.script.settings.dialect.problem(status, p, x.vars)
}

// collect puts everything the steps say into one JSON answer.
func (x *exchange) collect() {
	for _, e := range spoken(x, x.steps) {
		if e.kind == eventDone {
			break
		}
		x.voice.say(e)
	}
	x.static = &bodyText{x.voice.body(), "application/json"}
}

// encode sets the content coding up; a body known whole is coded at once, so
// that its Content-Length can be told.
func (x *exchange) encode() error {
	if x.plan.encoding == "" || x.static != nil && x.static.text == "" {
		return nil
	}
	var err error
	if x.coder, err = newCoder(x.plan.encoding); err != nil || x.static == nil {
		return err
	}
	coded, err := x.coder.code([]byte(x.static.text), true)
	x.static.text = string(coded)
	return err
}

// say says one event. Without a stream only "done" acts: the collected answer
// goes out there.
func (x *exchange) say(e event, f form) error {
	if !x.streaming {
		if e.kind == eventDone {
			return x.putStatic()
		}
		return nil
	}
	if err := x.paced(); err != nil {
		return err
	}
	frames := x.voice.say(e)
	for i, frame := range frames {
		shape := f
		if i < len(frames)-1 {
			shape.ending = endingWhole
		}
		bytes := shape.frame(frame, x.plan.newline)
		if d := x.script.settings.dialect; d != nil && d.frame != nil {
			bytes = d.frame(frame)
		}
		if err := x.put(bytes); err != nil {
			return err
		}
	}
	return nil
}

// paced waits the pace, before every event of a stream but the first.
func (x *exchange) paced() error {
	if x.pace > 0 && x.streaming && x.paceDue {
		if err := x.wait(x.pace); err != nil {
			return err
		}
	}
	x.paceDue = true
	return nil
}

// putStatic writes the body that was known from the start.
func (x *exchange) putStatic() error {
	if x.bodySent {
		return nil
	}
	x.bodySent = true
	return x.emit([]byte(x.static.text))
}

// put writes a part of a stream's body.
func (x *exchange) put(p []byte) error {
	if x.coder != nil {
		coded, err := x.coder.code(p, false)
		if err != nil {
			return err
		}
		p = coded
	}
	return x.emit(p)
}

// emit writes coded bytes of the body, up to where the script trips.
func (x *exchange) emit(p []byte) error {
	trip := x.plan.trip
	if trip != nil && x.sent+int64(len(p)) >= trip.after {
		if err := x.pieces(p[:trip.after-x.sent]); err != nil {
			return err
		}
		return trip.act.run(x)
	}
	return x.pieces(p)
}

// pieces writes coded bytes, cut as "chunk" says, each piece an HTTP chunk of
// its own where the body is chunked. The head goes with the first.
func (x *exchange) pieces(p []byte) error {
	x.sent += int64(len(p))
	size := x.plan.chunk
	if size == 0 {
		size = max(len(p), 1)
	}
	if len(p) == 0 || x.plan.chunk > 0 {
		if err := x.sendHead(nil); err != nil {
			return err
		}
	}
	for len(p) > 0 {
		n := min(size, len(p))
		piece := p[:n]
		if x.chunked() {
			piece = frameChunk(piece)
		}
		if err := x.sendHead(piece); err != nil {
			return err
		}
		x.provider.reached(x.record, PhaseInBody)
		p = p[n:]
	}
	return nil
}

func frameChunk(p []byte) []byte {
	out := make([]byte, 0, len(p)+16)
	out = strconv.AppendInt(out, int64(len(p)), 16)
	out = append(out, '\r', '\n')
	out = append(out, p...)
	return append(out, '\r', '\n')
}

func (x *exchange) chunked() bool {
	if bodiless(x.code) {
		return false
	}
	switch x.plan.framing {
	case framingChunks:
		return true
	case framingAuto:
		return x.streaming
	default:
		return false
	}
}

// sendHead sends the head, if it is still to be sent, and some bytes behind it
// in one write.
func (x *exchange) sendHead(behind []byte) error {
	if x.headSent {
		return x.write(behind)
	}
	x.headSent = true
	out := append(x.plan.head(x.code, x.ownHeaders(), x.vars), behind...)
	if err := x.write(out); err != nil {
		return err
	}
	x.provider.reached(x.record, PhaseBeforeBody)
	return nil
}

// ownHeaders are the headers that follow from the answer, as name, value, ….
func (x *exchange) ownHeaders() []string {
	var h []string
	switch {
	case x.streaming:
		h = append(h, "Content-Type", x.streamType())
	case x.static.contentType != "":
		h = append(h, "Content-Type", x.static.contentType)
	}
	h = append(h, x.troubled...)
	if x.coder != nil {
		h = append(h, "Content-Encoding", x.plan.encoding)
	}
	switch {
	case x.plan.framing == framingLength:
		h = append(h, "Content-Length", strconv.FormatInt(x.plan.length, 10))
	case bodiless(x.code):
	case x.chunked():
		h = append(h, "Transfer-Encoding", "chunked")
	case x.plan.framing == framingClose:
	default:
		h = append(h, "Content-Length", strconv.Itoa(len(x.static.text)))
	}
	if x.plan.close || x.plan.framing == framingClose {
		h = append(h, "Connection", "close")
	}
	x.closeAfter = x.plan.close || x.plan.framing == framingClose || x.plan.saysClose()
	return h
}

func (x *exchange) streamType() string {
	if d := x.script.settings.dialect; d != nil {
		return d.contentType
	}
	return "text/event-stream"
}

// finish completes the answer.
func (x *exchange) finish() error {
	if x.ended {
		return nil
	}
	if err := x.finishBody(); err != nil {
		return err
	}
	if x.chunked() {
		if err := x.sendHead([]byte("0\r\n\r\n")); err != nil {
			return err
		}
	} else if err := x.sendHead(nil); err != nil {
		return err
	}
	x.ended = true
	x.closeAfter = x.closeAfter || x.plan.framing == framingLength && x.sent != x.plan.length
	x.provider.ended(x.record, EndCompleted)
	return nil
}

func (x *exchange) finishBody() error {
	if !x.streaming {
		if bodiless(x.code) && x.static.text == "" {
			return nil
		}
		return x.putStatic()
	}
	if x.coder == nil {
		return nil
	}
	rest, err := x.coder.code(nil, true)
	if err != nil || len(rest) == 0 {
		return err
	}
	return x.emit(rest)
}

// wire writes bytes outside of the answer.
func (x *exchange) wire(p []byte) error {
	x.wired = true
	return x.write(p)
}

// endlessHead writes headers until the peer leaves or the limit is reached.
func (x *exchange) endlessHead(limit int64) error {
	x.wired = true
	if err := x.write(fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", x.code, reasonPhrase(x.code))); err != nil {
		return err
	}
	for i, n := 0, int64(0); n < limit; {
		var block []byte
		for range 64 {
			block = fmt.Appendf(block, "X-Padding-%d: %064d\r\n", i, i)
			i++
		}
		if err := x.write(block); err != nil {
			return err
		}
		n += int64(len(block))
	}
	return errCutReset
}

// write puts bytes on the connection, a few at a time where the script
// trickles.
func (x *exchange) write(p []byte) error {
	if x.plan.trickle == 0 {
		return x.writeOnce(p)
	}
	for len(p) > 0 {
		n := min(x.plan.trickle, len(p))
		if err := x.writeOnce(p[:n]); err != nil {
			return err
		}
		if p = p[n:]; x.plan.trickleEvery > 0 {
			if err := x.wait(x.plan.trickleEvery); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *exchange) writeOnce(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if x.conn.link.isGone() {
		return errPeerGone
	}
	n, err := x.conn.Write(p)
	x.provider.wrote(x.record, n)
	if err == nil {
		return nil
	}
	return x.conn.ending(err)
}

func (x *exchange) wait(d time.Duration) error { return x.conn.wait(d) }

func (x *exchange) stall() error {
	x.provider.stalled(x.record)
	return x.conn.stall()
}
