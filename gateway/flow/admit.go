package flow

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/recovery"
)

// admit takes the request from its bytes to a plan and the first step. An error is a denial
// by the gateway itself: no attempt is made.
func (x *Exchange) admit() *openai.Error {
	if e := readWishes(x.head, &x.wishes); e != nil {
		return e
	}
	x.keepWishes()
	if e := openai.ScanRequest(x.facts.Endpoint, x.in, &x.facts); e != nil {
		return e
	}
	x.rec.Stream = x.facts.Stream
	if e := x.resolve(); e != nil {
		return e
	}
	budget, e := x.chooseBudget()
	if e != nil {
		return e
	}
	if e := x.admitKey(); e != nil {
		return e
	}
	if e := x.guardRequest(); e != nil {
		return e
	}
	x.describe()
	a, e := x.askAdmission(budget)
	if e != nil {
		return e
	}
	x.limit(budget, &a)
	return x.plan(&a)
}

// keepWishes records what the caller said about itself.
func (x *Exchange) keepWishes() {
	w := &x.wishes
	// Not Record.Keep: these appear in headers and log lines after the record is handed over.
	x.correlation = string(w.correlation)
	x.rec.CorrelationID = x.correlation
	x.rec.UserAction = string(w.userAction)
	if w.clientRetry >= 0 {
		x.rec.ClientRetry = ledger.Some(int64(w.clientRetry))
	}
	x.action = actionKey{key: x.caller.key.Name, action: x.rec.UserAction}
	x.counted = x.rec.UserAction != ""
}

// resolve finds the alias, or the model itself, and checks that this key may ask for it.
func (x *Exchange) resolve() *openai.Error {
	name := bytesAsString(x.facts.Model)
	if !x.caller.key.MayCall(name) {
		return x.notFound()
	}
	if a := x.gen.aliases[name]; a != nil {
		x.alias, x.model, x.public = a, a.contract.Model, a.contract.Alias
		x.rec.Alias = a.contract.Alias
		x.rec.ContractVersion = ledger.Some(int64(a.contract.Version))
		x.rec.RequestedModel = a.contract.Model
		return nil
	}
	if x.model = x.gen.names[name]; x.model == "" {
		x.model = string(x.facts.Model) // a name that a channel with models: "*" may pass on
	}
	x.public, x.rec.RequestedModel = x.model, x.model
	return nil
}

func (x *Exchange) notFound() *openai.Error {
	e := openai.NewError(openai.ModelNotFound, "The model does not exist, or this key may not use it.")
	e.Param = "model"
	return e
}

// chooseBudget picks the budget: the one the caller names, else the alias's, else the key's.
func (x *Exchange) chooseBudget() (*Budget, *openai.Error) {
	name := x.caller.key.Budget
	if x.alias != nil && x.alias.contract.Budget != "" {
		name = x.alias.contract.Budget
	}
	if len(x.wishes.budget) > 0 {
		name = bytesAsString(x.wishes.budget)
		if x.gen.budgets[name] == nil || !x.caller.key.MayName(name) {
			e := openai.NewError(openai.PermissionDenied, "This key may not use the budget that interlock-budget names.")
			e.Param = "interlock-budget"
			return nil, e
		}
	}
	return x.gen.budgets[name], nil
}

// admitKey takes one of the key's requests per minute.
func (x *Exchange) admitKey() *openai.Error {
	now := x.g.now()
	ok, next := x.caller.rpm.Take(now)
	if ok {
		return nil
	}
	return after(openai.NewError(openai.RateLimitExceeded, "This key has reached its requests per minute."),
		min(next.Sub(now), time.Minute))
}

// describe puts the request's facts into the words of policies.
func (x *Exchange) describe() {
	f := &x.facts
	x.kind = policy.KindOf(x.rec.Endpoint, f.Background, f.Conversation, f.HostedTools)
	effects, declared := x.wishes.sideEffects, x.wishes.sideEffects == policy.NoSideEffects
	if effects == policy.UnknownEffects {
		effects = policy.PossibleSideEffects
		if x.policy.Kind(x.kind) {
			effects = policy.NoSideEffects
		}
	}
	x.idempotent = effects == policy.NoSideEffects &&
		(x.policy.Kind(x.kind) || declared && x.policy.DeclaredKind(x.kind))
	x.buffered = x.wishes.buffered || x.alias != nil && x.alias.buffered
	x.asked = policy.Request{
		Endpoint: x.rec.Endpoint, Kind: x.kind, Model: x.public, Alias: x.rec.Alias,
		Modalities: modalities[f.Modalities&allModalities], StructuredOutput: structured(f.Structure),
		SideEffects: effects, Stream: f.Stream, Tools: f.Tools, HostedTools: f.HostedTools,
		ParallelTools: f.ParallelToolCalls, Idempotent: x.idempotent,
	}
}

