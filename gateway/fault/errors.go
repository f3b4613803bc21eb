package fault

import "errors"

// ErrClosed is returned by the waits of a provider that was closed.
var ErrClosed = errors.New("fault: provider closed")
