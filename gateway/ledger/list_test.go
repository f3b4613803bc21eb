package ledger

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Pages put together are the filtered list, in order, whatever comes in between; and the
// filter selects what its definition says.
func TestPagesAreTheList(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		sub := fmt.Sprintf("%s/%d", dir, n)
		require.NoError(t, os.Mkdir(sub, 0o750))
		f := start(t, sub, Options{})
		defer f.stop()
		begin := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
		want := map[string]*Record{}
		add := func(at time.Time, i int) string {
			r := f.open(at, func(r *Record) { vary(rt, r, i) })
			if rapid.IntRange(0, 3).Draw(rt, "more") == 0 {
				f.fallBack(r, rapid.SampledFrom(failure.Classes()).Draw(rt, "class"))
			}
			fillAnswer(r)
			r.AnsweredModel = rapid.SampledFrom([]string{"a", "b", ""}).Draw(rt, "answered")
			r.Terminal = rapid.SampledFrom([]failure.Terminal{failure.Success, failure.Exhausted, failure.PolicyStop, failure.Running}).Draw(rt, "terminal")
			id := r.ID
			if r.Terminal == failure.Running {
				r.Attempts[len(r.Attempts)-1].End = failure.Open
				require.NoError(rt, f.Flush(t.Context()))
			}
			copied := &Record{}
			copied.copyFrom(r)
			want[id] = copied
			if r.Terminal != failure.Running {
				f.CloseAttempt(r, len(r.Attempts))
				f.CloseRequest(r)
			} else {
				copied.AnsweredModel = "" // the row says what was known when it was opened
				copied.Attempts[len(copied.Attempts)-1] = Attempt{
					Group: copied.Attempts[len(copied.Attempts)-1].Group, Channel: copied.Attempts[len(copied.Attempts)-1].Channel,
				}
			}
			return id
		}
		size := rapid.IntRange(0, 30).Draw(rt, "size")
		for i := range size {
			add(begin.Add(time.Duration(rapid.IntRange(0, 5).Draw(rt, "at"))*time.Millisecond+time.Duration(i)*time.Microsecond), i)
		}
		base, err := f.Reader().List(t.Context(), Filter{Limit: maxLimit})
		require.NoError(rt, err)
		require.Len(rt, base.Requests, size)
		require.True(rt, slices.IsSortedFunc(base.Requests, func(a, b *Record) int {
			return b.ReceivedAt.Truncate(time.Millisecond).Compare(a.ReceivedAt.Truncate(time.Millisecond))
		}), "newest first")

		filter := drawFilter(rt, begin)
		var expected, got []string
		for _, r := range base.Requests {
			if selects(filter, want[r.ID]) {
				expected = append(expected, r.ID)
			}
		}
		filter.Limit = rapid.IntRange(1, 7).Draw(rt, "limit")
		for i := 0; ; i++ {
			p, err := f.Reader().List(t.Context(), filter)
			require.NoError(rt, err)
			require.LessOrEqual(rt, len(p.Requests), filter.Limit)
			for _, r := range p.Requests {
				got = append(got, r.ID)
			}
			if p.Next == "" {
				break
			}
			filter.Cursor = p.Next
			add(begin.Add(time.Hour), 1000+i) // received later: on none of the pages
		}
		require.Equal(rt, expected, got)
		// What still runs is closed as far as this process is concerned.
	})
}

func vary(rt *rapid.T, r *Record, i int) {
	r.Key = rapid.SampledFrom([]string{"k1", "k2"}).Draw(rt, "key")
	r.RequestedModel = rapid.SampledFrom([]string{"a", "b", fmt.Sprint("unknown-", i%4)}).Draw(rt, "model")
	r.Alias = rapid.SampledFrom([]string{"", "alias"}).Draw(rt, "alias")
	r.UserAction = rapid.SampledFrom([]string{r.ID, "", "u1", "u2"}).Draw(rt, "action")
	a := r.Attempt(1)
	a.Group = rapid.SampledFrom([]string{"primary", "backup"}).Draw(rt, "group")
	a.Channel = rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "channel")
	if rapid.IntRange(0, 4).Draw(rt, "elsewhere") == 0 {
		r.ID = fmt.Sprint("made-elsewhere-", i)
	}
}

