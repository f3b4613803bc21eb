package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

var update = flag.Bool("update", false, "rewrite the golden outputs in testdata/policy")

const policyData = "testdata/policy/"

// digests differ with every change of the default bundle.
var digests = regexp.MustCompile(`@(\S*-)?[0-9a-f]{12}`)

// policyGolden runs a policy command and holds its output to a file.
func policyGolden(t *testing.T, name string, status int, args ...string) {
	t.Helper()
	got, out, errs := interlockRun(t, append([]string{"policy"}, args...)...)
	require.Equal(t, status, got, "%s\n%s", out, errs)
	text := digests.ReplaceAllString(out, "@DIGEST")
	if errs != "" {
		text += "---- stderr\n" + digests.ReplaceAllString(errs, "@DIGEST")
	}
	path := filepath.Join("testdata", "policy", "golden", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), text)
}

func TestPolicyGoldens(t *testing.T) {
	if raceDetector {
		t.Skip("it computes for long and shares nothing")
	}
	for _, c := range []struct {
		name   string
		status int
		args   []string
	}{
		{"check_valid", 0, []string{"check", policyData + "cell"}},
		{"check_broken", 1, []string{"check", policyData + "broken"}},
		{"check_ugly", 1, []string{"check", policyData + "ugly"}},
		{"check_beside", 0, []string{"check", policyData + "cell", "--beside", policyData + "rules"}},
		{"check_overlap", 1, []string{"check", policyData + "cell", "--beside", policyData + "cell"}},
		{"test_failing", 1, []string{"test", policyData + "failing", "-v"}},
		{"test_run", 0, []string{"test", policyData + "failing", "--run", "test_holds"}},
		{"test_coverage", 1, []string{"test", policyData + "rules", "-v", "--threshold", "90"}},
		{"test_none", 1, []string{"test", policyData + "cell"}},
		{"matrix_cell", 0, []string{"matrix", policyData + "cell"}},
		{"matrix_markdown", 0, []string{"matrix", "-o", "markdown"}},
		{"diff_none", 0, []string{"diff", policyData + "cell", policyData + "cell"}},
		{"diff_rules", 1, []string{"diff", "builtin", policyData + "rules"}},
		{"diff_rules_markdown", 1, []string{"diff", policyData + "rules", "builtin", "-o", "markdown"}},
		{"diff_refused", 2, []string{"diff", "builtin", policyData + "broken"}},
		{"eval", 0, []string{"eval", "admission", policyData + "free.json", "--bundle", policyData + "rules", "--explain"}},
		{"eval_full", 0, []string{"eval", "admission", policyData + "free.json", "--bundle", policyData + "rules", "--explain=full"}},
		{"eval_misspelt", 1, []string{"eval", "admission", policyData + "misspelt.json"}},
	} {
		t.Run(c.name, func(t *testing.T) { policyGolden(t, c.name, c.status, c.args...) })
	}
}

