package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy/trial"
)

// The states of a candidate.
const (
	CandidateNone       = "none"        // none is configured
	CandidateRefused    = "refused"     // it was never fit to be tried
	CandidateShadow     = "shadow"      // it is compared
	CandidateCanary     = "canary"      // it decides for a share of the keys, and is compared
	CandidateInForce    = "in_force"    // it is what is in force: promoted, or the same content
	CandidateRolledBack = "rolled_back" // it is not tried until it has another content
)

// Why a candidate cannot be promoted or rolled back.
var (
	ErrNoCandidate = errors.New("there is no candidate")
	ErrInForce     = errors.New("the candidate is in force already")
)

// Candidate is the policy that is tried beside the one in force.
type Candidate struct {
	State       string
	Path        string
	Mode        string
	Percent     float64
	Revision    string // the latest that was not refused; ""
	LoadedAt    time.Time
	LastError   string // why the latest change was refused; "": it was not
	LastErrorAt time.Time
	Promoted    *Promotion    // nil: none is in force
	Report      *trial.Report // nil: nothing is compared
}

// Promotion is a candidate in force instead of the configured revision.
type Promotion struct {
	Revision string    `json:"revision"`
	Over     string    `json:"over"`
	At       time.Time `json:"at"`
	Who      string    `json:"who"`
	Reason   string    `json:"reason"`
}

type candidateView struct {
	State       string        `json:"state"`
	Path        *string       `json:"path"`
	Mode        string        `json:"mode"`
	Percent     float64       `json:"percent"`
	Revision    *string       `json:"revision"`
	Active      string        `json:"active"` // the revision in force
	LoadedAt    *time.Time    `json:"loaded_at"`
	LastError   *string       `json:"last_error"`
	LastErrorAt *time.Time    `json:"last_error_at"`
	SwitchedOff bool          `json:"switched_off"` // by the switch policy/candidate
	Promoted    *Promotion    `json:"promoted"`
	Comparison  *trial.Report `json:"comparison"`
}

func (s *Server) viewCandidate() candidateView {
	st := s.Candidate()
	view := candidateView{
		State: st.State, Path: textOrNull(st.Path), Mode: st.Mode, Percent: st.Percent, Revision: textOrNull(st.Revision),
		Active: s.Generation().Policy.ID(), LastError: textOrNull(st.LastError), LastErrorAt: timeOrNull(st.LastErrorAt),
		Promoted: st.Promoted, Comparison: st.Report,
		SwitchedOff: s.State.Switches().Set().Off("policy", "candidate", s.Now()) != nil,
	}
	if st.Revision != "" {
		view.LoadedAt = timeOrNull(st.LoadedAt)
	}
	return view
}

func (s *Server) showCandidate(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.viewCandidate())
}

// promote puts the candidate in force: requests that begin after the answer are decided by it.
func (s *Server) promote(w http.ResponseWriter, c *call) error {
	return s.changeCandidate(w, c, "policy/promote", func(ctx context.Context, reason string) error {
		return s.Promote(ctx, c.who, reason)
	})
}

// rollback ends a promotion, or a candidate's trial.
func (s *Server) rollback(w http.ResponseWriter, c *call) error {
	return s.changeCandidate(w, c, "policy/rollback", func(ctx context.Context, _ string) error {
		return s.RollBack(ctx, c.who)
	})
}

// candidateChange is what the record of changes keeps.
type candidateChange struct {
	Active    string  `json:"active"`
	Candidate *string `json:"candidate"`
	State     string  `json:"state"`
}

func (v *candidateView) change() *candidateChange {
	return &candidateChange{Active: v.Active, Candidate: v.Revision, State: v.State}
}

func (s *Server) changeCandidate(w http.ResponseWriter, c *call, what string, change func(context.Context, string) error) error {
	why := struct {
		Reason string `json:"reason"`
	}{}
	if err := c.readOptional(&why); err != nil {
		return err
	}
	if err := reasonable(why.Reason); err != nil {
		return err
	}
	ctx, cancel := c.changing()
	defer cancel()
	before := s.viewCandidate()
	switch err := change(ctx, why.Reason); {
	case errors.Is(err, ErrNoCandidate):
		return missing("there is no candidate for that; policy.candidate.path names one")
	case errors.Is(err, ErrInForce):
		return &refusal{status: http.StatusConflict, code: candidateInForce, message: "the candidate is what is in force already"}
	case err != nil:
		return err
	}
	after := s.viewCandidate()
	if err := s.record(ctx, c, what, before.change(), after.change(), why.Reason); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, after)
}
