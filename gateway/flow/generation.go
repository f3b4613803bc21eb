package flow

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/key"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/decisionlog"
	"github.com/interlock-gateway/interlock/gateway/policy/trial"
	"github.com/interlock-gateway/interlock/gateway/recovery"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/sigv4"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// Gateway is the data plane: what outlives generations, and the generation that new requests
// begin on. Safe for concurrent use.
type Gateway struct {
	ledger    *ledger.Ledger
	metrics   *telemetry.Metrics
	log       *telemetry.Log
	validator *openai.Validator
	actions   *userActions
	running   registry
	current   atomic.Pointer[Generation]
	now       func() time.Time
	ctx       context.Context // of policy evaluations: ends with the gateway

	mu      sync.Mutex
	windows map[string]*limit.Window // requests per minute by key name
}

// Options are what a Gateway needs; all are required.
type Options struct {
	Ledger  *ledger.Ledger
	Metrics *telemetry.Metrics
	Log     *telemetry.Log
	Now     func() time.Time
	Context context.Context
}

// New makes a data plane without a generation: Use gives it one before the first request.
func New(o Options) *Gateway {
	return &Gateway{
		ledger: o.Ledger, metrics: o.Metrics, log: o.Log, now: o.Now, ctx: o.Context,
		validator: openai.NewValidator(256), actions: newUserActions(), windows: map[string]*limit.Window{},
	}
}

// Use makes g the generation that new requests begin on. Requests that run stay on theirs.
func (gw *Gateway) Use(g *Generation) { gw.current.Store(g) }

// Generation returns the generation that new requests begin on.
func (gw *Gateway) Generation() *Generation { return gw.current.Load() }

// Running counts the requests that have begun and are not closed.
func (gw *Gateway) Running() int { return gw.running.running() }

// RunningBefore reports whether a request of a generation before that one is running.
func (gw *Gateway) RunningBefore(generation uint64) bool { return gw.running.before(generation) }

// DrainNow ends every request that is still running, streams with an error event.
func (gw *Gateway) DrainNow() { gw.running.end() }

// Generation is one immutable snapshot of configuration and policy, with everything resolved
// that a request would otherwise have to look up.
type Generation struct {
	Number uint64

	Config  *config.Config
	Catalog *catalog.Catalog
	Policy  *policy.Revision
	Table   *route.Table
	Keys    *key.Table

	callers map[*key.Key]*Caller
	links   map[*route.Channel]*Link
	budgets map[string]*Budget
	aliases map[string]*Alias
	names   map[string]string // every served and catalogued model's name, by itself
	offers  map[string]*offer // catalogued and served models; others share unknownOffer
	stream  streaming
	// trial compares a candidate with Policy, and says for which keys it decides; nil = there is none.
	trial       *trial.Trial
	decisionLog *decisionlog.Log // gets every policy decision, beside the ledger; nil = none
}

type streaming struct {
	heartbeat time.Duration
	drain     bool
}

// Caller is an authenticated caller's key in one generation.
type Caller struct {
	gen    *Generation
	key    *key.Key
	groups []*route.Group
	labels policy.Object
	rpm    *limit.Window
	guards []guard
	canary bool // the candidate decides
	// labelsJSON is for guards.
	labelsJSON []byte
}

// Link is what an attempt needs of a channel beyond what route knows.
type Link struct {
	adapter   adapter.Adapter
	pool      *upstream.Pool
	headers   []upstream.Field // the credential and the provider's own headers
	secrets   []string         // never to show in a message
	pass      []string         // caller's headers that are let through, lower-case
	askUsage  bool
	group     int    // the group's index
	region    string //
	label     string // group/channel
	asPolicy  policy.Channel
	amplifies int           // calls that the provider's own gateway may make of one
	signer    *sigv4.Signer // nil = the credential is among headers, or in the query
	carries   *offer        // what the adapter can translate; nil = everything
	plugin    bool          // the adapter is a plugin's
}

// sets says whether the operator's own headers have one of that name.
func (l *Link) sets(name string) bool {
	for i := range l.headers {
		if strings.EqualFold(l.headers[i].Name, name) {
			return true
		}
	}
	return false
}

// Budget is a budget as the machine needs it.
type Budget struct {
	name                      string
	deadline, longest         time.Duration
	maxAttempts, maxPerAction int
	maxPerRoute, maxPerGroup  int
	reserve                   config.Share
	minUseful                 time.Duration
	backoff                   recovery.Backoff
}
