package interlock.replay

decision := {"actions": ["stop"], "reason": "misspelt"} if {
	input.failure.phase == "befor_headers"
	input.failre.class == "network"
}

late if input.candidate.price.input > 3
