// Package sdk carries what a plugin in Go is made with, so that the gateway's binary can hand it
// out: the SDK's source and the templates of new plugins. It runs nothing.
package sdk

import "embed"

// Files holds go/, the SDK, and template/KIND/, a new plugin of that kind; both with their tests.
//
//go:embed go template
var Files embed.FS
