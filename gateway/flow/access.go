package flow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// Authenticate finds the caller by the key in the request's headers. It is cheap, does not
// depend on how much of a key is right, and runs before the body is read.
func (gw *Gateway) Authenticate(h Head) (*Caller, *openai.Error) {
	g := gw.current.Load()
	k := g.Keys.Find(callerKey(h))
	if k == nil {
		return nil, openai.NewError(openai.InvalidAPIKey, "A valid API key is needed: Authorization: Bearer KEY.")
	}
	return g.callers[k], nil
}

// lookupTime bounds a look into the ledger on a caller's behalf.
const lookupTime = 5 * time.Second

// RequestByID answers GET /interlock/v1/requests/{id}: the caller's own record.
func (gw *Gateway) RequestByID(c *Caller, id string) (*Reply, *openai.Error) {
	ctx, cancel := context.WithTimeout(gw.ctx, lookupTime)
	defer cancel()
	r, err := gw.ledger.Reader().Show(ctx, id)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		gw.log.Warn("a caller's look into the ledger failed", "error", err.Error())
		return nil, openai.NewError(openai.StorageUnavailable, "The ledger cannot be read now.")
	}
	if err != nil || r.Key != c.key.Name {
		return nil, openai.NewError(openai.NotFound, "This key has no request of that ID.")
	}
	return &Reply{Status: 200, ContentType: typeJSON, Body: r.AppendJSON(nil, true)}, nil
}

// Models answers GET /v1/models: what this key may call, aliases included.
func (gw *Gateway) Models(c *Caller) *Reply {
	b := append([]byte(nil), `{"object":"list","data":[`...)
	for i, name := range c.gen.callable(c) {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.gen.appendModel(b, name)
	}
	return &Reply{Status: 200, ContentType: typeJSON, Body: append(b, `]}`...)}
}

// Model answers GET /v1/models/{id}.
func (gw *Gateway) Model(c *Caller, id string) (*Reply, *openai.Error) {
	model := id
	if a := c.gen.aliases[id]; a != nil {
		model = a.contract.Model
	}
	if !c.key.MayCall(id) || !c.serves(model) {
		e := openai.NewError(openai.ModelNotFound, "The model does not exist, or this key may not use it.")
		e.Param = "model"
		return nil, e
	}
	return &Reply{Status: 200, ContentType: typeJSON, Body: c.gen.appendModel(nil, id)}, nil
}

func (c *Caller) serves(model string) bool {
	for _, g := range c.groups {
		if g.Serves(model) {
			return true
		}
	}
	return false
}

// callable lists the names that the caller may use, sorted: aliases, and the models that
// channels of its groups name; of a channel that passes any name on, the catalogue's models
// of the maker it is named after.
func (g *Generation) callable(c *Caller) []string {
	found := map[string]struct{}{}
	put := func(name string) {
		if c.key.MayCall(name) {
			found[name] = struct{}{}
		}
	}
	for _, group := range c.groups {
		for _, name := range group.Models() {
			put(name)
		}
		providers := map[string]struct{}{}
		for _, ch := range group.Channels {
			providers[ch.Provider] = struct{}{}
		}
		for name, o := range g.offers {
			if m := o.model; m != nil && m.Name == m.Base {
				if _, there := providers[m.Maker]; there && group.Serves(name) {
					put(name)
				}
			}
		}
	}
	for name, a := range g.aliases {
		if c.serves(a.contract.Model) {
			put(name)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func (g *Generation) appendModel(b []byte, name string) []byte {
	owner := "interlock"
	if m := g.Catalog.Model(name); m != nil && m.Maker != "" {
		owner = m.Maker
	}
	b = append(b, `{"id":`...)
	b = strconv.AppendQuote(b, name)
	b = append(b, `,"object":"model","created":0,"owned_by":`...)
	b = strconv.AppendQuote(b, owner)
	return append(b, '}')
}
