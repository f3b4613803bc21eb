package azure

// Manifest is the plugin's manifest. It is not embedded from a file because package embed adds a
// quarter of a megabyte to a module.
const Manifest = `{
  "name": "azure",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions", "responses", "completions", "embeddings"],
  "content_types": {"events": ["text/event-stream"], "whole": ["application/json"]},
  "request_headers": [],
  "response_headers": [],
  "auth": ["header:api-key", "azure_ad", "bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools", "parallel_tool_calls", "json_object", "json_schema", "reasoning", "embeddings"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "64KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "api": {"enum": ["v1", "deployments", "models"]},
      "api_version": {"type": "string", "pattern": "^(preview|latest|v1|[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?)$"}
    }
  }
}`
