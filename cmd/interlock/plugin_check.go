package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/sdk/conformance"
)

func newPluginTest() *cobra.Command {
	var f pluginTest
	c := &cobra.Command{
		Use:   "test [DIR | FILE.wasm | builtin:NAME]",
		Short: "Test a plugin in the gateway's own host",
		Long: "Build the plugin in DIR (default: here) and hold it to what every plugin must keep, and to its\n" +
			"fixtures in DIR/testdata, in the host that the gateway runs it in. A module that is built already\n" +
			"is tested as it is, with the fixtures in testdata beside it.\n\n" +
			"A fixture is a txtar file: what goes in (request.json, answer.json, stream.sse, …), and what must\n" +
			"come out (provider.json, want.json, failure.json, error.json, verdict.json). The exit status is 1\n" +
			"when anything is wrong.",
		Example: "  interlock plugin test\n" +
			"  interlock plugin test --update     # then read what it wrote\n" +
			"  interlock plugin test acme.wasm --fixtures acme/testdata",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), argOrHere(args), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().BoolVar(&f.update, "update", false, "write what the plugin answers into the fixtures: what is wrong, empty or missing in them")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show each check, and what the plugin logs")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.Flags().StringVar(&f.fixtures, "fixtures", "", "the folder of the fixtures (default: testdata in DIR, or beside FILE.wasm)")
	return c
}

type pluginTest struct {
	update, verbose, json bool
	fixtures              string
}

