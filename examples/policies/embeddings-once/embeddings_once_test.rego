package embeddings_once_test

import data.interlock.replay

failed(class, kind, alias, labels) := {
	"failure": {"class": class, "phase": "before_headers", "request_sent": true},
	"request": {
		"endpoint": "chat_completions", "kind": kind, "alias": alias, "idempotent": true, "side_effects": "none",
		"structured_output": "none", "stream": false, "release": "stream",
	},
	"key": {"labels": labels},
	"attempt": {"number": 1, "same_route": 1, "same_group": 1, "cause": "initial"},
	"budget": {"attempts_left": 3, "time_left": "ample", "retry_after": "none", "retry_after_fits": true},
	"candidates": {"same_route": 1, "same_contract": 1, "same_contract_schema_verified": 1, "substitutes": 1},
}

test_an_embedding_is_asked_for_once if {
	every class in ["network", "timeout", "rate_limited", "overloaded", "server_error", "malformed_answer", "none"] {
		replay.decision.actions == ["stop"] with input as failed(class, "embeddings", "", {})
	}
}

test_other_requests_are_as_before if {
	replay.decision.actions[0] == "same_route_retry" with input as failed("network", "chat", "", {})
}
