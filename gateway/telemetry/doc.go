// Package telemetry owns what the gateway says about itself while it runs: its metrics
// (Prometheus, in a registry of its own), its log lines (log/slog) and the Secret type that
// keeps credentials out of both.
//
// It is the lowest package: it imports nothing of the gateway, decides nothing, and never
// sees a prompt, an answer or an error body. Label values come only from the configuration
// and the vocabulary; a value from anywhere else is counted under one shared value, so no
// caller can grow the number of series.
package telemetry
