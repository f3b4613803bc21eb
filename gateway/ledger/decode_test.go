package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func FuzzDecode(f *testing.F) {
	for _, r := range goldenRecords() {
		body, _ := (&encoder{}).record(nil, r)
		f.Add(body)
		f.Add(body[:len(body)/2])
	}
	f.Add([]byte{})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, body []byte) {
		word := func(id uint32) (string, error) { return "timeout", nil }
		r, _, err := decodeRecord(body, word, nil)
		_, _ = namesOf(body)
		_ = idOf(body)
		_, _ = decodeFurther(body, word)
		if err != nil {
			return
		}
		// What can be read can be written and read again.
		again, err := (&encoder{}).record(nil, r)
		require.NoError(t, err)
		_, _, err = decodeRecord(again, nil, nil)
		require.NoError(t, err)
		r.AppendJSON(nil, true)
		r.AppendTimeline(nil)
	})
}

func TestPortableBodyKeepsEverything(t *testing.T) {
	for name, want := range goldenRecords() {
		body, err := (&encoder{}).record(nil, want)
		require.NoError(t, err)
		got, n, err := decodeRecord(body, nil, nil)
		require.NoError(t, err)
		require.Equal(t, len(want.Attempts), n)
		require.Equal(t, string(want.AppendJSON(nil, true)), string(got.AppendJSON(nil, true)), name)
		require.Equal(t, want.ID, idOf(body))
		for cut := range body {
			if _, _, err := decodeRecord(body[:cut], nil, nil); err == nil {
				t.Fatalf("%s cut at %d of %d is read as whole", name, cut, len(body))
			}
		}
	}
	newer, err := (&encoder{}).record(nil, goldenRecords()["full"])
	require.NoError(t, err)
	newer[0] = layoutVersion + 1
	_, _, err = decodeRecord(newer, nil, nil)
	require.ErrorContains(t, err, "layout 2")
}

func TestNumbersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Opt[int64]{rapid.Int64().Draw(t, "v"), rapid.Bool().Draw(t, "known")}
		if !want.Known {
			want.Value = 0
		}
		if want.Value == -1<<63 {
			want.Value++ // the one number that its form has no room for
		}
		e := encoder{}
		e.optional(want)
		require.Equal(t, want, (&decoder{b: e.buf}).optional())
		// A float64 holds picodollars exactly up to 2^51 of them.
		usd := rapid.Float64Range(0, 2000).Draw(t, "usd")
		p := picodollars(usd)
		require.Equal(t, p, picodollars(dollars(p)))
	})
	require.Equal(t, "äö", clip("äöü", 5))
	require.Equal(t, time.Time{}, (&decoder{b: []byte{0}}).instant())
}
