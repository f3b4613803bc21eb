package interlock.admission_test

import data.interlock.admission

test_open if admission.decision.allow with input as {"key": {"labels": {}}}

todo_test_paid if admission.decision.allow with input as {"key": {"labels": {"tier": "paid"}}}
