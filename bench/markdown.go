package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// markdown is the report for people. It stands alone: plots are named, not linked, so that it
// can be kept without them.
func (r *report) markdown() []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	p("# The benchmark's report")
	m := r.Machine
	nginx := "nginx " + m.Nginx
	if m.Nginx == "" {
		nginx = "**no nginx: nothing to compare with**"
	}
	p("%s at %s. %s, %d cores, %d MiB, Linux %s, %s, %s. Load average before and after (the benchmark's own load in it): %s; %s.",
		r.At.Format("2006-01-02 15:04 UTC"), r.Commit, m.CPU, m.Cores, m.MemoryMiB, m.Kernel, m.Go, nginx, m.LoadStart, m.LoadEnd)
	p("Targets: %s. %d rounds of each point, targets in turn; %.0f s in all. A cell is the median of the rounds and their range; a ratio or difference of two targets is taken within each round first. [README.md](README.md) says how to read it.", strings.Join(r.Targets, ", "), r.Plan.Rounds, r.Took)
	if r.Plan.Quick {
		p("**A quick run: too short for figures that anyone should quote.**")
	}
	if bad := r.invalid(); len(bad) > 0 {
		p("**Invalid, since not every answer was right: %s.**", strings.Join(bad, ", "))
	}
	if left := r.left(); len(left) > 0 {
		p("Left out of this run: %s.", strings.Join(left, ", "))
	}
	p("## Against the aims")
	var rows [][]string
	for _, a := range r.Aims {
		result := a.Result
		if result == missed {
			result = "**missed**"
		}
		rows = append(rows, []string{a.Name, a.Bound, a.Figure, result})
	}
	writeTable(&b, []string{"aim", "bound", "measured", ""}, rows)
	for _, s := range r.Sections {
		s.markdown(&b)
	}
	r.writeBooks(&b)
	return bytes.TrimRight(b.Bytes(), "\n")
}

func (s *section) markdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "## %s\n\n", s.Title)
	if s.Invalid {
		fmt.Fprintf(b, "**Invalid: %d errors beside %d right answers. The figures below do not count.**\n\n", s.Errors, s.Requests)
		for _, e := range s.Examples {
			fmt.Fprintf(b, "- `%s`\n", strings.ReplaceAll(strings.ReplaceAll(e, "`", "'"), "\n", " "))
		}
		b.WriteByte('\n')
	}
	var plots []string
	for _, block := range s.text {
		switch {
		case block.plot != nil:
			plots = append(plots, block.plot.name+".svg")
		case block.head != nil:
			writeTable(b, block.head, block.rows)
		default:
			fmt.Fprintf(b, "%s\n\n", block.text)
		}
	}
	fmt.Fprintf(b, "%d answers verified in %.0f s.", s.Requests, s.Took)
	if len(plots) > 0 {
		fmt.Fprintf(b, " Plots: %s.", strings.Join(plots, ", "))
	}
	b.WriteString("\n\n")
}

func writeTable(b *bytes.Buffer, head []string, rows [][]string) {
	escape := strings.NewReplacer("|", "\\|", "\n", " ")
	row := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(b, "| %s ", escape.Replace(c))
		}
		b.WriteString("|\n")
	}
	row(head)
	b.WriteString(strings.Repeat("| --- ", len(head)) + "|\n")
	for _, r := range rows {
		row(r)
	}
	b.WriteByte('\n')
}

// writeBooks compares every gateway's ledger with what the upstream counted.
func (r *report) writeBooks(b *bytes.Buffer) {
	if len(r.Books) == 0 {
		return
	}
	var sum book
	var wrong [][]string
	for _, k := range r.Books {
		sum.Requests += k.Requests
		sum.Attempts += k.Attempts
		sum.Unsent += k.Unsent
		sum.Calls += k.Calls
		if !k.agree() {
			wrong = append(wrong, []string{k.Target, fmt.Sprint(k.Requests), fmt.Sprint(k.Attempts), fmt.Sprint(k.Unsent), fmt.Sprint(k.Calls)})
		}
	}
	fmt.Fprintf(b, "## The ledgers\n\n%d gateways were started and loaded. In their ledgers: %d requests and %d attempts, of which %d on a channel behind which nothing listens. The upstream counted %d calls.",
		len(r.Books), sum.Requests, sum.Attempts, sum.Unsent, sum.Calls)
	if len(wrong) == 0 {
		b.WriteString(" They agree, gateway by gateway.\n")
		return
	}
	b.WriteString(" **They do not agree:**\n\n")
	writeTable(b, []string{"gateway", "requests", "attempts", "unsent", "upstream's calls"}, wrong)
}

// printSummary is for whoever ran it.
func (r *report) printSummary(out io.Writer) {
	fmt.Fprintln(out)
	for _, a := range r.Aims {
		fmt.Fprintf(out, "%-13s %-62s %-16s %s\n", a.Result, a.Name, a.Bound, a.Figure)
	}
	if bad := r.invalid(); len(bad) > 0 {
		fmt.Fprintln(out, "INVALID sections:", strings.Join(bad, ", "))
	}
	attempts, calls, wrong := 0, 0, 0
	for _, k := range r.Books {
		attempts += k.Attempts - k.Unsent
		calls += k.Calls
		if !k.agree() {
			wrong++
		}
	}
	fmt.Fprintf(out, "ledgers: %d attempts sent, upstream: %d calls, %d of %d gateways disagree\n", attempts, calls, wrong, len(r.Books))
}
