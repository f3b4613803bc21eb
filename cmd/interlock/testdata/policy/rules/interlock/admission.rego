package interlock.admission

decision := {"allow": false, "reason": "free_plan", "rule": "admission.free"} if {
	input.key.labels.tier == "free"
} else := {"allow": true, "reason": "open", "rule": "admission.open"}
