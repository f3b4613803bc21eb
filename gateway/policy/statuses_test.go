package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A bundle is probed with every status that its rules and tables name.
func TestStatusesToProbe(t *testing.T) {
	base := builtin(t).reach[PointFailure].statuses
	for _, status := range []int{300, 400, 418, 431, 500, 528, 529, 599, 600, 999} {
		require.Contains(t, base, status)
	}
	require.NotContains(t, base, 470)
	named := loadDir(t, copyBundle(t, map[string]string{
		"interlock/overrides/data.json": `{"providers": {"p": {"status": {"470": "overloaded"}}}}`,
	}))
	require.Subset(t, named.reach[PointFailure].statuses, []int{469, 470, 471})

	for name, condition := range map[string]string{
		"a number": "not input.failure.status == 470",
		"a range":  "not above",
		"a text":   `not format_int(input.failure.status, 10) in {"470"}`,
	} {
		message := refusal(t, map[string]string{"interlock/failure.rego": `package interlock.failure

decision := {"class": "unknown", "reason": "r"} if ` + condition + `

above if {
	input.failure.status > 469
	input.failure.status < 471
}
`})
		require.Contains(t, message, "status 470", name)
	}
}