func drawFilter(rt *rapid.T, begin time.Time) (f Filter) {
	maybe := func(name string, values ...string) string {
		return rapid.SampledFrom(append(values, "", "")).Draw(rt, name)
	}
	f.Key = maybe("f.key", "k1", "k2", "never")
	f.Model = maybe("f.model", "a", "b", "unknown-1", "never")
	f.Group = maybe("f.group", "primary", "backup", "never")
	f.Channel = maybe("f.channel", "one", "two", "other-eu", "backup/other-eu", "primary/one")
	f.UserAction = maybe("f.action", "u1", "u2", "never", "made-elsewhere-3")
	f.Alias = maybe("f.alias", "alias", "never")
	if rapid.Bool().Draw(rt, "f.terminal?") {
		f.Terminal = Some(rapid.SampledFrom([]failure.Terminal{failure.Running, failure.Success, failure.Exhausted}).Draw(rt, "f.terminal"))
	}
	if rapid.Bool().Draw(rt, "f.class?") {
		f.Class = Some(rapid.SampledFrom([]failure.Class{failure.Timeout, failure.ServerError, failure.None}).Draw(rt, "f.class"))
	}
	if rapid.Bool().Draw(rt, "f.since?") {
		f.Since = begin.Add(time.Duration(rapid.IntRange(0, 6000).Draw(rt, "f.since")) * time.Microsecond)
	}
	if rapid.Bool().Draw(rt, "f.until?") {
		f.Until = begin.Add(time.Duration(rapid.IntRange(0, 6000).Draw(rt, "f.until")) * time.Microsecond)
	}
	return f
}

// selects is the definition, from the facts as they were recorded.
func selects(f Filter, r *Record) bool {
	class, group, channel := !f.Class.Known, f.Group == "" && f.Channel == "", true
	for _, a := range r.Attempts {
		class = class || a.Class == f.Class.Value
		group = group || (f.Group == "" || a.Group == f.Group) && (f.Channel == "" || f.Channel == a.Channel || f.Channel == a.Group+"/"+a.Channel)
	}
	return class && group && channel &&
		(f.Key == "" || f.Key == r.Key) && (f.Alias == "" || f.Alias == r.Alias) &&
		(f.Model == "" || f.Model == r.RequestedModel || f.Model == r.AnsweredModel) &&
		(f.UserAction == "" || f.UserAction == r.UserAction) &&
		(!f.Terminal.Known || f.Terminal.Value == r.Terminal) &&
		(f.Since.IsZero() || !r.ReceivedAt.Before(f.Since)) && (f.Until.IsZero() || r.ReceivedAt.Before(f.Until))
}

func TestListOfManyFindsTheFew(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	now := time.Now()
	var few []string
	for i := range 2000 {
		r := f.open(now.Add(time.Duration(i) * time.Millisecond))
		if i%500 == 7 {
			f.fallBack(r, failure.EmptyCompletion)
			few = append(few, r.ID)
		}
		f.succeed(r)
	}
	slices.Reverse(few)
	for _, filter := range []Filter{{Class: Some(failure.EmptyCompletion)}, {Channel: "other-eu"}, {Group: "backup"}} {
		p, err := f.Reader().List(t.Context(), filter)
		require.NoError(t, err)
		require.Empty(t, p.Next)
		var got []string
		for _, r := range p.Requests {
			got = append(got, r.ID)
		}
		require.Equal(t, few, got)
	}
	_, err := f.Reader().List(t.Context(), Filter{Limit: 1001})
	require.Error(t, err)
	_, err = f.Reader().List(t.Context(), Filter{Cursor: "nonsense"})
	require.Error(t, err)
}

func TestWordsOfCallersAreNotLearned(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	f.succeed(f.open(time.Now()))
	before := f.count("words")
	for i := range 50 {
		r := f.open(time.Now(), func(r *Record) {
			r.RequestedModel, r.CorrelationID, r.UserAction = fmt.Sprint("invented-", i), fmt.Sprint("c", i), fmt.Sprint("u", i)
			r.Attempts[0].Model, r.Attempts[0].UpstreamModel = r.RequestedModel, r.RequestedModel
		})
		id := r.ID
		fail(r.Attempt(1), failure.ModelUnavailable)
		f.CloseAttempt(r, 1)
		r.Terminal, r.AnsweredModel = failure.Exhausted, ""
		f.CloseRequest(r)
		require.Equal(t, fmt.Sprint("invented-", i), f.show(id).Attempts[0].UpstreamModel)
	}
	require.Equal(t, before, f.count("words"))
	p, err := f.Reader().List(t.Context(), Filter{Model: "invented-7"})
	require.NoError(t, err)
	require.Len(t, p.Requests, 1)
}
