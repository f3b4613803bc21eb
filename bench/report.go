package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// schemaVersion is of report.json. It grows when a field changes its meaning or goes; fields
// may come without that. README.md describes the schema.
const schemaVersion = 1

// report is one run.
type report struct {
	SchemaVersion int        `json:"schema_version"`
	At            time.Time  `json:"at"`
	Commit        string     `json:"commit"`
	Machine       machine    `json:"machine"`
	Plan          *plan      `json:"plan"`
	Took          seconds    `json:"took_s"`
	Targets       []string   `json:"targets"`
	Sections      []*section `json:"sections"`
	Aims          []aim      `json:"aims"`
	Books         []book     `json:"books"`
}

type seconds float64

type machine struct {
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memory_mib"`
	Kernel    string `json:"kernel"`
	Go        string `json:"go"`
	Nginx     string `json:"nginx"`       // "" where there is none
	LoadStart string `json:"load_before"` // /proc/loadavg
	LoadEnd   string `json:"load_after"`
}

// section is a part of a run: what was measured, and what of it a reader sees.
type section struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Took     seconds   `json:"took_s"`
	Requests int       `json:"requests"` // answered and verified
	Errors   int       `json:"errors"`
	Invalid  bool      `json:"invalid"` // it had errors or could not be finished: its figures do not count
	Examples []string  `json:"examples"`
	Measures []measure `json:"measures"`

	text   []block
	rounds int
	slot   time.Duration // what it may take
	begun  time.Time
	r      *trial
}

// measure is one figure on one target under one condition, of every round.
type measure struct {
	What   string    `json:"what"`             // e.g. cpu_per_request
	Target string    `json:"target"`           // e.g. gateway, or gateway/nginx for a ratio of the two in the same round
	At     string    `json:"at"`               // the condition: load and connections, rate, size …
	Unit   string    `json:"unit"`             // µs, 1/s, ms, MiB, KiB, MB/s, ratio
	Rounds []float64 `json:"rounds"`           // in the order measured
	Median float64   `json:"median"`           //
	Min    float64   `json:"min"`              //
	Max    float64   `json:"max"`              //
	Mixed  float64   `json:"merged,omitempty"` // a quantile over all rounds' requests together
}

// block is a piece of a section's text in Markdown, a table or a plot.
type block struct {
	text string
	head []string
	rows [][]string
	plot *plot
}

func (s *section) say(text string) { s.text = append(s.text, block{text: text}) }

func (s *section) table(head []string, rows [][]string) {
	s.text = append(s.text, block{head: head, rows: rows})
}

func (s *section) draw(p *plot) {
	p.name = s.Name + "-" + p.name
	s.text = append(s.text, block{plot: p})
}

// record keeps a measure and returns it.
func (s *section) record(what, target, at, unit string, rounds []float64) *measure {
	m := measure{What: what, Target: target, At: at, Unit: unit, Rounds: rounds, Median: median(rounds)}
	if len(rounds) > 0 {
		m.Min, m.Max = slices.Min(rounds), slices.Max(rounds)
	}
	s.Measures = append(s.Measures, m)
	return &s.Measures[len(s.Measures)-1]
}

// find is the measure, nil where it was not taken or its section is invalid.
func (r *report) find(section, what, target, at string) *measure {
	for _, s := range r.Sections {
		if s.Name != section || s.Invalid {
			continue
		}
		for i := range s.Measures {
			if m := &s.Measures[i]; m.What == what && m.Target == target && m.At == at && len(m.Rounds) > 0 {
				return m
			}
		}
	}
	return nil
}

// write puts report.json, report.md and the plots into the directory, and takes away the plots
// of a run before.
func (r *report) write(dir string) error {
	old, _ := filepath.Glob(filepath.Join(dir, "*.svg"))
	for _, file := range old {
		_ = os.Remove(file)
	}
	for _, s := range r.Sections {
		for _, b := range s.text {
			if b.plot == nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, b.plot.name+".svg"), b.plot.svg(), 0o644); err != nil {
				return err
			}
		}
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), r.markdown(), 0o644)
}

func thisMachine(nginx string) machine {
	m := machine{CPU: "unknown processor", Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, Nginx: nginx, LoadStart: loadAverage()}
	b, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(b), "model name"); ok {
		line, _, _ := strings.Cut(rest, "\n")
		m.CPU = strings.TrimSpace(strings.TrimLeft(line, "\t :"))
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.MemoryMiB = int(uint64(info.Totalram) * uint64(info.Unit) >> 20)
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return m
}

func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(b))
	return strings.Join(f[:min(len(f), 3)], " ")
}