func structured(s openai.Structure) policy.StructuredOutput {
	switch s {
	case openai.JSONObject:
		return policy.JSONObject
	case openai.JSONSchema:
		return policy.JSONSchema
	default:
		return policy.FreeText
	}
}

const allModalities = openai.Text | openai.Image | openai.Audio | openai.File

// modalities holds the list for every set of modalities: made once, shared by all requests.
var modalities = func() (all [allModalities + 1]policy.List) {
	for set := range all {
		var words []string
		for _, m := range [...]struct {
			bit  openai.Modality
			word string
		}{{openai.Text, "text"}, {openai.Image, "image"}, {openai.Audio, "audio"}, {openai.File, "file"}} {
			if openai.Modality(set)&m.bit != 0 {
				words = append(words, m.word)
			}
		}
		all[set] = policy.ListOf(words...)
	}
	return all
}()

// askAdmission asks the policy whether the request may begin.
func (x *Exchange) askAdmission(budget *Budget) (policy.Admission, *openai.Error) {
	in := policy.AdmissionInput{
		Key: policy.Key{Name: x.caller.key.Name, Labels: x.caller.labels}, Request: x.asked,
		Caller: policy.Caller{Substitution: x.wishes.substitution},
		Detail: x.detail(x.g.now(), nil),
	}
	if len(x.wishes.budget) > 0 {
		in.Caller.Budget = budget.name
	}
	a, meta := x.policy.Admission(x.g.ctx, &in)
	x.rec.PolicyRevision = x.policy.ID()
	verdict := "deny"
	if a.Allow {
		verdict = "allow"
	}
	x.note(policy.PointAdmission, 0, verdict, a.Reason, &meta)
	if x.beside != nil {
		x.gen.trial.Admission(x.beside, x.asker(), &in, a, &meta)
	}
	switch {
	case meta.Err != nil:
		return a, openai.NewError(openai.PolicyUnavailable, "The policy cannot decide about this request now.")
	case !a.Allow:
		msg := a.Message
		if msg == "" {
			msg = "The policy does not allow this request."
		}
		return a, openai.NewError(openai.PolicyDenied, msg)
	default:
		return a, nil
	}
}

// limit turns the budget, as admission and the caller leave it, into what the machine holds.
func (x *Exchange) limit(b *Budget, a *policy.Admission) {
	if o := x.gen.budgets[a.Budget]; o != nil {
		b = o
	}
	x.budget = b
	deadline := b.deadline
	if p := x.wishes.patience; p > 0 && p < deadline {
		deadline, x.callersClock = p, true
	}
	x.rec.Deadline = ledger.Some(deadline)
	l := recovery.Limits{
		MaxAttempts: b.maxAttempts, MaxPerRoute: b.maxPerRoute, MaxPerGroup: b.maxPerGroup,
		Deadline: x.rec.ReceivedAt.Add(deadline), Reserve: b.reserve.Of(deadline),
		MinUseful: b.minUseful, Backoff: b.backoff,
	}
	x.substitution = x.wishes.substitution
	if a.Substitution == policy.Deny {
		x.substitution = policy.Deny
	}
	l.SubstitutionDenied = x.substitution == policy.Deny || x.alias == nil || !x.alias.contract.SubstitutionAllowed ||
		x.facts.PreviousResponse || x.facts.Conversation
	if x.counted {
		spent := x.g.actions.spent(x.action, x.rec.ReceivedAt)
		l.UserAction.Counted, l.UserAction.Left = true, max(0, b.maxPerAction-spent)
		x.actionSpent = spent >= b.maxPerAction
	} else if n := x.wishes.clientRetry; n > 0 {
		// An SDK that asks again by itself: its requests are one action, of which this is n.
		l.MaxAttempts = max(1, l.MaxAttempts-n)
	}
	x.m.Reset(l)
	if hb := x.gen.stream.heartbeat; x.facts.Stream && hb > 0 {
		x.heartbeat = x.rec.ReceivedAt.Add(hb)
	}
}
