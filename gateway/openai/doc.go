// Package openai owns the OpenAI wire format, by bytes: what a caller's body asks for, the edits
// it needs on its way up, errors in OpenAI's shape, server-sent events, and what an answer or a
// stream of an OpenAI-compatible provider says and needs on its way down.
//
// It must not do I/O, know a provider's name, choose a route or decide on recovery. It reports
// facts; bytes it has no reason to touch pass as they came: unknown fields, big integers and the
// order of keys survive. Nothing on the path of a request is unmarshalled through reflection (the
// check of a promised schema is, after the answer), and scanning a request, a stream's event or an
// answer allocates nothing once the buffers are warm but the names it keeps: ID, model, tool calls.
//
// Byte slices handed out alias the caller's input or a buffer of the value that made them; each
// method says until when they hold. No value of this package is safe for concurrent use unless
// it says so.
package openai
