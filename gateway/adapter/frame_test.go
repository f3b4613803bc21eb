package adapter

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// awsMessage makes one message of an event stream.
func awsMessage(headers map[string]string, order []string, payload string) []byte {
	var h []byte
	for _, k := range order {
		h = append(append(h, byte(len(k))), k...)
		h = append(binary.BigEndian.AppendUint16(append(h, awsString), uint16(len(headers[k]))), headers[k]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(awsPrelude+len(h)+len(payload)+awsTrailer))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// cut frames a body that comes in pieces of n bytes.
func cut(t *testing.T, f framer, body string, n int) (frames []string, err error) {
	t.Helper()
	f.reset(1 << 20)
	var fr frame
	take := func() { frames = append(frames, string(fr.name)+"|"+string(fr.data)) }
	for len(body) > 0 {
		k := min(n, len(body))
		piece := []byte(body[:k]) // its own memory: what is overwritten afterwards must not matter
		body = body[k:]
		f.feed(piece)
		for {
			ok, err := f.next(&fr)
			if err != nil {
				return frames, err
			}
			if !ok {
				break
			}
			take()
		}
		for i := range piece {
			piece[i] = '#'
		}
	}
	for {
		ok, err := f.flush(&fr)
		if err != nil || !ok {
			return frames, err
		}
		take()
	}
}

func TestFramers(t *testing.T) {
	delta := awsMessage(map[string]string{":message-type": "event", ":event-type": "contentBlockDelta", ":content-type": "application/json"},
		[]string{":event-type", ":content-type", ":message-type"}, `{"delta":{"text":"a"}}`)
	broken := awsMessage(map[string]string{":message-type": "exception", ":exception-type": "throttlingException"},
		[]string{":message-type", ":exception-type"}, `{"message":"slow down"}`)
	for _, at := range []struct {
		name   string
		framer framer
		body   string
		frames []string
		fault  error
	}{
		{"events", &sseFramer{}, ": hi\n\nevent: a\ndata: 1\n\ndata: 2\r\n\r\ndata: 3", []string{"a|1", "|2", "|3"}, nil},
		{"lines", &linesFramer{}, "{\"a\":1}\n\r\n {\"b\":2} \r\n\n[3]", []string{`|{"a":1}`, `|{"b":2}`, `|[3]`}, nil},
		{"array", &arrayFramer{}, " [ {\"a\":\"],\\\"[{\"} ,\n[1,[2]],3 ] \n", []string{`|{"a":"],\"[{"}`, `|[1,[2]]`, `|3`}, nil},
		{"empty array", &arrayFramer{}, "[]", nil, nil},
		{"nothing", &arrayFramer{}, "", nil, nil},
		{"cut array", &arrayFramer{}, `[{"a":1},{"b":`, []string{`|{"a":1}`}, errFrame},
		{"no array", &arrayFramer{}, `{"error":1}`, nil, errFrame},
		{"behind the array", &arrayFramer{}, `[1]2`, []string{"|1"}, errFrame},
		{"AWS", &awsFramer{}, string(delta) + string(broken), []string{`contentBlockDelta|{"delta":{"text":"a"}}`, `exception:throttlingException|{"message":"slow down"}`}, nil},
		{"AWS cut", &awsFramer{}, string(delta) + string(broken[:20]), []string{`contentBlockDelta|{"delta":{"text":"a"}}`}, errFrame},
		{"AWS no stream", &awsFramer{}, `{"message":"The security token is invalid"}`, nil, errFrame},
		{"AWS wrong checksum", &awsFramer{}, string(delta[:len(delta)-1]) + "!", nil, errFrame},
	} {
		t.Run(at.name, func(t *testing.T) {
			for n := 1; n <= len(at.body)+1; n++ {
				got, err := cut(t, at.framer, at.body, n)
				require.Equal(t, at.frames, got, "in pieces of %d", n)
				require.ErrorIs(t, err, at.fault, "in pieces of %d", n)
			}
		})
	}
}

func TestFramesAreBounded(t *testing.T) {
	for name, f := range map[string]framer{"events": &sseFramer{}, "lines": &linesFramer{}, "array": &arrayFramer{}} {
		f.reset(1000)
		f.feed([]byte("["))
		var fr frame
		_, err := f.next(&fr)
		for i := 0; err == nil && i < 100; i++ {
			f.feed([]byte(strings.Repeat("1", 100)))
			_, err = f.next(&fr)
		}
		require.Error(t, err, name)
	}
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	huge = binary.BigEndian.AppendUint32(huge, 0)
	huge = binary.BigEndian.AppendUint32(huge, crc32.ChecksumIEEE(huge))
	a := &awsFramer{}
	a.reset(1000)
	a.feed(huge)
	_, err := a.next(&frame{})
	require.ErrorIs(t, err, errFrameTooLarge)
}

// What cuts the bytes must not change the frames, and nothing may panic.
func FuzzFramers(f *testing.F) {
	f.Add("data: 1\n\n", uint8(3))
	f.Add(`[{"a":1},2]`, uint8(1))
	f.Add(string(awsMessage(map[string]string{":event-type": "e"}, []string{":event-type"}, "{}")), uint8(5))
	f.Fuzz(func(t *testing.T, body string, n uint8) {
		for _, fr := range []framer{&sseFramer{}, &linesFramer{}, &arrayFramer{}, &awsFramer{}} {
			whole, wholeErr := cut(t, fr, body, len(body)+1)
			pieces, piecesErr := cut(t, fr, body, 1+int(n))
			require.Equal(t, whole, pieces)
			require.Equal(t, wholeErr, piecesErr)
		}
	})
}
