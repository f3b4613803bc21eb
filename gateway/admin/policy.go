package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

func (s *Server) policyStatus(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	st := s.PolicyStatus()
	bundles := make([]bundleView, len(st.Bundles))
	for i, b := range st.Bundles {
		bundles[i] = viewBundle(b)
	}
	return writeJSON(w, http.StatusOK, struct {
		Revision    string       `json:"revision"`
		Source      string       `json:"source"`
		LoadedAt    *time.Time   `json:"loaded_at"`
		LastError   *string      `json:"last_error"`
		LastErrorAt *time.Time   `json:"last_error_at"`
		Refused     int          `json:"refused"`
		RollBacks   int          `json:"rollbacks"`
		Bundles     []bundleView `json:"bundles"`
		// Candidate is the policy that is tried, or was promoted: then revision is its own.
		Candidate candidateView `json:"candidate"`
	}{
		st.Revision, st.Source, timeOrNull(st.LoadedAt), textOrNull(st.LastError), timeOrNull(st.LastErrorAt),
		st.Refused, st.RollBacks, bundles, s.viewCandidate(),
	})
}

type bundleView struct {
	Name        string     `json:"name"`
	Source      string     `json:"source"`
	Revision    *string    `json:"revision"`
	Digest      string     `json:"digest"`
	Roots       []string   `json:"roots"`
	ETag        *string    `json:"etag"`
	Signed      bool       `json:"signed"`
	FromDisk    bool       `json:"from_disk"`
	LoadedAt    *time.Time `json:"loaded_at"`
	LastError   *string    `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`
	NotKept     *string    `json:"not_kept"`
}

func viewBundle(b PolicyBundle) bundleView {
	return bundleView{
		Name: b.Name, Source: b.Source, Revision: textOrNull(b.Revision), Digest: b.Digest, Roots: listed(b.Roots),
		ETag: textOrNull(b.ETag), Signed: b.Signed, FromDisk: b.FromDisk, LoadedAt: timeOrNull(b.LoadedAt),
		LastError: textOrNull(b.LastError), LastErrorAt: timeOrNull(b.LastErrorAt),
		NotKept: textOrNull(b.NotKept),
	}
}

// evaluate decides on a given input with the policy in use. It changes nothing and is not
// counted as a decision.
func (s *Server) evaluate(w http.ResponseWriter, c *call) error {
	body := struct {
		Point string          `json:"point"`
		Input json.RawMessage `json:"input"`
	}{}
	if err := c.read(&body); err != nil {
		return err
	}
	point, ok := policy.ParsePoint(body.Point)
	if !ok {
		return bad("point", "point %q: allowed are admission, failure, substitution, replay", body.Point)
	}
	revision := s.Generation().Policy
	output, err := revision.Evaluate(c.Context(), point, body.Input)
	var faults policy.Errors
	var failed *policy.DecisionError
	switch {
	case errors.As(err, &faults):
		return bad("input", "%s", faults)
	case errors.As(err, &failed) && c.Context().Err() == nil:
		return &refusal{status: http.StatusUnprocessableEntity, code: decisionFailed, param: "input", message: "the policy makes no decision of this input: " + failed.Error()}
	case err != nil:
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		Point    string          `json:"point"`
		Revision string          `json:"revision"`
		Output   json.RawMessage `json:"output"`
	}{point.String(), revision.ID(), output})
}
