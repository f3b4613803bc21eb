package bedrock

// Manifest is the plugin's manifest. It is not embedded from a file because package embed adds a
// quarter of a megabyte to a module.
const Manifest = `{
  "name": "bedrock",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions"],
  "content_types": {"events": ["application/vnd.amazon.eventstream"], "whole": ["application/json"]},
  "request_headers": [],
  "response_headers": ["x-amzn-errortype"],
  "auth": ["aws_sigv4", "bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools", "parallel_tool_calls", "json_object", "json_schema", "reasoning"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "64KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "max_tokens": {"type": "integer", "minimum": 1},
      "reasoning": {"enum": ["auto", "budget", "adaptive", "nova", "config", "effort", "none"]},
      "structured_output": {"enum": ["native", "tool"]},
      "guardrail_config": {"type": "object"}
    }
  }
}`
