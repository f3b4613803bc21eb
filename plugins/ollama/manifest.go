package ollama

// Manifest is the plugin's manifest. It is not embedded from a file because package embed adds a
// quarter of a megabyte to a module.
const Manifest = `{
  "name": "ollama",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions", "embeddings"],
  "content_types": {"events": ["application/x-ndjson"], "whole": ["application/json"]},
  "request_headers": [],
  "response_headers": [],
  "auth": ["none", "bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools", "parallel_tool_calls", "json_object", "json_schema", "reasoning", "embeddings"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "64KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "options": {"type": "object"},
      "keep_alive": {"type": ["string", "number"]},
      "reasoning": {"enum": ["auto", "switch", "level", "none"]}
    }
  }
}`
