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

// target is something that answers requests: a proxy in front of the upstream, or the upstream
// itself.
type target struct {
	*process          // nil: its processor time and memory are not known
	name     string   // "gateway", "nginx", "direct", a variant's or a peer's name
	addr     string   // of its callers' side
	path     string   // where chat completions are
	headers  headers  // of every request
	models   models   // its names of our models, where they differ
	loads    []string // the loads that it takes part in; none = all
	ready    time.Duration
	admin    string // the gateway's operators' side; "" = no gateway
	caller   string // by which the upstream counts its calls
	tls      bool   // its callers' side is encrypted
}

type (
	headers map[string]string
	models  map[string]string
)

// The keys of the gateway's callers, and what it sends upstream.
const (
	benchKey = "ilk-bench-0123456789"
	sentKey  = "sk-upstream-0123456789"
)

const chatPath = "/v1/chat/completions"

// takes says whether a load of this kind is for the target.
func (t *target) takes(k kind) bool {
	if len(t.loads) == 0 {
		return true
	}
	for _, l := range t.loads {
		if l == k.name {
			return true
		}
	}
	return false
}

// ground is where one run lives: a directory, the binaries, the upstream, and what was started
// on it.
type ground struct {
	dir       string
	interlock string // the binary
	nginx     string // the binary, "" where there is none
	upstream  *process
	addr      string // of the upstream
	plugins   string // a data directory whose plugin cache is warm, "" as long as there is none
	count     int    // of targets, for their files
	port      int    // the last that was handed out, from 12000
	books     []book
}

// prepare builds the gateway unless its binary is given, looks for nginx and starts the
// upstream.
func prepare(ctx context.Context, upstreamAt, binary string) (*ground, error) {
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	g := &ground{dir: dir, interlock: filepath.Join(dir, "interlock"), port: os.Getpid() % 18000}
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's workers are another user's
		return nil, err
	}
	if binary != "" {
		g.interlock, err = filepath.Abs(binary)
	} else {
		err = g.build(ctx)
	}
	if err != nil {
		g.end()
		return nil, err
	}
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if g.nginx, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err := g.beginUpstream(upstreamAt); err != nil {
		g.end()
		return nil, fmt.Errorf("the upstream: %w", err)
	}
	return g, nil
}

func (g *ground) build(ctx context.Context) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", g.interlock, "github.com/interlock-gateway/interlock/cmd/interlock")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building the gateway: %w: %s", err, out)
	}
	return nil
}

func (g *ground) beginUpstream(at string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if g.upstream, err = begin(filepath.Join(g.dir, "upstream.log"), self, childUpstream, "-listen", at); err != nil {
		return err
	}
	return g.upstream.until(10*time.Second, func() bool {
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

// direct is the upstream without anything in front of it.
func (g *ground) direct() *target {
	return &target{process: g.upstream, name: "direct", addr: g.addr, path: chatPath, headers: headers{"Authorization": "Bearer " + sentKey}}
}

// freeAddr is an address where nothing listens, handed out once. It is below the ports that
// the kernel gives to outgoing connections, so that none of thousands of these takes it.
func (g *ground) freeAddr() (string, error) {
	for range 10000 {
		g.port = 12000 + (g.port+1)%18000
		addr := fmt.Sprintf("127.0.0.1:%d", g.port)
		ln, err := net.Listen("tcp4", addr)
		if err == nil {
			return addr, ln.Close()
		}
	}
	return "", errors.New("no free port from 12000 to 30000")
}

// folder makes a directory for a target's files.
func (g *ground) folder(name string) (string, error) {
	g.count++
	dir := filepath.Join(g.dir, fmt.Sprintf("%s-%d", name, g.count))
	return dir, os.Mkdir(dir, 0o755)
}

const nginxFile = `daemon off;
worker_processes 2;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log warn;
worker_rlimit_nofile 20000;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  client_max_body_size 0;
  keepalive_requests 100000000;
  upstream bench { server %[3]s; keepalive 2048; keepalive_requests 100000000; }
  server {
    listen %[2]s backlog=4096;
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Authorization "Bearer ` + sentKey + `";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 10m;
    }
    location = /readyz { return 200; }
  }
}
`

// beginNginx starts nginx: as many workers as the reference machine has cores, connections
// to the upstream kept, nothing buffered, nothing logged.
func (g *ground) beginNginx() (*target, error) {
	dir, err := g.folder("nginx")
	if err != nil {
		return nil, err
	}
	addr, err := g.freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxFile, dir, addr, g.addr), 0o600); err != nil {
		return nil, err
	}
	t := &target{name: "nginx", addr: addr, path: chatPath, headers: headers{"Authorization": "Bearer " + benchKey}}
	return t, t.begin("http://"+addr+"/readyz", filepath.Join(dir, "log"), g.nginx, "-c", file, "-p", dir)
}

// begin starts the target and waits until it says that it is ready.
func (t *target) begin(readyURL, log, binary string, args ...string) (err error) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	start := time.Now()
	if t.process, err = begin(log, binary, args...); err != nil {
		return err
	}
	err = t.until(2*time.Minute, func() bool {
		resp, err := client.Get(readyURL)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	if err != nil {
		t.end()
		return fmt.Errorf("%s: %w", t.name, err)
	}
	t.ready = time.Since(start)
	return nil
}
