//go:build !unix

package upstream

import "testing"

func listenBacklog(t *testing.T) string {
	t.Skip("needs a listener with a backlog of its own")
	return ""
}
