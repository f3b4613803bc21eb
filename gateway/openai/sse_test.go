package openai

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// block is an Event that outlives its Splitter.
type block struct {
	Raw, Name, Data string
	HasData, Plain  bool
}

// split feeds a stream in pieces that end at the cuts and flushes at the end.
func split(t require.TestingT, stream []byte, cuts ...int) []block {
	var s Splitter
	var blocks []block
	var ev Event
	keep := func() {
		blocks = append(blocks, block{string(ev.Raw), string(ev.Name), string(ev.Data), ev.Data != nil, ev.Plain})
		if ev.Plain && ev.Data != nil {
			require.Equal(t, string(ev.Data), string(ev.Raw[ev.dataAt:ev.dataAt+len(ev.Data)]))
		}
	}
	from := 0
	for _, to := range append(cuts, len(stream)) {
		piece := bytes.Clone(stream[from:to])
		from = to
		s.Feed(piece)
		for {
			ok, err := s.Next(&ev)
			require.NoError(t, err)
			if !ok {
				break
			}
			keep()
		}
		for i := range piece { // the splitter must not need what it was fed any more
			piece[i] = '!'
		}
	}
	ok, err := s.Flush(&ev)
	require.NoError(t, err)
	if ok {
		keep()
	}
	ok, err = s.Flush(&ev)
	require.NoError(t, err)
	require.False(t, ok)
	return blocks
}

func TestSplitter(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []block
	}{
		"plain": {
			"data: {\"a\":1}\n\ndata: [DONE]\n\n",
			[]block{{"data: {\"a\":1}\n\n", "", `{"a":1}`, true, true}, {"data: [DONE]\n\n", "", "[DONE]", true, true}},
		},
		"named, no space after the colon": {
			"event:error\ndata:{}\nid: 7\n\n",
			[]block{{"event:error\ndata:{}\nid: 7\n\n", "error", "{}", true, true}},
		},
		"carriage returns and line feeds": {
			"data: a\r\n\r\ndata: b\r\n\r\n",
			[]block{{"data: a\r\n\r", "", "a", true, false}, {"data: b\r\n\r", "", "b", true, false}},
		},
		"carriage returns alone": {
			"data: a\r\rdata: b\rdata: c\r\r",
			[]block{{"data: a\r\r", "", "a", true, false}, {"data: b\rdata: c\r\r", "", "b\nc", true, false}},
		},
		"several data lines": {
			"data: {\ndata: \"a\":1}\n\n",
			[]block{{"data: {\ndata: \"a\":1}\n\n", "", "{\n\"a\":1}", true, false}},
		},
		"comments": {
			": OPENROUTER PROCESSING\n\n: ping\ndata: x\n\n:\n\n",
			[]block{{": OPENROUTER PROCESSING\n\n", "", "", false, true}, {": ping\ndata: x\n\n", "", "x", true, true}, {":\n\n", "", "", false, true}},
		},
		"byte order mark": {
			"\xef\xbb\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n",
			[]block{{"\xef\xbb\xbfdata: x\n\n", "", "x", true, false}, {"\xef\xbb\xbfdata: y\n\n", "", "", false, true}},
		},
		"no blank line at the end": {
			"data: x\n\ndata: y\n",
			[]block{{"data: x\n\n", "", "x", true, true}, {"data: y\n", "", "y", true, false}},
		},
		"no line end at the end": {
			"data: x",
			[]block{{"data: x", "", "x", true, false}},
		},
		"blank lines between events": {
			"\n\n\r\n\ndata: x\n\n\n\ndata: y\n\n",
			[]block{{"data: x\n\n", "", "x", true, true}, {"data: y\n\n", "", "y", true, true}},
		},
		"empty data, and a field without a colon": {
			"data\n\ndata:\n\nother\n\n",
			[]block{{"data\n\n", "", "", true, true}, {"data:\n\n", "", "", true, true}, {"other\n\n", "", "", false, true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, split(t, []byte(c.stream)))
			for cut := range len(c.stream) + 1 {
				require.Equal(t, c.want, split(t, []byte(c.stream), cut), "cut at %d", cut)
			}
			every := make([]int, len(c.stream))
			for i := range every {
				every[i] = i
			}
			require.Equal(t, c.want, split(t, []byte(c.stream), every...))
		})
	}
}

// drawStream makes bytes that look like a stream of events, and cuts.
func drawStream(t *rapid.T) (stream []byte, cuts []int) {
	parts := rapid.SliceOf(rapid.SampledFrom([]string{
		"data: ", "data:", "data", "event: e", ": c", "\n", "\n", "\n\n", "\r\n", "\r", "\r\n\r\n", "{\"a\":1}", "x", "é", "\xef\xbb\xbf", "id: 1",
	})).Draw(t, "parts")
	stream = []byte(strings.Join(parts, ""))
	return stream, drawCuts(t, len(stream))
}

