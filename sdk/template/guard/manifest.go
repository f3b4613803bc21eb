package main

// Manifest says what the plugin is and wants: see "The manifest" in the SDK's guide. A guard
// names the operations that it has; a configuration may use fewer (`on`). config_schema is a JSON
// Schema of what an operator may write under `config`.
const Manifest = `{
  "name": "acme",
  "version": "0.1.0",
  "abi": "1.0",
  "kind": "guard",
  "operations": ["guard_request", "guard_response", "guard_events"],
  "capabilities": [],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "4KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {"words": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 256}}}
  }
}`
