package anthropic

// Manifest is the plugin's manifest. It is not embedded from a file because package embed adds a
// quarter of a megabyte to a module.
const Manifest = `{
  "name": "anthropic",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions"],
  "content_types": {"events": ["text/event-stream"], "whole": ["application/json"]},
  "request_headers": ["anthropic-version", "anthropic-beta"],
  "response_headers": [],
  "auth": ["header:x-api-key", "bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools", "parallel_tool_calls", "json_object", "json_schema", "reasoning"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "64KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "version": {"type": "string", "pattern": "^[0-9A-Za-z.-]{1,64}$"},
      "beta": {"type": "array", "items": {"type": "string", "pattern": "^[0-9A-Za-z._-]{1,128}$"}},
      "max_tokens": {"type": "integer", "minimum": 1},
      "structured_output": {"enum": ["native", "tool"]},
      "reasoning": {"enum": ["auto", "budget", "adaptive", "none"]}
    }
  }
}`
