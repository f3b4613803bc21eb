package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// demoPrinter writes the demonstration for a person to read.
type demoPrinter struct {
	w             io.Writer
	bold, dim, no string // terminal sequences; "" where nobody looks at a terminal
}

func newDemoPrinter(w io.Writer) *demoPrinter {
	p := &demoPrinter{w: w}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return p
	}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.bold, p.dim, p.no = "\x1b[1m", "\x1b[2m", "\x1b[0m"
	}
	return p
}

func (p *demoPrinter) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// strong and faint dress a text for a terminal.
func (p *demoPrinter) strong(s string) string { return p.bold + s + p.no }
func (p *demoPrinter) faint(s string) string  { return p.dim + s + p.no }

func (p *demoPrinter) opening(st *stage) {
	p.line("Three providers that fail on purpose:")
	for _, name := range demoProviders {
		p.line("  %-9s %s", name, st.providers[name].URL())
	}
	p.line("The gateway before them:")
	p.line("  %-9s %s/v1", "callers", st.url())
	p.line("  %-9s %s", "operators", st.adminURL())
	p.line("")
}

// scene prints one request: what the caller saw, and the attempts behind it.
func (p *demoPrinter) scene(n int, sc *scene, seen *sight, faults []string) {
	kind := ""
	if sc.stream {
		kind = ", stream"
	}
	p.line("%2d  %s", n, p.strong(sc.title))
	p.line("    %s", p.faint(fmt.Sprintf("%s %s%s: %q%s%s", sc.path, sc.model, kind, sc.prompt, strings.ReplaceAll(sc.extra, ",", ", "), header(sc.headers))))
	if seen.err == nil {
		p.caller(sc, seen)
		p.attempts(seen)
	}
	for _, f := range faults {
		p.line("    NOT AS TOLD: %s", f)
	}
	p.line("")
}

func header(pairs []string) string {
	s := ""
	for i := 0; i+1 < len(pairs); i += 2 {
		s += ", " + pairs[i] + ": " + pairs[i+1]
	}
	return s
}

func (p *demoPrinter) caller(sc *scene, seen *sight) {
	says := []string{strconv.Itoa(seen.status)}
	if c := seen.header.Get("interlock-cause"); c != "" {
		says = append(says, "interlock-cause: "+c)
	}
	switch {
	case seen.code == "":
		says = append(says, strconv.Quote(firstWords(seen.text)))
	case seen.text == "" || seen.status >= 400:
		says = append(says, "error "+seen.code)
	default:
		says = append(says, strconv.Quote(firstWords(seen.text)), "then error "+seen.code)
	}
	if sc.leaves {
		says = append(says, "then leaves")
	}
	p.line("    caller  %s  %s", strings.Join(says, "  "), p.faint("("+milliseconds(seen.took)+")"))
	if s := seen.header.Get("interlock-substitution"); s != "" {
		p.line("            interlock-requested-model: %s  interlock-model: %s", seen.header.Get("interlock-requested-model"), seen.header.Get("interlock-model"))
		p.line("            interlock-substitution: %s", s)
	}
}

func (p *demoPrinter) attempts(seen *sight) {
	r := &seen.record
	for i := range r.Attempts {
		a := &r.Attempts[i]
		became := a.Terminal
		if a.Class != "" {
			became = a.Class
			if a.Status != nil {
				became += " " + strconv.Itoa(*a.Status)
			}
			became += ", " + a.Phase
		}
		var notes []string
		if a.DelayMS > 0 {
			notes = append(notes, "after "+milliseconds(time.Duration(a.DelayMS)*time.Millisecond))
		}
		if a.RetryAfterMS != nil {
			notes = append(notes, "Retry-After "+milliseconds(time.Duration(*a.RetryAfterMS)*time.Millisecond))
		}
		if a.Circuit != "" && a.Circuit != "closed" {
			notes = append(notes, "circuit "+a.Circuit)
		}
		text := fmt.Sprintf("    %-7s %d  %-22s  %-14s  %-32s  %s", attemptLabel(i), a.Number, a.Cause, a.Group+"/"+a.Channel, became, strings.Join(notes, ", "))
		p.line("%s", strings.TrimRight(text, " "))
	}
	if r.Terminal != "success" {
		why := ""
		if reason := stopReason(r); reason != "" {
			why = ", " + reason
		}
		p.line("               %-22s  %s%s", "stop", r.Terminal, why)
	}
	if seen.aborted > 0 {
		p.line("               the provider's call ended %s after the caller had left", milliseconds(seen.aborted))
	}
}

