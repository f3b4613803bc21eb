package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of the candidate speak the admin API and print what it says for people.
func TestPolicyCandidateCommands(t *testing.T) {
	var asked []string
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		_, _ = io.WriteString(w, `{"state": "canary", "path": "next", "mode": "canary", "percent": 10, "revision": "candidate@1",
			"active": "builtin@2", "loaded_at": null, "last_error": null, "last_error_at": null, "switched_off": true,
			"promoted": {"revision": "candidate@0", "over": "builtin@2", "at": "2026-05-04T03:02:01Z", "who": "hands", "reason": "good"},
			"comparison": {"compared": 7, "differ": 2, "dropped": 0, "failed": 0,
				"by_point": {"replay": {"compared": 3, "differ": 2}, "admission": {"compared": 4, "differ": 0}},
				"by_class": {"overloaded": {"compared": 3, "differ": 2}}, "by_key": {"web": {"compared": 7, "differ": 2}},
				"examples": [{"at": "2026-05-04T03:02:01Z", "request_id": "req_1", "point": "replay", "class": "overloaded", "key": "web",
					"input": {}, "active": {"actions": ["stop"]}, "candidate": {"actions": ["same_route_retry", "stop"]}}]}}`)
	}))
	defer admin.Close()
	call := func(args ...string) string {
		t.Helper()
		var out, errs output
		require.Zero(t, run(t.Context(), append(args, "--admin", admin.URL), &out, &errs), errs.String())
		return out.String()
	}
	said := call("policy", "candidate")
	for _, want := range []string{
		"canary, for 10 % of the keys, switched off", "builtin@2", "candidate@1", "by hands: good", "7 decisions, 2 differ",
		"point replay", "class overloaded", "key web", "req_1", `{"actions": ["same_route_retry", "stop"]}`,
	} {
		require.Contains(t, said, want)
	}
	require.NotContains(t, said, "point admission", "what does not differ is not listed")
	require.True(t, json.Valid([]byte(call("policy", "candidate", "--json"))))
	require.Equal(t, "builtin@2 is in force.\n", call("policy", "promote", "--reason", "it is good"))
	call("policy", "rollback")
	require.Equal(t, []string{
		"GET /admin/v1/policy/candidate ", "GET /admin/v1/policy/candidate ",
		`POST /admin/v1/policy/promote {"reason":"it is good"}`, `POST /admin/v1/policy/rollback {"reason":""}`,
	}, asked)
}
