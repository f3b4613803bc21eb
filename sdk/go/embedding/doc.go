// Package embedding is the OpenAI side of an adapter for embeddings: Read gives a typed view of a
// caller's request, Out makes the answer. It owns OpenAI's format and knows no provider. Vectors
// are arrays of numbers here: the gateway renders encoding_format.
package embedding
