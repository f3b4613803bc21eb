package breaker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func place() Place {
	return Place{Group: "g", Channel: "c", Account: "a", Provider: "p", Region: "eu", Model: "m", Identity: "i"}
}

func TestScopesHaveTheirWords(t *testing.T) {
	for s := range scopes {
		got, ok := ParseScope(s.String())
		require.True(t, ok)
		require.Equal(t, s, got)
	}
	_, ok := ParseScope("planet")
	require.False(t, ok)
	require.Equal(t, UsesTools, Tools.Capability())
	require.Equal(t, UsesAudio, Audio.Capability())
	require.Zero(t, Region.Capability())
}

func TestWiderFindsWhatConcerns(t *testing.T) {
	r := NewRegistry(defaults(), nil)
	p := place()
	for s := range scopes {
		k, ok := p.Key(s)
		require.True(t, ok)
		require.Same(t, r.Circuit(k), r.Circuit(k))
	}
	list, version := r.Wider(&p)
	require.Len(t, list, MaxConcerns-1)
	require.Equal(t, r.Version(), version)

	concerned := func(change func(*Place)) (scopes []Scope) {
		other := place()
		change(&other)
		list, _ := r.Wider(&other)
		for _, c := range list {
			scopes = append(scopes, c.Key().Scope)
		}
		return scopes
	}
	require.Equal(t, []Scope{Channel, Account, Provider, Region}, concerned(func(p *Place) { p.Model = "n" }))
	require.Equal(t, []Scope{Account, AccountModel, Provider, Region}, concerned(func(p *Place) { p.Channel = "d" }))
	require.Equal(t, []Scope{Account, AccountModel, Provider, Region}, concerned(func(p *Place) { p.Identity = "j" }))
	require.Equal(t, []Scope{Provider, Region}, concerned(func(p *Place) { p.Channel, p.Account = "d", "b" }))
	require.Equal(t, []Scope{Provider}, concerned(func(p *Place) { p.Channel, p.Account, p.Region = "d", "b", "us" }))
	require.Empty(t, concerned(func(p *Place) { p.Channel, p.Account, p.Provider = "d", "b", "q" }))
}

func TestCapabilityConcernsOnlyWhoUsesIt(t *testing.T) {
	all, tools := Concern{}, Concern{Uses: UsesTools}
	require.True(t, all.Concerns(0))
	require.False(t, tools.Concerns(UsesStreaming|UsesVision))
	require.True(t, tools.Concerns(UsesStreaming|UsesTools))
}

func TestForgetAndKeep(t *testing.T) {
	r := NewRegistry(defaults(), nil)
	p, q := place(), place()
	q.Model = "n"
	for s := range scopes {
		k, _ := p.Key(s)
		r.Circuit(k)
	}
	k, _ := q.Key(ChannelModel)
	kept := r.Circuit(k)
	before := r.Version()
	r.Forget(&p)
	require.NotEqual(t, before, r.Version())
	list, _ := r.Wider(&p)
	require.Len(t, list, 5)
	require.Same(t, kept, r.Circuit(k))
	r.Keep(func(c *Circuit) bool { return c.Key().Scope == ChannelModel })
	n := 0
	r.Each(func(c *Circuit) { require.Same(t, kept, c); n++ })
	require.Equal(t, 1, n)
}
