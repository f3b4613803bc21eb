package config

import (
	"context"
)

// Watch calls changed, with the paths that did, whenever the content of a file or of anything
// below a directory has changed, or it appears or goes away. It blocks until ctx is done.
func Watch(ctx context.Context, paths []string, changed func(paths []string)) error {
	panic("skeleton")
}