func drawCuts(t *rapid.T, n int) []int {
	cuts := rapid.SliceOfN(rapid.IntRange(0, n), 0, 20).Draw(t, "cuts")
	return sorted(cuts)
}

func TestSplittingAnywhereIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream, cuts := drawStream(t)
		require.Equal(t, split(t, stream), split(t, stream, cuts...))
	})
}

// reference is the algorithm of the specification, line by line.
func reference(stream string) []block {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	var out []block
	var cur block
	for _, line := range strings.Split(stream, "\n") {
		if line == "" {
			if cur.HasData {
				out = append(out, cur)
			}
			cur = block{}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			cur.Name = value
		case "data":
			if cur.HasData {
				cur.Data += "\n"
			}
			cur.Data += value
			cur.HasData = true
		}
	}
	if cur.HasData {
		out = append(out, cur)
	}
	return out
}

func checkSplitter(t require.TestingT, stream []byte, cuts ...int) {
	var got []block
	for _, b := range split(t, stream, cuts...) {
		if b.HasData {
			got = append(got, block{Name: b.Name, Data: b.Data, HasData: true})
		}
	}
	require.Equal(t, reference(string(stream)), got, "%q", stream)
}

func TestSplitterFollowsTheSpecification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream, cuts := drawStream(t)
		checkSplitter(t, stream, cuts...)
	})
}

func FuzzSplitter(f *testing.F) {
	for _, s := range []string{"data: {\"a\":1}\n\ndata: [DONE]\n\n", "event: x\r\ndata: 1\r\n\r\n", "\xef\xbb\xbfdata:a\rdata:b\r\r:c\n\ndata"} {
		f.Add([]byte(s), uint(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, step uint) {
		var cuts []int
		if step > 0 {
			for at := step; at < uint(len(stream)); at += step {
				cuts = append(cuts, int(at))
			}
		}
		checkSplitter(t, stream, cuts...)
	})
}

func TestSplitterLimit(t *testing.T) {
	s := Splitter{Max: 20}
	var ev Event
	s.Feed([]byte("data: 0123456789\n\n"))
	ok, err := s.Next(&ev)
	require.NoError(t, err)
	require.True(t, ok)
	ok, _ = s.Next(&ev)
	require.False(t, ok)
	s.Feed([]byte("data: 0123"))
	ok, err = s.Next(&ev)
	require.NoError(t, err)
	require.False(t, ok)
	s.Feed([]byte("45678901234"))
	_, err = s.Next(&ev)
	require.ErrorIs(t, err, ErrEventTooLarge)
	_, err = s.Next(&ev)
	require.ErrorIs(t, err, ErrEventTooLarge)
	s.Reset()
	s.Feed([]byte("data: x\n\n"))
	ok, err = s.Next(&ev)
	require.NoError(t, err)
	require.True(t, ok)

	// A large event passes the default limit, in pieces, and its buffer is let go.
	s = Splitter{}
	big := append(bytes.Repeat([]byte("x"), 2<<20), "\n\n"...)
	s.Feed([]byte("data: "))
	for len(big) > 0 {
		_, err = s.Next(&ev)
		require.NoError(t, err)
		n := min(4096, len(big))
		s.Feed(big[:n])
		big = big[n:]
	}
	ok, err = s.Next(&ev)
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, ev.Data, 2<<20)
	ok, _ = s.Next(&ev)
	require.False(t, ok)
	require.LessOrEqual(t, cap(s.buf), keepBuffer)
}

func TestAppendEvent(t *testing.T) {
	require.Equal(t, "data: {}\n\n", string(AppendEvent(nil, "", []byte("{}"))))
	require.Equal(t, "event: error\ndata: { \"a\":  1}\n\n", string(AppendEvent(nil, "error", []byte("{\n\"a\":\r\n1}"))))
}

func TestSplittingAllocatesNothing(t *testing.T) {
	stream := []byte(strings.Repeat("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n", 20))
	var s Splitter
	var ev Event
	run := func() {
		s.Reset()
		for from := 0; from < len(stream); from += 100 {
			s.Feed(stream[from:min(from+100, len(stream))])
			for {
				if ok, _ := s.Next(&ev); !ok {
					break
				}
			}
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

func BenchmarkSplitter(b *testing.B) {
	stream := []byte(strings.Repeat("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n", 200))
	var s Splitter
	var ev Event
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		s.Feed(stream)
		for {
			if ok, _ := s.Next(&ev); !ok {
				break
			}
		}
	}
}
