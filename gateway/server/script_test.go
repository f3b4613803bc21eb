package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/interlock-gateway/interlock/policies"
)

var update = flag.Bool("update", false, "rewrite the expected parts of testdata/script")

// TestScripts runs every story of testdata/script. One is a txtar archive:
//
//	interlock.yaml    the configuration
//	policy.cells      optional: cells of the default matrix that are another, one a line:
//	                  class phase action cell
//	policy/PATH       optional: a file of the default bundle that is another, or a further one
//	NAME.fault        what the provider NAME does
//	N.request         a caller's request: method and path, headers, an empty line, the body
//	N.background      the same, but not waited for before the next one
//	N.answer          expected: status, headers, an empty line, the body
//	N.ledger          expected: a line for each attempt, then the request's own
//	calls             expected: how many calls each provider got
//
// The changed bundle is the only one, with default settings; a configuration with a policy section
// of its own names its folder as {{policy}}.
//
// In an expected part "…" stands for anything on its line. go test -run TestScripts -update
// rewrites the expected parts that do not hold.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runScript(t, file)
		})
	}
}

// story is one archive while it runs.
type story struct {
	t       *testing.T
	file    string
	archive *txtar.Archive
	changed bool
}

func runScript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	s := &story{t: t, file: file, archive: archive}
	yaml := s.part("interlock.yaml")
	require.NotEmpty(t, yaml, "interlock.yaml is missing")
	if dir := s.policy(); dir != "" {
		if !strings.Contains(yaml, "{{policy}}") {
			yaml += "\npolicy: {bundles: [{name: story, path: \"{{policy}}\"}]}\n"
		}
		yaml = strings.ReplaceAll(yaml, "{{policy}}", dir)
	}
	st := setUp(t, s.scripts(), yaml)
	answers, order := s.ask(st)
	for _, n := range order {
		a := <-answers[n]
		require.NoError(t, a.Err, "request %s", n)
		s.expect(n+".answer", a.text())
		if s.wants(n, a) {
			s.expect(n+".ledger", st.recordOf(a.ID(), s.authorization(n)).text())
		}
	}
	var calls strings.Builder
	for _, name := range sortedKeys(st.providers) {
		fmt.Fprintf(&calls, "%s %d\n", name, st.providers[name].Count())
	}
	s.expect("calls", calls.String())
	if s.changed {
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
	}
}

// ask makes the story's requests, in their order.
func (s *story) ask(st *stand) (answers map[string]chan *answer, order []string) {
	s.t.Helper()
	answers = map[string]chan *answer{}
	for _, f := range s.archive.Files {
		if n, ok := strings.CutSuffix(f.Name, ".request"); ok {
			answers[n] = make(chan *answer, 1)
			order = append(order, n)
			answers[n] <- st.ask(string(f.Data))
		}
		if n, ok := strings.CutSuffix(f.Name, ".background"); ok {
			c, before := make(chan *answer, 1), st.count()
			answers[n] = c
			order = append(order, n)
			go func() { c <- st.ask(string(f.Data)) }()
			require.Eventually(s.t, func() bool { return st.count() > before }, 20*time.Second, 2*time.Millisecond, "request %s reached no provider", n)
		}
	}
	require.NotEmpty(s.t, order, "the story has no request")
	return answers, order
}

// wants reports whether the ledger of request n is looked at: where the story has one, and for
// -update wherever there is one, which is not so for what never got to a key and an endpoint.
func (s *story) wants(n string, a *answer) bool {
	if !*update {
		return s.part(n+".ledger") != ""
	}
	posted := strings.HasPrefix(s.part(n+".request")+s.part(n+".background"), "POST /v1/")
	return posted && a.Header.Get("interlock-attempts") != "" && a.Status != 401
}

func (s *story) part(name string) string {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// authorization is what request n shows.
func (s *story) authorization(n string) string {
	head, _, _ := strings.Cut(s.part(n+".request")+s.part(n+".background"), "\n\n")
	for line := range strings.Lines(head) {
		if shown, ok := strings.CutPrefix(line, "Authorization:"); ok {
			return strings.TrimSpace(shown)
		}
	}
	return "Bearer " + callersKey
}

// policy is the folder of the story's own bundle, "" where it has none.
func (s *story) policy() (dir string) {
	if cells := s.part("policy.cells"); cells != "" {
		dir = policyDir(s.t)
		setCells(s.t, dir, cells)
	}
	for _, f := range s.archive.Files {
		if path, ok := strings.CutPrefix(f.Name, "policy/"); ok {
			if dir == "" {
				dir = policyDir(s.t)
			}
			require.NoError(s.t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(path)), f.Data, 0o600))
		}
	}
	return dir
}