func (f *pluginTest) run(ctx context.Context, arg string, stdout, stderr io.Writer) error {
	m, err := moduleOrBuild(ctx, arg, stderr)
	if err != nil {
		return err
	}
	var log io.Writer
	if f.verbose {
		log = stderr
	}
	g, err := newGuests(m, log)
	if err != nil {
		return err
	}
	defer g.close()
	dir := f.fixtures
	if dir == "" && m.fixtures != "" {
		dir = filepath.Join(m.fixtures, "testdata")
	}
	set, err := readFixtures(dir, f.update, g.manifest.Kind)
	if err != nil {
		return err
	}
	began := time.Now()
	r := conformance.Check(ctx, g.plugin(), set.parsed)
	if f.update {
		wrote, err := set.write(r.Answers)
		if err != nil {
			return err
		}
		for _, name := range wrote {
			fmt.Fprintln(stderr, "wrote "+printable(name))
		}
		if len(wrote) > 0 {
			if set, err = readFixtures(dir, false, g.manifest.Kind); err != nil {
				return err
			}
			r = conformance.Check(ctx, g.plugin(), set.parsed)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	v := &verdicts{Plugin: g.manifest.Name, Version: g.manifest.Version, OK: r.OK(), Calls: r.Calls, rows: rowsOf(r), Took: time.Since(began).Milliseconds()}
	if f.json {
		if err := v.printJSON(stdout); err != nil {
			return err
		}
	} else {
		v.print(stdout, f.verbose)
		set.printDifferences(stdout, r.Answers)
		if len(set.parsed) == 0 {
			fmt.Fprintln(stdout, "\nThere are no fixtures: nothing says what the plugin should answer.")
		}
		v.printSum(stdout)
	}
	if !v.OK {
		return &exitError{status: 1}
	}
	return nil
}

// verdicts are the results of a test.
type verdicts struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	OK      bool   `json:"ok"`
	Calls   int    `json:"calls"`
	Took    int64  `json:"took_ms"`

	rows []verdictRow
}

// verdictRow is one check.
type verdictRow struct {
	Fixture  string   `json:"fixture"` // "" where none is concerned
	Check    string   `json:"check"`
	OK       bool     `json:"ok"`
	Findings []string `json:"findings"`
}

// rowsOf brings the looks and findings of a report together. What is done with every hostile
// input is one check for each operation.
func rowsOf(r *conformance.Report) []verdictRow {
	var rows []verdictRow
	find := func(fixture, check string) (row *verdictRow, rest string) {
		check, rest, hostile := strings.Cut(check, ", hostile ")
		if hostile {
			check = "hostile " + check
		}
		i := slices.IndexFunc(rows, func(r verdictRow) bool { return r.Fixture == fixture && r.Check == check })
		if i < 0 {
			i = len(rows)
			rows = append(rows, verdictRow{Fixture: fixture, Check: check, OK: true, Findings: []string{}})
		}
		return &rows[i], rest
	}
	for _, l := range r.Looks {
		find(l.Fixture, l.Check)
	}
	for _, f := range r.Findings {
		row, rest := find(f.Fixture, f.Check)
		row.OK = false
		text := f.Detail
		if rest != "" {
			text = "with " + rest + ": " + text
		}
		row.Findings = append(row.Findings, text)
	}
	return rows
}

func (v *verdicts) printJSON(w io.Writer) error {
	text, err := json.Marshal(struct {
		*verdicts
		Checks []verdictRow `json:"checks"`
	}{v, v.rows})
	if err != nil {
		return err
	}
	return printJSON(w, text)
}

// print shows a line for each fixture, or with verbose for each check, and below them what is
// wrong.
func (v *verdicts) print(w io.Writer, verbose bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FIXTURE\tCHECKS\tRESULT")
	line := func(fixture string, checks []string, ok bool) {
		result := "pass"
		if !ok {
			result = "FAIL"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", orDash(fixture), printable(strings.Join(checks, ", ")), result)
	}
	for i := 0; i < len(v.rows); {
		first := v.rows[i]
		checks, ok := []string{first.Check}, first.OK
		for i++; !verbose && i < len(v.rows) && v.rows[i].Fixture == first.Fixture; i++ {
			checks, ok = append(checks, v.rows[i].Check), ok && v.rows[i].OK
		}
		line(first.Fixture, checks, ok)
	}
	_ = t.Flush()
	for _, r := range v.rows {
		for _, text := range r.Findings {
			at := r.Check
			if r.Fixture != "" {
				at = r.Fixture + ": " + at
			}
			fmt.Fprintf(w, "\n%s: %s\n", printable(at), strings.Join(printableLines(text), "\n    "))
		}
	}
}

func (v *verdicts) printSum(w io.Writer) {
	result := "pass"
	if !v.OK {
		result = "FAIL"
	}
	fmt.Fprintf(w, "\n%s  %s %s: %d calls in %.1f s\n", result, v.Plugin, v.Version, v.Calls, float64(v.Took)/1000)
}

func printableLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines
}

// fixtureSet is the fixtures of a folder, as they are written and as they are read.
type fixtureSet struct {
	dir    string
	files  []fixtureFile
	parsed []conformance.Fixture
}

type fixtureFile struct {
	name    string // without .txtar
	archive *txtar.Archive
	added   map[string]bool // parts that are not in the file: nothing of them is known yet
}

// expected are the parts of a fixture that say what must come out, with a text that nothing
// equals: it stands in for one that is empty, to be filled in.
var expected = map[string]string{
	"provider.json": "null", "want.json": "null", "failure.json": "null", "error.json": "null", "verdict.json": "null", "provider.head": "-",
}

// missing adds the parts of a fixture that would say what must come out of a step about which it
// says nothing: of a request, and of an answer.
func (f *fixtureFile) missing(kind string) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(f.archive.Files, func(x txtar.File) bool { return slices.Contains(names, x.Name) })
	}
	add := func(names ...string) {
		for _, name := range names {
			f.archive.Files = append(f.archive.Files, txtar.File{Name: name, Data: []byte(expected[name] + "\n")})
			f.added[name] = true
		}
	}
	switch answered := has("answer.json", "stream.sse", "stream.ndjson", "stream.frames"); {
	case kind == wasm.KindGuard:
		if !has("verdict.json", "error.json") {
			add("verdict.json")
		}
	case has("request.json") && !has("provider.json", "provider.head", "error.json"):
		add("provider.head", "provider.json")
		fallthrough
	default:
		if answered && !has("want.json", "failure.json", "error.json") {
			add("want.json")
		}
	}
}

