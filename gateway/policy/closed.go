package policy

import (
	"fmt"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Code says why a decision failed closed.
type Code uint8

// The codes.
const (
	ErrorOther       Code = iota
	ErrorUndefined        // the rule gave nothing
	ErrorConflict         // it gave two different things
	ErrorBuiltin          // a builtin function failed
	ErrorTimeout          // it took too long
	ErrorCancelled        // the request went away
	ErrorUndecodable      // it gave something that is no decision
)

var codes = []string{"error", "undefined", "conflict", "builtin", "timeout", "cancelled", "undecodable"}

func (c Code) String() string { return word(codes, c) }

// DecisionError is why a decision failed closed.
type DecisionError struct {
	Point Point
	Code  Code
	Err   error
}

func (e *DecisionError) Error() string {
	return fmt.Sprintf("policy decision %s: %s: %v", e.Point, e.Code, e.Err)
}

// Unwrap returns the cause.
func (e *DecisionError) Unwrap() error { return e.Err }

// ruleClosed is the rule id of every decision that failed closed.
const ruleClosed = "fail_closed"

// The fail-closed decisions, and the same as they stand in the record.

func closedAdmission(reason string) (Admission, any) {
	return Admission{Reason: reason, Rule: ruleClosed},
		map[string]any{"allow": false, "reason": reason, "rule": ruleClosed}
}

func closedFailure(reason string) (Failure, any) {
	return Failure{Class: failure.Unknown, Reason: reason, Rule: ruleClosed},
		map[string]any{"class": failure.Unknown.String(), "reason": reason, "rule": ruleClosed, "health": HealthIgnore.String()}
}

func closedSubstitution(reason string) (Substitution, any) {
	return Substitution{Reason: reason, Rule: ruleClosed, Disclosure: reason},
		map[string]any{"approve": false, "reason": reason, "rule": ruleClosed}
}

// onlyStop is shared by every stop that failed closed: nobody changes it.
var onlyStop = []failure.Action{failure.Stop}

func closedReplay(reason string) (Replay, any) {
	return Replay{Actions: onlyStop, Reason: reason, Rule: ruleClosed},
		map[string]any{"actions": []string{failure.Stop.String()}, "reason": reason, "rule": ruleClosed}
}
