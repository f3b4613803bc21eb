package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

// recorded is a decision as the ledger keeps it.
type recorded struct {
	Attempt  *int            `json:"attempt"`
	Point    string          `json:"point"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	Revision string          `json:"revision"`
}

// decisionsOf reads the decisions of a request of the ledger.
func decisionsOf(record []byte) ([]recorded, error) {
	var r struct {
		Decisions []recorded `json:"decisions"`
	}
	if err := json.Unmarshal(record, &r); err != nil {
		return nil, fmt.Errorf("not a request of the ledger: %w", err)
	}
	return r.Decisions, nil
}

// printDecisions prints what policy decided for a request of the ledger, and on what facts.
func printDecisions(out io.Writer, record []byte) error {
	decisions, err := decisionsOf(record)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		_, err := fmt.Fprintln(out, "  no policy decision was recorded")
		return err
	}
	for i, d := range decisions {
		about := "before the first attempt"
		if d.Attempt != nil {
			about = fmt.Sprintf("attempt %d", *d.Attempt)
		}
		fmt.Fprintf(out, "\n  decision %d  %s, %s\n", i+1, printable(d.Point), about)
		row := func(label, text string) { fmt.Fprintf(out, "    %-9s %s\n", label, printable(text)) }
		point, known := policy.ParsePoint(d.Point)
		v, err := policy.VerdictOf(point, d.Output)
		switch {
		case known && err == nil:
			row("decided", v.Does)
			row("reason", v.Reason)
			if v.Rule != "" {
				row("rule", v.Rule)
			}
		case isNothing(d.Output):
			row("decided", "(no longer kept)")
		default:
			row("decided", string(d.Output)) // of another version
		}
		row("revision", d.Revision)
		if isNothing(d.Input) {
			row("facts", "(no longer kept)")
			continue
		}
		label := "facts"
		for _, line := range factLines(d.Input) {
			row(label, line)
			label = ""
		}
	}
	return nil
}

func isNothing(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }

// factLines are an input's facts, a line for each of its parts: "failure  class=network …".
func factLines(input json.RawMessage) []string {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	var parts map[string]any
	if decoder.Decode(&parts) != nil {
		return []string{string(input)}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		fields, object := parts[name].(map[string]any)
		if !object {
			lines = append(lines, name+" "+factText(parts[name]))
			continue
		}
		words := []string{name}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			words = append(words, field+"="+factText(fields[field]))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// factText shows words without quotes.
func factText(v any) string {
	if s, ok := v.(string); ok && s != "" && !strings.ContainsAny(s, " =\"") {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text)
}
