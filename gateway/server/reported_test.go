package server

import (
	"regexp"
	"testing"
)

// The failures that users of other gateways reported, as black-box cases: a caller, this
// gateway and scripted providers over real sockets. The numbers are those of the page that
// lists the cases; what a provider does in each is beside package fault's own tests.
//
// Statuses and codes are those of this gateway's contract where a case proposes others: a
// stream that breaks after output is `partial_stream`, spent routes are `routes_exhausted`, a
// clock before output is class `timeout`. The counts of upstream calls, the bytes a caller may
// see and the absence of [DONE] are the cases'.
var reported = map[string]func(*testing.T){
	"T01": cutMidAnswer,
	"T02": cutMidAnswerCloseDelimited,
	"T03": errorFirstUnder200,
	"T04": preambleThenError,
	"T05": bothFailBeforeContent,
	"T06": finishedWithoutDone,
	"T07": lastEventWithoutNewline,
	"T09": unusualFraming,
	"T10": oneBytePerWrite,
	"T11": twoMebibyteEvent,
	"T12": silenceBehindInstant200,
	"T13": silenceAfterContent,
	"T15": callerLeavesStream,
	"T16": callerLeavesJSON,
	"T17": callersErrorIsNotMasked,
	"T18": allRateLimited,
	"T19": attemptsAreAHardCap,
	"T21": emptyCompletion,
	"T22": noAnswerUnder200,
	"T24": credentialsStayApart,
	"T25": oneProbe,
	"T26": callersFaultsOpenNothing,
	"T27": nothingIsSentTwice,
	"T29": usageAskedAndHidden,
	"T30": unknownModelAndFields,
	"T31": reloadAndStopDuringAStream,
}

func TestReported(t *testing.T) {
	t.Parallel()
	for _, id := range sortedKeys(reported) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			reported[id](t)
		})
	}
}

// TestEveryReportedCaseHasATest notices a case that was added to the page.
func TestEveryReportedCaseHasATest(t *testing.T) {
	t.Parallel()
	requireEveryCase(t, "reported.md", regexp.MustCompile(`(?m)^### (T\d+) `), reported)
}

// k0 is the cases' baseline: one group with the channels a and b, in that order, that serve
// the same public model; one attempt a route, three in all, no circuits.
const k0 = `
watch: false
providers:
  a: {adapter: openai, base_url: "{{url A}}/v1"}
  b: {adapter: openai, base_url: "{{url B}}/v1"}
groups:
  - name: chat
    channels:
      - {name: a, provider: a, credential: sk-AAAA-canary-0001, priority: 1, models: {chat: {upstream_model: ma}},
         timeouts: {connect: 1s, first_byte: 2s, first_output: 2s, idle: 2s}}
      - {name: b, provider: b, credential: sk-BBBB-canary-0002, priority: 2, models: {chat: {upstream_model: mb}},
         timeouts: {connect: 1s, first_byte: 2s, first_output: 2s, idle: 2s}}
keys:
  - {name: k, key: "{{key}}", groups: [chat]}
budgets:
  interactive: {deadline: 30s, max_attempts: 3, max_attempts_per_route: 1}
breaker: {consecutive_failures: 0, failure_ratio: 0}
`

const (
	k0Breaker = "breaker: {consecutive_failures: 0, failure_ratio: 0}"
	// A closed circuit gets its traffic back at once: a ramp would share it with b.
	opensAfter3 = "breaker: {consecutive_failures: 3, failure_ratio: 0, open_for: 1s, half_open_probes: 1, ramp: 0s}"

	keyA = "sk-AAAA-canary-0001"
	keyB = "sk-BBBB-canary-0002"

	r0 = `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	r1 = `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`
)

// baseline is a gateway under k0 before the providers of a case.
func baseline(t *testing.T, id string) *stand {
	t.Helper()
	return setUp(t, corpus(t, "reported", id), k0)
}