func attemptLabel(i int) string {
	if i == 0 {
		return "ledger"
	}
	return ""
}

// stopReason is why the policy let nothing more be done; "" where it was not asked.
func stopReason(r *demoRecord) string {
	for i := len(r.Decisions) - 1; i >= 0; i-- {
		if d := &r.Decisions[i]; d.Point == "replay" {
			return d.Output.Reason
		}
	}
	return ""
}

// firstWords cuts an answer to what fits a line.
func firstWords(s string) string {
	words := strings.Fields(s)
	if len(words) <= 8 {
		return s
	}
	return strings.Join(words[:8], " ") + " …"
}

func milliseconds(d time.Duration) string {
	if d < time.Millisecond {
		return "under 1 ms"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
}

func (p *demoPrinter) closing(wrong, attempts, calls int) {
	if wrong > 0 {
		p.line("%d of %d requests did not go as told.", wrong, len(scenes))
	} else {
		p.line("All %d requests went as told.", len(scenes))
	}
	p.line("The ledger has %d attempts; the providers counted %d calls.", attempts, calls)
}

// tryOut prints what a person can do next. id is a request worth looking up.
func (p *demoPrinter) tryOut(st *stage, id string) {
	p.line("")
	p.line("%s", p.strong("Everything stays up until Ctrl-C. To try it from another terminal:"))
	p.line("")
	p.line("  export URL=%s ADMIN=%s KEY=%s", st.url(), st.adminURL(), st.key)
	p.line("")
	for _, c := range [...]struct{ what, command string }{
		{"a chat; -i shows the gateway's headers", `curl -is $URL/v1/chat/completions -H "Authorization: Bearer $KEY" -d '{"model":"assistant","messages":[{"role":"user","content":"Say hello in an outage."}]}'`},
		{"a stream that stumbles", `curl -isN $URL/v1/chat/completions -H "Authorization: Bearer $KEY" -d '{"model":"gpt-4.1-mini","stream":true,"messages":[{"role":"user","content":"Say hello, and stumble."}]}'`},
		{"the attempts and decisions behind a request: its x-request-id", `curl -s $URL/interlock/v1/requests/` + id + ` -H "Authorization: Bearer $KEY"`},
		{"all requests, newest first", `curl -s "$ADMIN/admin/v1/requests?limit=5"`},
		{"the same for people; and one of them", os.Args[0] + " ledger list --admin $ADMIN"},
		{"", os.Args[0] + " ledger show " + id + " --admin $ADMIN"},
		{"channels, their circuits, and the isolated one", `curl -s $ADMIN/admin/v1/channels`},
		{"take a channel out, and back", `curl -s -X PUT $ADMIN/admin/v1/switches/channel/main/north -d '{"reason":"trying it out"}'`},
		{"", `curl -s -X DELETE $ADMIN/admin/v1/switches/channel/main/north`},
		{"the policy in force", `curl -s $ADMIN/admin/v1/policy`},
	} {
		if c.what != "" {
			p.line("  %s", p.faint("# "+c.what))
		}
		p.line("  %s", c.command)
	}
	p.line("")
	p.line("The words that make a provider fail: stumble, down, silent, cut, long (gpt-4.1-mini, assistant), outage, busy (gpt-4o-mini).")
	p.line("The configuration, read again when it changes: %s", st.config)
	if st.policy != "" {
		p.line("The policy, read again when it changes: %s", st.policy)
	}
	if st.logFile != nil {
		p.line("The log: %s", st.logFile.Name())
	}
}
