package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// target is a proxy in front of the upstream, running.
type target struct {
	*process
	name  string
	addr  string
	ready time.Duration // from its start to its first ready answer
}

// ground is where one run of this program lives: a directory, the upstream, the binaries.
type ground struct {
	dir       string
	interlock string // the binary
	nginx     string // the binary, "" where there is none
	upstream  *process
	addr      string // of the upstream
	count     int    // of targets, for their files
}

// prepare builds the gateway, looks for nginx and starts the upstream.
func prepare(ctx context.Context, slowFor time.Duration) (*ground, error) {
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	g := &ground{dir: dir, interlock: filepath.Join(dir, "interlock")}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", g.interlock, "github.com/interlock-gateway/interlock/cmd/interlock")
	if out, err := build.CombinedOutput(); err != nil {
		g.end()
		return nil, fmt.Errorf("building the gateway: %w: %s", err, out)
	}
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if g.nginx, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err := g.beginUpstream(slowFor); err != nil {
		g.end()
		return nil, err
	}
	return g, nil
}

func (g *ground) beginUpstream(slowFor time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	g.upstream, err = begin(filepath.Join(g.dir, "upstream.log"), self, partUpstream, "-slow-for", slowFor.String())
	if err != nil {
		return err
	}
	return until(g.upstream, 10*time.Second, func() bool {
		b, _ := os.ReadFile(g.upstream.log)
		line, _, whole := strings.Cut(string(b), "\n")
		g.addr = line
		return whole
	})
}

func (g *ground) end() {
	if g.upstream != nil {
		g.upstream.end()
	}
	_ = os.RemoveAll(g.dir)
}

// until waits for something that a child is to reach.
func until(p *process, most time.Duration, reached func() bool) error {
	for end := time.Now().Add(most); !reached(); {
		select {
		case <-p.ended:
			return errors.New("it ended early: " + p.output())
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("not ready within %v: %s", most, p.output())
		}
	}
	return nil
}

// freeAddr is an address that was free a moment ago.
func freeAddr() (string, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// gatewayFile is the whole product with its defaults: the default policy, the ledger in
// SQLite with group commit, logs at info (to a file). Only the channel's concurrency is
// raised above its default, to what the benchmark asks of one channel.
const gatewayFile = `version: 1
watch: false
listen: {address: "%s", drain_delay: 0s, drain_timeout: 1s}
admin: {listen: "%s"}
data_dir: %s
storage: {url: "sqlite:%s"}
providers:
  upstream: {adapter: openai, base_url: "http://%s/v1"}
groups:
  - name: bench
    channels:
      - {name: one, provider: upstream, credential: sk-upstream-0123456789, max_concurrency: 4096, models: "*"}
keys:
  - {name: bench, key: %s, groups: [bench]}
log: {level: info, format: json}
`

// beginGateway starts a gateway with a file and a ledger of its own. With a profile it runs
// inside this program's binary, which is the same code, and writes its profile at its end.
func (g *ground) beginGateway(profile string) (*target, error) {
	g.count++
	dir := filepath.Join(g.dir, fmt.Sprintf("gateway-%d", g.count))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "interlock.yaml")
	text := fmt.Sprintf(gatewayFile, addr, admin, filepath.Join(dir, "data"), filepath.Join(dir, "ledger.db"), g.addr, benchKey)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	binary, args := g.interlock, []string{"serve", "--config", file}
	if profile != "" {
		if binary, err = os.Executable(); err != nil {
			return nil, err
		}
		args = []string{partProfiled, "-config", file, "-profile", profile}
	}
	return beginTarget("gateway", addr, "http://"+admin+"/readyz", filepath.Join(dir, "log"), binary, args...)
}

const nginxFile = `daemon off;
worker_processes 2;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log warn;
worker_rlimit_nofile 20000;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 100000000;
  upstream bench { server %[3]s; keepalive 2048; keepalive_requests 100000000; }
  server {
    listen %[2]s backlog=4096;
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Authorization "Bearer sk-upstream-0123456789";
      proxy_buffering off;
    }
    location = /readyz { return 200; }
  }
}
`

// beginNginx starts nginx: as many workers as the reference machine has cores, connections
// to the upstream kept, nothing buffered, nothing logged.
func (g *ground) beginNginx() (*target, error) {
	g.count++
	dir := filepath.Join(g.dir, fmt.Sprintf("nginx-%d", g.count))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(g.dir, 0o755); err != nil { // its workers are another user's
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxFile, dir, addr, g.addr), 0o600); err != nil {
		return nil, err
	}
	return beginTarget("nginx", addr, "http://"+addr+"/readyz", filepath.Join(dir, "log"), g.nginx, "-c", file, "-p", dir)
}

// beginTarget starts the proxy and waits until it says that it is ready.
func beginTarget(name, addr, readyURL, log, binary string, args ...string) (*target, error) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	start := time.Now()
	p, err := begin(log, binary, args...)
	if err != nil {
		return nil, err
	}
	err = until(p, 30*time.Second, func() bool {
		resp, err := client.Get(readyURL)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	if err != nil {
		p.end()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &target{process: p, name: name, addr: addr, ready: time.Since(start)}, nil
}
