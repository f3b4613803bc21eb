package failing_test

import data.interlock.replay

test_holds if true

test_does_not_hold if {
	print("asked about", "network")
	decision := replay.decision with input as {"failure": {"class": "network", "phase": "before_headers"}}
	decision.reason == "no_such_reason"
}