// readFixtures reads a folder; "" has none. fill says that parts may be empty or missing; kind is
// the plugin's.
func readFixtures(dir string, fill bool, kind string) (*fixtureSet, error) {
	s := &fixtureSet{dir: dir}
	if dir == "" {
		return s, nil
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := readBounded(path, maxPluginFile)
		if err != nil {
			return nil, err
		}
		a := txtar.Parse(text)
		for i := range a.Files {
			x := &a.Files[i]
			if stand, ok := expected[x.Name]; ok && fill && len(bytes.TrimSpace(x.Data)) == 0 {
				x.Data = []byte(stand + "\n")
			}
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		file := fixtureFile{name, a, map[string]bool{}}
		if fill {
			file.missing(kind)
		}
		x, err := conformance.ParseFixture(name, txtar.Format(a))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.files = append(s.files, file)
		s.parsed = append(s.parsed, *x)
	}
	return s, nil
}

func (s *fixtureSet) file(name string) *fixtureFile {
	if i := slices.IndexFunc(s.files, func(f fixtureFile) bool { return f.name == name }); i >= 0 {
		return &s.files[i]
	}
	return nil
}

// part is the text of a fixture's part.
func (s *fixtureSet) part(a conformance.Answer) (file *fixtureFile, part *txtar.File) {
	for i := range s.files {
		if s.files[i].name != a.Fixture {
			continue
		}
		for k := range s.files[i].archive.Files {
			if x := &s.files[i].archive.Files[k]; x.Name == a.Part {
				return &s.files[i], x
			}
		}
	}
	return nil, nil
}

// write puts answers into the fixtures and returns the files that changed.
func (s *fixtureSet) write(answers []conformance.Answer) (wrote []string, err error) {
	changed := map[*fixtureFile]bool{}
	for _, a := range answers {
		file, part := s.part(a)
		if part == nil {
			if file = s.file(a.Fixture); file == nil || len(file.added) == 0 {
				continue
			}
			file.archive.Files = append(file.archive.Files, txtar.File{Name: a.Part})
			part = &file.archive.Files[len(file.archive.Files)-1]
		}
		part.Data = append(indented(a.Text), '\n')
		delete(file.added, a.Part)
		changed[file] = true
	}
	for i := range s.files {
		file := &s.files[i]
		if !changed[file] {
			continue
		}
		file.archive.Files = slices.DeleteFunc(file.archive.Files, func(x txtar.File) bool { return file.added[x.Name] })
		path := filepath.Join(s.dir, file.name+".txtar")
		if err := writeWhole(path, txtar.Format(file.archive)); err != nil {
			return wrote, err
		}
		wrote = append(wrote, path)
	}
	return wrote, nil
}

func indented(text []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(text), "", "  ") != nil {
		return bytes.TrimSpace(text)
	}
	return b.Bytes()
}

// printDifferences shows where answers are not what the fixtures want, line by line.
func (s *fixtureSet) printDifferences(w io.Writer, answers []conformance.Answer) {
	for _, a := range answers {
		_, part := s.part(a)
		if part == nil {
			continue
		}
		want, got := part.Data, a.Text
		if a.Part != "provider.head" {
			want, got = comparableJSON(part.Data, a.Text, a.Part == "provider.json")
		}
		fmt.Fprintf(w, "\n%s, %s: - wanted, + answered\n", printable(a.Fixture), a.Part)
		for _, line := range around(lineDiff(splitLines(want), splitLines(got))) {
			fmt.Fprintln(w, printable(line))
		}
	}
}

// comparableJSON writes both with their members sorted; got without what want does not name,
// unless all counts.
func comparableJSON(want, got []byte, all bool) (w, g []byte) {
	var a, b any
	if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
		return want, got
	}
	if !all {
		b = named(a, b)
	}
	w, errW := json.MarshalIndent(a, "", "  ")
	g, errG := json.MarshalIndent(b, "", "  ")
	if cmp.Or(errW, errG) != nil {
		return want, got
	}
	return w, g
}

// named is what want names of got.
func named(want, got any) any {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return got
		}
		part := map[string]any{}
		for key, v := range w {
			if have, ok := g[key]; ok {
				part[key] = named(v, have)
			} else if v == nil {
				part[key] = nil // absent is as good
			}
		}
		return part
	case []any:
		g, ok := got.([]any)
		if !ok {
			return got
		}
		part := make([]any, len(g))
		for i := range g {
			if part[i] = g[i]; i < len(w) {
				part[i] = named(w[i], g[i])
			}
		}
		return part
	}
	return got
}

func splitLines(b []byte) []string { return strings.Split(strings.TrimSpace(string(b)), "\n") }

const maxDiffLines = 2000 // of each side; beyond, both are shown

// lineDiff is the lines of both, those that only one has marked.
func lineDiff(a, b []string) (out []string) {
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		return append(marked("-", a), marked("+", b)...)
	}
	// length[i][j]: of the longest common subsequence of a[i:] and b[j:]
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	return append(append(out, marked("-", a[i:])...), marked("+", b[j:])...)
}

const diffContext = 3 // lines shown around a difference

// around leaves out what is far from any difference.
func around(lines []string) (out []string) {
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l[0] == ' ' {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(lines)-1, i+diffContext); k++ {
			near[k] = true
		}
	}
	for i, l := range lines {
		switch {
		case near[i]:
			out = append(out, l)
		case i == 0 || near[i-1]:
			out = append(out, "  …")
		}
	}
	return out
}

func marked(mark string, lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, mark+" "+l)
	}
	return out
}

// guestLog is the log of a plugin that is tried out; w may be nil.
func guestLog(w io.Writer) *slog.Logger {
	if w == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
