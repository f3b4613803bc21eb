package gemini

// Manifest is the plugin's manifest. It is not embedded from a file because package embed adds a
// quarter of a megabyte to a module.
const Manifest = `{
  "name": "gemini",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions", "embeddings"],
  "content_types": {"events": ["text/event-stream"], "whole": ["application/json"]},
  "request_headers": ["x-vertex-ai-llm-shared-request-type"],
  "response_headers": [],
  "auth": ["header:x-goog-api-key", "query:key", "gcp"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools", "parallel_tool_calls", "json_object", "json_schema", "reasoning", "embeddings"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "64KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "api_version": {"type": "string", "pattern": "^v[0-9]+[a-z0-9]*$", "default": "v1beta"},
      "parent": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*$"},
      "reasoning": {"enum": ["auto", "level", "budget", "none"], "default": "auto"},
      "include_thoughts": {"type": "boolean"},
      "schema": {"enum": ["json", "openapi"], "default": "json"},
      "safety_settings": {"type": "array", "items": {"type": "object"}}
    }
  }
}`
