package server

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/fault"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// binaryDir holds the program, if a test needed it.
var binaryDir string

func TestMain(m *testing.M) {
	status := m.Run()
	for _, dir := range []string{binaryDir, modulesDir} {
		if dir != "" {
			_ = os.RemoveAll(dir) // what stays is in the system's folder for such things
		}
	}
	os.Exit(status)
}

// binary builds the program once for all tests that need it as a process.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "interlock-test")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "interlock")
	out, err := exec.Command("go", "build", "-o", path, "github.com/interlock-gateway/interlock/cmd/interlock").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// process is the program running as it would for a user.
type process struct {
	cmd   *exec.Cmd
	addr  string
	admin string
	out   *lockedBuffer
}

var listening = regexp.MustCompile(`callers at (\S+), operators at (\S+)`)

// serveProcess starts `interlock serve` and waits until it says where it listens.
func serveProcess(t *testing.T, config string) *process {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(path, "serve", "--config", config), out: &lockedBuffer{}}
	p.cmd.Stderr = p.out
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			p.addr, p.admin = m[1], m[2]
			go func() {
				for lines.Scan() { // it must never wait for its reader
				}
			}()
			return p
		}
	}
	t.Fatalf("the gateway did not start: %s", p.out.String())
	return nil
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // "signal: killed"
}

// After kill -9 the ledger is consistent: what was open is closed as unknown and its request
// as interrupted, and with durability sync no attempt that reached an upstream is missing.
func TestTheLedgerAfterAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills a process")
	}
	for _, durability := range []string{"sync", "group_commit"} {
		t.Run(durability, func(t *testing.T) {
			script := parse(t, "a", "on chat\n  chance 30%\n  status 500\non chat\n  chance 50%\n  delay 40ms\n")
			provider, err := fault.Start(fault.Options{Name: "a", Script: script})
			require.NoError(t, err)
			defer provider.Close()
			dir := t.TempDir()
			config := filepath.Join(dir, "interlock.yaml")
			require.NoError(t, os.WriteFile(config, []byte(crashConfig(provider.URL(), durability)), 0o600))
			for range 3 {
				p := serveProcess(t, config)
				done := besiege(p.addr)
				_, err := provider.WaitCalls(t.Context(), provider.Count()+40)
				require.NoError(t, err)
				p.kill(t)
				done.Wait()
			}
			p := serveProcess(t, config) // a start settles what the last kill left open
			p.kill(t)
			judgeLedger(t, filepath.Join(dir, "interlock.db"), provider.Count(), durability)
		})
	}
}

func crashConfig(url, durability string) string {
	return fmt.Sprintf(`
listen: {address: 127.0.0.1:0}
admin: {listen: 127.0.0.1:0}
storage: {ledger: {durability: %s}}
breaker: {consecutive_failures: 0, failure_ratio: 0}
providers:
  a: {adapter: openai, base_url: "%s/v1"}
groups:
  - name: g
    channels: [{name: a, provider: a, credential: sk-AAAA-canary-0001, models: {m: {}}}]
keys:
  - {name: k, key: %s, groups: [g]}
`, durability, url, callersKey)
}

// besiege keeps twenty callers asking until the gateway is gone.
func besiege(addr string) *sync.WaitGroup {
	var g sync.WaitGroup
	for i := range 20 {
		g.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for {
				body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"hi"}]}`, r.IntN(2) == 0)
				req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					return
				}
				req.Header.Set("Authorization", "Bearer "+callersKey)
				resp, err := client.Do(req)
				if err != nil {
					return
				}
				var b [4096]byte
				for err == nil {
					_, err = resp.Body.Read(b[:])
				}
				_ = resp.Body.Close() // read to its end, or cut by the kill
			}
		})
	}
	return &g
}

func judgeLedger(t *testing.T, path string, calls int, durability string) {
	t.Helper()
	db, err := storage.Open(t.Context(), storage.Options{URL: "sqlite:" + path, ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	attempts, interrupted := 0, 0
	for filter := (ledger.Filter{Limit: 1000}); ; {
		page, err := ledger.NewReader(db).List(t.Context(), filter)
		require.NoError(t, err)
		for _, r := range page.Requests {
			require.NotZero(t, r.Terminal, "request %s is open", r.ID)
			if r.Terminal.String() == "interrupted" {
				interrupted++
			}
			for i := range r.Attempts {
				a := &r.Attempts[i]
				require.NotZero(t, a.End, "attempt %d of %s is open", a.Number, r.ID)
				if a.End.String() == "unknown" {
					require.Equal(t, "interrupted", r.Terminal.String())
				}
			}
			attempts += len(r.Attempts)
		}
		if filter.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	t.Logf("%d calls upstream, %d attempts, %d requests interrupted", calls, attempts, interrupted)
	require.Positive(t, interrupted)
	if durability == "sync" {
		require.GreaterOrEqual(t, attempts, calls, "attempts that reached the upstream are missing")
	}
}
