package main

// Manifest says what the plugin is and wants: see "The manifest" in the SDK's guide. It is a
// constant and not an embedded file because package embed adds a quarter of a megabyte.
//
//   - request_headers are the only ones that Request may set; response_headers are handed over
//     beside content-type, retry-after and date.
//   - auth names the ways in which the provider takes a credential. The gateway adds it: a plugin
//     never sees one.
//   - model_capabilities are those that the translation can carry. A request that needs another
//     one is not sent to this plugin's channels.
//   - config_schema is a JSON Schema of what an operator may write under `config`.
const Manifest = `{
  "name": "acme",
  "version": "0.1.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions"],
  "content_types": {"events": ["text/event-stream"], "whole": ["application/json"]},
  "request_headers": ["acme-version"],
  "response_headers": [],
  "auth": ["bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "4KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {"version": {"type": "string", "pattern": "^[0-9-]+$"}}
  }
}`