// One cell of one alias: what differs is that cell, and all of it.
func TestPolicyDiffOfOneCell(t *testing.T) {
	if testing.Short() || raceDetector { // it computes for long and shares nothing
		t.Skip("it asks the whole domain of the replay point")
	}
	status, out, errs := interlockRun(t, "policy", "diff", "builtin", policyData+"cell", "-o", "json")
	require.Equal(t, 1, status, errs)
	var d struct {
		Changes []struct {
			Point   string                       `json:"point"`
			Kind    string                       `json:"kind"`
			When    map[string][]json.RawMessage `json:"when"`
			Old     policy.Verdict               `json:"old"`
			New     policy.Verdict               `json:"new"`
			Example json.RawMessage              `json:"example"`
		} `json:"changes"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.NotEmpty(t, d.Changes)
	cell, err := policy.Load(t.Context(), policy.Path("cell", policyData+"cell"), policy.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	for _, c := range d.Changes {
		require.Equal(t, "replay", c.Point)
		require.Equal(t, `["network"]`, text(t, c.When["failure.class"]))
		require.Equal(t, `["before_headers"]`, text(t, c.When["failure.phase"]))
		require.Equal(t, `["checkout"]`, text(t, c.When["request.alias"]))
		require.NotContains(t, c.New.Does, "same_route_retry")
		require.Equal(t, c.Kind == "decision", strings.Contains(c.Old.Does, "same_route_retry"))
		v, err := cell.Decide(t.Context(), policy.PointReplay, c.Example)
		require.NoError(t, err)
		require.Equal(t, c.New, v, "the example is one of the change")
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestPolicyNewPassesAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"new", "ours"}, {"check", "ours"}, {"test", "ours"}, {"matrix", "ours"}} {
		status, _, errs := interlockRun(t, append([]string{"policy"}, args...)...)
		require.Zero(t, status, "%v: %s", args, errs)
	}
	manifest, err := os.ReadFile("ours/.manifest")
	require.NoError(t, err)
	require.Contains(t, string(manifest), "interlock/overrides")
	status, _, errs := interlockRun(t, "policy", "new", "ours")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "is there already, and not empty")
	require.NoError(t, os.Mkdir("empty", 0o700))
	status, _, errs = interlockRun(t, "policy", "new", "empty")
	require.Zero(t, status, errs)
}

func TestPolicyCheckFixFormats(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(policyData+"ugly")))
	status, out, errs := interlockRun(t, "policy", "check", dir, "--fix")
	require.Zero(t, status, out)
	require.Contains(t, errs, "formatted "+filepath.Join(dir, "ugly_test.rego"))
	fixed, err := os.ReadFile(filepath.Join(dir, "ugly_test.rego"))
	require.NoError(t, err)
	require.Equal(t, "package ugly_test\n\ntest_spaces if 1 == 1\n", string(fixed))
	status, _, errs = interlockRun(t, "policy", "check", dir, "--fix")
	require.Zero(t, status)
	require.Empty(t, errs, "nothing is left to format")
}

func TestPolicyTestWritesJUnit(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.xml")
	status, _, _ := interlockRun(t, "policy", "test", policyData+"failing", "--junit", report)
	require.Equal(t, 1, status)
	b, err := os.ReadFile(report)
	require.NoError(t, err)
	var suites struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
				Output string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(b, &suites))
	require.Len(t, suites.Suites, 1)
	s := suites.Suites[0]
	require.Equal(t, "failing_test", s.Name)
	require.Equal(t, []int{2, 1}, []int{s.Tests, s.Failures})
	require.Nil(t, s.Cases[0].Failure)
	require.Contains(t, s.Cases[1].Failure.Message, "failing_test.rego:10")
	require.Contains(t, s.Cases[1].Output, "asked about network")
}

func TestPolicyBuild(t *testing.T) {
	dir := t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	require.NoError(t, err)
	key := filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	out := filepath.Join(dir, "b.tar.gz")
	status, said, errs := interlockRun(t, "policy", "build", policyData+"rules", "-o", out, "--revision", "r7",
		"--signing-key", key, "--signing-alg", "ES256", "--key-id", "ci", "--scope", "prod")
	require.Zero(t, status, errs)
	require.Contains(t, said, "roots interlock/admission, signed")
	require.NotContains(t, archived(t, out), "interlock/admission_test.rego")

	pinned, err := policy.ParseKey(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), "ci", "prod")
	require.NoError(t, err)
	r, err := policy.Load(t.Context(), policy.Path("b", out).SignedWith(pinned), policy.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	require.Contains(t, r.ID(), "b@r7-")

	unwritten := filepath.Join(dir, "none.tar.gz")
	for want, args := range map[string][]string{
		"-o FILE.tar.gz is required":   {"build", policyData + "rules"},
		"need --signing-key":           {"build", policyData + "rules", "-o", unwritten, "--key-id", "x"},
		"the key is one for ES256":     {"build", policyData + "rules", "-o", unwritten, "--signing-key", key, "--signing-alg", "RS256"},
		"allowed are RS256":            {"build", policyData + "rules", "-o", unwritten, "--signing-key", key, "--signing-alg", "none"},
		"no such file":                 {"build", policyData + "rules", "-o", unwritten, "--signing-key", key + "x"},
		"broken is refused":            {"build", policyData + "broken", "-o", unwritten},
		"printable characters at most": {"build", policyData + "rules", "-o", unwritten, "--revision", "a b"},
	} {
		status, _, errs := interlockRun(t, append([]string{"policy"}, args...)...)
		require.NotZero(t, status, args)
		require.Contains(t, errs, want)
	}
	_, err = os.Stat(unwritten)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// archived returns the names of the files in a bundle's archive.
func archived(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	var names []string
	for a := tar.NewReader(unzipped); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, strings.TrimPrefix(h.Name, "/"))
	}
}

func TestPolicyCommandsSayWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"no such file":                          {"check", "none"},
		"no decision point: allowed are admiss": {"eval", "reply", policyData + "free.json"},
		"a point and an input are required":     {"eval", "replay"},
		"not both":                              {"eval", "replay", "-", "--from-ledger", "req_x"},
		"--attempt, --point and --db are for":   {"eval", "replay", "-", "--attempt", "1"},
		"allowed are rules and full":            {"eval", "replay", "-", "--explain=all"},
		"allowed are table, markdown, json":     {"matrix", "-o", "xml"},
		"allowed are text, json, markdown":      {"diff", "builtin", "builtin", "-o", "xml"},
		"allowed are text, json":                {"replay", "builtin", "-o", "xml"},
		"not several":                           {"replay", "builtin", "--db", "sqlite:x", "--data-dir", "y"},
		"--run: error parsing regexp":           {"test", policyData + "rules", "--run", "("},
		"from 0 to 100":                         {"test", policyData + "rules", "--threshold", "101"},
		"--since":                               {"replay", "builtin", "--since", "soon"},
	} {
		status, out, errs := interlockRun(t, append([]string{"policy"}, args...)...)
		require.NotZero(t, status, args)
		require.Empty(t, out, args)
		require.Contains(t, errs, want, args)
	}
}

// decidedLedger makes a ledger with two requests that were decided on alike by the default
// bundle, and returns one's ID and the folder.
func decidedLedger(t *testing.T) (id, dir string) {
	t.Helper()
	dir = t.TempDir()
	ctx := context.Background()
	r, err := policy.Load(ctx, policy.Builtin(), policy.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	input := []byte(`{"failure":{"class":"network","phase":"before_headers","request_sent":true},"request":{"alias":"checkout",` +
		`"idempotent":true,"kind":"chat"},"key":{"labels":{"team":"a b"}},"attempt":{"number":1,"same_route":1},"candidates":{"same_route":1,"same_contract":1}}`)
	output, err := r.Evaluate(ctx, policy.PointReplay, input)
	require.NoError(t, err)
	db, err := storage.Open(ctx, storage.Options{URL: "sqlite:" + filepath.Join(dir, "interlock.db")})
	require.NoError(t, err)
	l, err := ledger.Open(ctx, ledger.Options{DB: db})
	require.NoError(t, err)
	for range 2 {
		record := l.Acquire()
		record.ReceivedAt = time.Now()
		record.ID = ledger.NewID(record.ReceivedAt)
		id = record.ID
		record.Key, record.Endpoint, record.RequestedModel, record.PolicyRevision = "web", "chat_completions", "m", r.ID()
		record.NextAttempt().Group = "g"
		record.Decisions = append(record.Decisions, ledger.Decision{Attempt: 1, Point: "replay", Input: input, Output: output, Revision: r.ID()})
		require.NoError(t, l.OpenAttempt(record, 1, nil))
		record.Attempt(1).End, record.Attempt(1).Class = failure.EndFailed, failure.Network
		l.CloseAttempt(record, 1)
		record.Terminal, record.Status = failure.Exhausted, 502
		l.CloseRequest(record)
	}
	require.NoError(t, l.Close(ctx))
	require.NoError(t, db.Close())
	return id, dir
}

func TestPolicyReplayAndEvalFromTheLedger(t *testing.T) {
	id, dir := decidedLedger(t)
	status, out, errs := interlockRun(t, "policy", "replay", policyData+"cell", "--since", "1h", "--data-dir", dir, "-o", "json")
	require.Zero(t, status, errs)
	var got struct {
		Requests  int `json:"requests"`
		Decisions int `json:"decisions"`
		Evaluated int `json:"evaluated"`
		Differ    int `json:"differ"`
		Reworded  int `json:"reworded"`
		Groups    []struct {
			Point     string         `json:"point"`
			Kind      string         `json:"kind"`
			Old       policy.Verdict `json:"old"`
			New       policy.Verdict `json:"new"`
			Decisions int            `json:"decisions"`
			Requests  []string       `json:"requests"`
		} `json:"groups"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, []int{2, 2, 1, 2, 0}, []int{got.Requests, got.Decisions, got.Evaluated, got.Differ, got.Reworded})
	require.Len(t, got.Groups, 1)
	require.Equal(t, "same_route_retry → same_contract_fallback", got.Groups[0].Old.Does)
	require.Equal(t, "same_contract_fallback", got.Groups[0].New.Does)
	require.Contains(t, got.Groups[0].Requests, id)

	status, out, errs = interlockRun(t, "policy", "replay", "builtin", "--data-dir", dir)
	require.Zero(t, status, errs)
	require.Contains(t, out, "2 decisions of 2 requests")
	require.Contains(t, out, "0 would differ")
	status, out, errs = interlockRun(t, "policy", "replay", "builtin", "--until", "2020-01-01", "--data-dir", dir)
	require.Zero(t, status, errs)
	require.Contains(t, out, "0 decisions of 0 requests")

	db := "--db=sqlite:" + filepath.Join(dir, "interlock.db")
	status, out, errs = interlockRun(t, "policy", "eval", "--from-ledger", id, "--attempt", "1", "--point", "replay", "--bundle", policyData+"cell", "--explain", db)
	require.Zero(t, status, errs)
	require.Contains(t, out, `then {"actions":["same_route_retry","same_contract_fallback","stop"]`)
	require.Contains(t, out, `now  {"actions":["same_contract_fallback","stop"]`)
	require.Contains(t, out, "data.interlock.replay.decision = ")
	status, _, errs = interlockRun(t, "policy", "eval", "--from-ledger", id, "--attempt", "2", db)
	require.Equal(t, 1, status)
	require.Contains(t, errs, "no such decision")

	status, out, errs = interlockRun(t, "ledger", "show", id, "--decisions", db)
	require.Zero(t, status, errs)
	for _, want := range []string{
		"decision 1  replay, attempt 1", "decided   same_route_retry → same_contract_fallback", "reason    lone_failure",
		"rule      matrix.network.before_headers", "revision  builtin@", "failure class=network phase=before_headers request_sent=true",
		`key labels={"team":"a b"}`,
	} {
		require.Contains(t, out, want)
	}
	status, out, errs = interlockRun(t, "ledger", "show", id, db)
	require.Zero(t, status, errs)
	require.NotContains(t, out, "decision 1")
}
