package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is all rounds of one load, by target.
type row struct {
	connections int
	points      map[string][]point
}

type table struct {
	kind kind
	rows []row
}

func (t *table) print(out io.Writer) {
	title := "Non-stream requests (0.3 KB in, 0.5 KB out)"
	if t.kind == kindStream {
		title = fmt.Sprintf("Streams of %d events", streamEvents)
	}
	fmt.Fprintf(out, "\n## %s\n\nProcessor time per request, µs (user + system), min / median of the rounds; gateway ÷ nginx round by round.\n\n", title)
	fmt.Fprintln(out, "| connections | gateway | nginx | gateway ÷ nginx: min / median, every round | gateway req/s, p50, p99 | nginx req/s, p50, p99 |\n| --- | --- | --- | --- | --- | --- |")
	for _, r := range t.rows {
		gateway, nginx := r.points["gateway"], r.points["nginx"]
		fmt.Fprintf(out, "| %d | %s | %s | %s | %s | %s |\n", r.connections, costs(gateway), costs(nginx), ratios(gateway, nginx), speeds(gateway), speeds(nginx))
	}
}

func costs(list []point) string {
	if len(list) == 0 {
		return "—"
	}
	v := perRequest(list)
	return fmt.Sprintf("%.1f / %.1f", slices.Min(v), median(v))
}

// speeds is of the round with the most requests.
func speeds(list []point) string {
	if len(list) == 0 {
		return "—"
	}
	best := slices.MaxFunc(list, func(a, b point) int { return a.Requests - b.Requests })
	return fmt.Sprintf("%.0f, %v, %v", best.perSecond(), best.P50.Round(time.Microsecond), best.P99.Round(time.Microsecond))
}

func ratios(gateway, nginx []point) string {
	if len(nginx) == 0 {
		return "—"
	}
	var v []float64
	var each []string
	for i := range gateway {
		r := gateway[i].perRequest / nginx[i].perRequest
		v = append(v, r)
		each = append(each, fmt.Sprintf("%.2f", r))
	}
	return fmt.Sprintf("**%.2f / %.2f** [%s]", slices.Min(v), median(v), strings.Join(each, " "))
}

func perRequest(list []point) []float64 {
	v := make([]float64, len(list))
	for i, p := range list {
		v[i] = p.perRequest
	}
	return v
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// printMachine says where the figures come from, and what else the machine was doing.
func printMachine(out io.Writer, nginx string) {
	model := "unknown processor"
	b, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(b), "model name"); ok {
		line, _, _ := strings.Cut(rest, "\n")
		model = strings.TrimSpace(strings.TrimLeft(line, "\t :"))
	}
	busy, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(out, "%s, %d cores, %s %s/%s; load average at the start: %s\n", model, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.TrimSpace(string(busy)))
	if nginx == "" {
		fmt.Fprintln(out, "\nNGINX IS MISSING (apt-get install nginx-light): these are the gateway's own figures, without a comparison.")
	}
}
