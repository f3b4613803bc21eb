package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
)

// Options of a Revision.
type Options struct {
	Timeout   time.Duration // of one evaluation; 0 = 250 ms
	CacheSize int           // decisions per point; 0 = 4096, negative = none are kept
	Grants    []string      // builtin functions that bundles are refused without it, e.g. "time.now_ns"
}

const (
	defaultTimeout   = 250 * time.Millisecond
	defaultCacheSize = 4096
)

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.CacheSize == 0 {
		o.CacheSize = defaultCacheSize
	}
	return o
}

// Revision is one bundle, compiled, checked and ready. Immutable but for its caches, and safe
// for concurrent use. It holds nothing that has to be closed.
type Revision struct {
	id      string
	digest  string
	parts   []Part
	trial   trial
	options Options
	kinds   map[string]replayable

	store storage.Store
	txn   storage.Transaction // one read transaction for its whole life: nothing ever writes

	admission    *decider[AdmissionInput, Admission]
	failure      *decider[FailureInput, Failure]
	substitution *decider[SubstitutionInput, Substitution]
	replay       *decider[ReplayInput, Replay]
	reach        [points]*reach
	mask         mask
}

// Load reads, checks, compiles and probes a bundle: all or nothing. An error is an Errors
// where the bundle itself is at fault. It takes tens of milliseconds of CPU; never on a
// request's path.
func Load(ctx context.Context, src Source, opts Options) (*Revision, error) {
	return LoadAll(ctx, []Source{src}, opts)
}

// LoadAll does so with several bundles, of which each owns the roots of its manifest. What
// none of them owns comes from the default bundle.
func LoadAll(ctx context.Context, sources []Source, opts Options) (*Revision, error) {
	bundles := make([]*Bundle, len(sources))
	for i, src := range sources {
		var err error
		if bundles[i], err = Read(ctx, src); err != nil {
			return nil, err
		}
	}
	return Build(ctx, bundles, opts)
}

// Build checks, compiles and probes bundles that were read. It has no other input and no
// effect. Where it refuses them it takes its time to find everything that is wrong.
func Build(ctx context.Context, bundles []*Bundle, opts Options) (*Revision, error) {
	r, err := build(ctx, bundles, opts)
	if found := Errors(nil); errors.As(err, &found) && ctx.Err() == nil {
		return nil, everyFault(ctx, bundles, opts, found)
	}
	return r, err
}

// build is Build up to the first kind of fault.
func build(ctx context.Context, bundles []*Bundle, opts Options) (*Revision, error) {
	opts = opts.withDefaults()
	c, err := compile(ctx, bundles, opts.Grants)
	if err != nil {
		return nil, err
	}
	r := &Revision{
		options: opts,
		trial:   trial{failing: make(chan struct{})},
		kinds:   kindsOf(c.data.root),
		store:   c.store,
		reach:   c.reach,
	}
	r.identify(c.parts)
	if r.txn, err = c.store.NewTransaction(ctx); err != nil {
		return nil, err
	}
	prepare := func(p Point) (rego.PreparedEvalQuery, error) {
		compiling.Lock() // others may be preparing on the same compiler
		defer compiling.Unlock()
		return rego.New(
			rego.Compiler(c.compiler),
			rego.Store(c.store),
			rego.Transaction(r.txn),
			rego.Query(p.query()),
			rego.StrictBuiltinErrors(true),
			rego.Metrics(metrics.NoOp()),
		).PrepareForEval(ctx)
	}
	var queries [points]rego.PreparedEvalQuery
	for p := range points {
		if queries[p], err = prepare(p); err != nil {
			return nil, fmt.Errorf("prepare %s: %w", p.query(), err)
		}
	}
	if err := errors.Join(
		newDecider(r, PointAdmission, queries[:], decodeAdmission, closedAdmission, &r.admission),
		newDecider(r, PointFailure, queries[:], decodeFailure, closedFailure, &r.failure),
		newDecider(r, PointSubstitution, queries[:], decodeSubstitution, closedSubstitution, &r.substitution),
		newDecider(r, PointReplay, queries[:], decodeReplay, closedReplay, &r.replay),
	); err != nil {
		return nil, err
	}
	if err := r.probe(ctx, c); err != nil {
		return nil, err
	}
	if r.mask, err = maskOf(ctx, r, c); err != nil {
		return nil, err
	}
	return r, nil
}

// ID identifies the content of all bundles: their IDs, with commas between. Equal content has
// equal IDs.
func (r *Revision) ID() string { return r.id }

// Parts returns the bundles that the revision is made of, in the order given; the default
// bundle, where others leave something to it, comes last.
func (r *Revision) Parts() []Part { return slices.Clone(r.parts) }

func (r *Revision) identify(parts []*share) {
	ids, sum := make([]string, len(parts)), sha256.New()
	r.parts = make([]Part, len(parts))
	for i, p := range parts {
		ids[i] = p.bundle.ID()
		_, _ = fmt.Fprintf(sum, "%s %s\n", p.bundle.source.name, p.bundle.digest)
		r.parts[i] = Part{Bundle: p.bundle, Roots: p.roots}
	}
	r.id, r.digest = strings.Join(ids, ","), hex.EncodeToString(sum.Sum(nil))
}

// Kind reports whether requests of that kind are replayable (data.interlock.kinds), unless
// they may have side effects. A kind the bundle does not know is not.
func (r *Revision) Kind(name string) bool { return r.kinds[name] == always }

// DeclaredKind reports whether requests of that kind are replayable where the caller itself
// declares that they have no side effects. It holds for every kind that Kind holds for.
func (r *Revision) DeclaredKind(name string) bool { return r.kinds[name] >= declared }

// Memoised reports whether the point's decisions are kept: its rules call nothing that may
// give another answer for the same input, and read no free numbers.
func (r *Revision) Memoised(p Point) bool {
	return r.options.CacheSize > 0 && r.reach[p].steady && !r.reach[p].detail()
}
