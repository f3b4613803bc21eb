package cohere

// Manifest is the plugin's manifest. It is not embedded from a file because package embed adds a
// quarter of a megabyte to a module.
const Manifest = `{
  "name": "cohere",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions", "embeddings"],
  "content_types": {"events": ["text/event-stream"], "whole": ["application/json"]},
  "request_headers": [],
  "response_headers": [],
  "auth": ["bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools", "parallel_tool_calls", "json_object", "json_schema", "reasoning", "embeddings"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "64KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "reasoning": {"enum": ["auto", "thinking", "none"], "default": "auto"},
      "safety_mode": {"enum": ["CONTEXTUAL", "STRICT", "OFF"]},
      "input_type": {"enum": ["search_document", "search_query", "classification", "clustering"], "default": "search_document"}
    }
  }
}`
