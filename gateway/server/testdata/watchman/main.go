// Command watchman is a guard for tests: what it does follows from words in what it sees.
package main

import (
	"bytes"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Manifest is what describe answers.
const Manifest = `{"name":"watchman","version":"1.0.0","abi":"1.0","kind":"guard",
"operations":["guard_request","guard_response","guard_events"],"limits":{"memory":"32MiB"}}`

func init() {
	interlock.Serve(Manifest, func(config []byte) (interlock.Plugin, error) {
		if _, said, ok := bytes.Cut(config, []byte(`"refuse":"`)); ok {
			said, _, _ = bytes.Cut(said, []byte(`"`))
			return interlock.Plugin{}, interlock.Config("it says " + string(said))
		}
		return interlock.Plugin{GuardRequest: whole, GuardResponse: whole, GuardEvents: events}, nil
	})
}

func main() {}

func whole(_ *interlock.Call, s *interlock.Subject, body []byte, out *interlock.Verdict) error {
	switch {
	case bytes.Contains(body, []byte("trap")):
		panic("as asked")
	case bytes.Contains(body, []byte("spin")):
		for {
		}
	case bytes.Contains(body, []byte("garbage")):
		out.Action, out.Body = interlock.Use, append(out.Body, "no JSON"...)
	case bytes.Contains(body, []byte("huge")):
		out.Action, out.Body = interlock.Use, append(out.Body, make([]byte, 16<<20)...)
	case bytes.Contains(body, []byte("badreason")):
		out.Action, out.Reason = interlock.Refuse, "Not A Code\n"
	case bytes.Contains(body, []byte("forbidden")):
		out.Action, out.Reason, out.Message = interlock.Refuse, "forbidden_word", "not for "+s.Key+" "+string(s.Labels)+" "+s.Alias
	case bytes.Contains(body, []byte("othermodel")):
		out.Action, out.Body = interlock.Use, append(out.Body, `{"model":"m2","messages":[{"role":"user","content":"x"}]}`...)
	case bytes.Contains(body, []byte("number-123")):
		out.Action, out.Body = interlock.Use, append(out.Body, bytes.ReplaceAll(body, []byte("number-123"), []byte("[redacted]"))...)
	}
	return nil
}

// events holds one event back, so that what it takes out could also cross two.
func events(_ *interlock.Call, _ *interlock.Subject, in []interlock.Frame, ended bool, out *interlock.EventsVerdict) error {
	out.Action = interlock.Use
	held := out.State
	for _, f := range in {
		if bytes.Contains(f.Data, []byte("forbidden")) {
			out.Action, out.Reason = interlock.Refuse, "forbidden_word"
			return nil
		}
		switch {
		case bytes.Contains(f.Data, []byte("eventtrap")):
			panic("as asked")
		case bytes.Contains(f.Data, []byte("eventspin")):
			for {
			}
		case bytes.Contains(f.Data, []byte("eventline")):
			out.Emit([]byte("{}\n\ndata: forged"))
			return nil
		case bytes.Contains(f.Data, []byte("eventgarbage")):
			out.Emit([]byte("no JSON"))
			return nil
		}
		if len(held) > 0 {
			out.Emit(held)
		}
		held = append([]byte(nil), bytes.ReplaceAll(f.Data, []byte("number-123"), []byte("[redacted]"))...)
	}
	if ended && len(held) > 0 {
		out.Emit(held)
		held = nil
	}
	out.State = append(out.State[:0], held...)
	return nil
}
