// Package adapter owns the translation between the OpenAI wire format, which callers speak,
// and a provider's own: the interface, and the native adapter for providers that speak
// OpenAI's format themselves.
//
// An adapter is a pure function of bytes. It opens no connection, sees no credential, keeps no
// clock, decides nothing about recovery and never chooses a route: it shapes a request, turns
// an answer back, cuts a stream into OpenAI events, and reads what a provider says went wrong.
package adapter
