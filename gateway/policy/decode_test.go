package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The decoder of each point and its output schema accept the same.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"allow": true, "reason": "r", "rule": "x", "message": "m", "budget": "b", "groups": ["a"], "regions": [], "substitution": "deny"}`,
		`{"allow": "yes", "reason": "r"}`,
		`{"allow": true}`,
		`{"allow": true, "reason": ""}`,
		`{"allow": true, "reason": "r", "groups": [""]}`,
		`{"allow": true, "reason": "r", "substitution": "unspecified"}`,
		`{"class": "network", "reason": "r", "health": "counts", "scope": "capability:vision", "isolate": false}`,
		`{"class": "none", "reason": "r"}`,
		`{"class": "network", "reason": "r", "scope": "galaxy"}`,
		`{"actions": ["same_route_retry", "stop"], "reason": "r", "delay_ms": 12}`,
		`{"actions": ["stop", "stop"], "reason": "r"}`,
		`{"actions": [], "reason": "r"}`,
		`{"actions": ["stop"], "reason": "r", "delay_ms": 1.0}`,
		`{"actions": ["stop"], "reason": "r", "delay_ms": 1.5}`,
		`{"actions": ["stop"], "reason": "r", "delay_ms": -1}`,
		`{"actions": ["stop"], "reason": "r", "delay_ms": 1e400}`,
		`{"approve": true, "reason": "r", "disclosure": "d"}`,
		`{"approve": true, "reason": "r", "extra": 1}`,
		`{"allow": true, "reason": "r", "": ""}`,
		`null`, `[]`, `3`, `"x"`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	decoders := map[Point]func(any) error{
		PointAdmission:    func(v any) error { _, err := decodeAdmission(v); return err },
		PointFailure:      func(v any) error { _, err := decodeFailure(v); return err },
		PointSubstitution: func(v any) error { _, err := decodeSubstitution(v); return err },
		PointReplay:       func(v any) error { _, err := decodeReplay(v); return err },
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := decodeJSON(text)
		if err != nil {
			return
		}
		for p, decode := range decoders {
			err := decode(v)
			faults := violations(p.String(), v)
			require.Equal(t, len(faults) == 0, err == nil, "%s: %s: decoder %v, schema %v", p, text, err, faults)
		}
	})
}
