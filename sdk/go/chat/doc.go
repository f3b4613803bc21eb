// Package chat is the OpenAI side of an adapter for chat completions, so that the adapter is only
// its mapping: Read gives a typed view of a caller's request, Out makes a stream's chunks and a
// whole answer from the same calls. It owns OpenAI's format and the extension members that carry
// what OpenAI has no place for; it knows no provider.
//
// Strings stay as they are written (json.Value): what is text in the one format is copied into
// the other without being decoded.
package chat