func (s *story) scripts() map[string]string {
	scripts := map[string]string{}
	for _, f := range s.archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".fault"); ok {
			scripts[name] = string(f.Data)
		}
	}
	return scripts
}

// expect compares what happened with the part of that name, or rewrites the part.
func (s *story) expect(name, got string) {
	s.t.Helper()
	if !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	want := s.part(name)
	if matches(want, got) {
		return
	}
	if !*update {
		require.Equal(s.t, want, got, "%s: %s", s.file, name)
	}
	s.changed = true
	for i, f := range s.archive.Files {
		if f.Name == name {
			s.archive.Files[i].Data = []byte(got)
			return
		}
	}
	s.archive.Files = append(s.archive.Files, txtar.File{Name: name, Data: []byte(got)})
}

// matches reports whether got is want, in which "…" stands for anything on its line.
func matches(want, got string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", "[^\n]*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}

// count is how many calls all providers got together.
func (st *stand) count() int {
	n := 0
	for _, p := range st.providers {
		n += p.Count()
	}
	return n
}

// ask sends a request as a story writes it.
func (st *stand) ask(text string) *answer {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	var headers []string
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		headers = append(headers, name, strings.TrimSpace(value))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a, err := st.send(ctx, method, path, strings.TrimSpace(body), headers...)
	if err != nil {
		return &answer{Err: err}
	}
	return a
}

// send calls the gateway with any method; of headers, Authorization may be another, or empty.
func (st *stand) send(ctx context.Context, method, path, body string, headers ...string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+st.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+callersKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if req.Header.Get("Authorization") == "" {
		req.Header.Del("Authorization")
	}
	resp, err := st.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return &answer{Status: resp.StatusCode, Header: resp.Header, Body: string(b), Err: err}, nil
}

// shownHeaders are the headers that a story shows, in this order.
var shownHeaders = []string{
	"content-type", "interlock-attempts", "interlock-cause", "interlock-route", "interlock-model",
	"interlock-requested-model", "interlock-substitution", "interlock-correlation-id", "x-should-retry", "retry-after",
}

// volatile are the parts of an answer that differ from run to run, and what stands for them.
var volatile = []struct {
	at   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`req_[0-9A-HJKMNP-TV-Z]{26}`), "req_ID"},
	{regexp.MustCompile(`"created(_at)?":\d+`), `"created$1":0`},
	{regexp.MustCompile(`(?m)^(:\n+)+`), ":\n"}, // as many heartbeats as there was time for
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
}

func (a *answer) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", a.Status)
	for _, name := range shownHeaders {
		if v := a.Header.Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	text := b.String() + "\n" + strings.TrimRight(strings.ReplaceAll(a.Body, "\r\n", "\n"), "\n")
	for _, v := range volatile {
		text = v.at.ReplaceAllString(text, v.with)
	}
	return text
}

func (r *record) text() string {
	var b strings.Builder
	for _, a := range r.Attempts {
		fmt.Fprintf(&b, "%d %s %s/%s/%s", a.Number, a.Cause, a.Group, a.Channel, a.Model)
		if a.Class != "" {
			fmt.Fprintf(&b, " %s %s", a.Class, a.Phase)
		}
		fmt.Fprintf(&b, " %s\n", a.Terminal)
	}
	fmt.Fprintf(&b, "%s %d\n", r.Terminal, r.Status)
	return b.String()
}

// policyDir is a copy of the default bundle in a folder of its own.
func policyDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, policies.Files))
	return dir
}

// setCells changes cells of the matrix in dir, each a line: class phase action cell.
func setCells(t *testing.T, dir, cells string) {
	t.Helper()
	path := filepath.Join(dir, "interlock", "matrix", "data.json")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var matrix map[string]map[string]map[string]string
	require.NoError(t, json.Unmarshal(b, &matrix))
	for line := range strings.Lines(cells) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		require.Len(t, f, 4, "a cell is: class phase action cell")
		require.Contains(t, matrix[f[0]][f[1]], f[2], line)
		matrix[f[0]][f[1]][f[2]] = f[3]
	}
	b, err = json.MarshalIndent(matrix, "", "  ")
	require.NoError(t, err)
	// Moved into place: a watcher never sees half of it.
	require.NoError(t, os.WriteFile(path+".new", b, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}
