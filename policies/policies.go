// Package policies embeds the default bundle: the failure matrix and the other tables (data),
// the rules of the four decision points (Rego) with their tests, and the JSON Schemas of what
// goes in and comes out. README.md says how to change them. Package policy loads it.
package policies

import "embed"

// Files is the default bundle as it lies in this folder.
//
//go:embed .manifest interlock schemas
var Files embed.FS
