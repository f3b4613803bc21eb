package echo

// Manifest is the plugin's manifest. The guard's operations are not in it, since a plugin is an
// adapter or a guard: they are there for the vectors. It is not embedded from a file because package embed adds a
// quarter of a megabyte to a module.
const Manifest = `{
  "name": "echo",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions"],
  "content_types": {"events": ["text/event-stream"], "whole": ["application/json"]},
  "request_headers": ["echo-version"],
  "response_headers": [],
  "auth": ["bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "4KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {"version": {"type": "string", "pattern": "^[0-9.]+$"}}
  }
}`
