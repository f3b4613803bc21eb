package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// setting is a gateway to be started: its configuration as a value, to be changed before.
// JSON is YAML.
type setting struct {
	name     string
	file     object
	dir      string
	binary   string // the gateway's
	base     string // of the upstream's URLs, without /v1
	tls      bool
	profiled string // directory for profiles; the gateway then runs inside this program's binary
}

type (
	object = map[string]any
	list   = []any
)

// setting is the whole product with its defaults: the default policy, the ledger in SQLite
// with group commit, logs at info (to a file). Only the channel's concurrency is raised above
// its default, to what the benchmark asks of one channel.
func (g *ground) setting(name string) (*setting, error) {
	dir, err := g.folder("gateway")
	if err != nil {
		return nil, err
	}
	addr, err := g.freeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := g.freeAddr()
	if err != nil {
		return nil, err
	}
	s := &setting{name: name, dir: dir, binary: g.interlock, base: fmt.Sprintf("http://%s/%s", g.addr, filepath.Base(dir))}
	s.file = object{
		"version": 1, "watch": false,
		"listen":   object{"address": addr, "drain_delay": "0s", "drain_timeout": "1s"},
		"admin":    object{"listen": admin},
		"data_dir": filepath.Join(dir, "data"),
		"storage":  object{"url": "sqlite:" + filepath.Join(dir, "ledger.db")},
		"providers": object{
			"upstream": object{"adapter": "openai", "base_url": s.base + "/v1"},
		},
		"groups": list{object{"name": "bench", "channels": list{channel("one", "upstream")}}},
		"keys":   list{object{"name": "bench", "key": benchKey, "groups": list{"bench"}}},
		"log":    object{"level": "info", "format": "json"},
	}
	return s, nil
}

func channel(name, provider string) object {
	return object{"name": name, "provider": provider, "credential": sentKey, "max_concurrency": 8192, "models": "*"}
}

// under is the object of that name in the file, made where there is none.
func (s *setting) under(name string) object {
	o, ok := s.file[name].(object)
	if !ok {
		o = object{}
		s.file[name] = o
	}
	return o
}

// first puts a channel before the good one; its provider is at another URL.
func (s *setting) first(name, baseURL string, more object) {
	s.under("providers")[name] = object{"adapter": "openai", "base_url": baseURL}
	c := channel(name, name)
	c["priority"] = 1
	for k, v := range more {
		c[k] = v
	}
	group := s.file["groups"].(list)[0].(object)
	group["channels"] = append(list{c}, group["channels"].(list)...)
}

// adapter replaces the adapter: plugin:NAME or native:NAME. A plugin is one of those that come
// with the gateway; its compiled form is copied from where it was made, if it was.
func (s *setting) adapter(g *ground, ref string) error {
	s.under("providers")["upstream"] = object{"adapter": ref, "base_url": s.base, "auth": "header:x-api-key"}
	name, ok := strings.CutPrefix(ref, "plugin:")
	if !ok {
		return nil
	}
	s.file["plugins"] = list{object{"name": name, "source": "builtin:" + name}}
	if g.plugins == "" {
		return nil
	}
	to := s.file["data_dir"].(string)
	if err := os.CopyFS(to, os.DirFS(g.plugins)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
}

// write puts the configuration into a file, a value a line.
func (s *setting) write(file string) error {
	text, err := json.MarshalIndent(s.file, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// begin starts the gateway.
func (s *setting) begin() (*target, error) {
	file := filepath.Join(s.dir, "interlock.yaml")
	if err := s.write(file); err != nil {
		return nil, err
	}
	admin := s.under("admin")["listen"].(string)
	binary, args := s.binary, []string{"serve", "--config", file}
	if s.profiled != "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return nil, err
		}
		args = []string{childProfiled, "-config", file, "-into", s.profiled}
	}
	t := &target{
		name: s.name, addr: s.under("listen")["address"].(string), path: chatPath, tls: s.tls,
		headers: headers{"Authorization": "Bearer " + benchKey}, admin: "http://" + admin, caller: filepath.Base(s.dir),
	}
	return t, t.begin(t.admin+"/readyz", filepath.Join(s.dir, "log"), binary, args...)
}

// beginGateway starts a gateway as it comes.
func (g *ground) beginGateway(name string) (*target, error) {
	s, err := g.setting(name)
	if err != nil {
		return nil, err
	}
	return s.begin()
}

// book is what one gateway's ledger and the upstream say of the same calls.
type book struct {
	Target   string `json:"target"`
	Requests int    `json:"requests"` // in the ledger
	Attempts int    `json:"attempts"` // in the ledger
	Unsent   int    `json:"unsent"`   // of these, attempts on a channel that nothing listens behind (from the metrics)
	Calls    int    `json:"calls"`    // that the upstream counted
}

func (b book) agree() bool { return b.Attempts-b.Unsent == b.Calls }

// close ends a target; a gateway's books are closed before.
func (g *ground) close(ctx context.Context, t *target) error {
	if t == nil || t.process == nil || t.process == g.upstream {
		return nil
	}
	defer t.end()
	if t.admin == "" {
		return nil
	}
	var usage struct {
		Total struct{ Requests, Attempts int }
	}
	text, err := fetchText(ctx, t.admin+"/admin/v1/usage")
	if err == nil {
		err = json.Unmarshal(text, &usage)
	}
	if err != nil {
		return fmt.Errorf("%s: its ledger: %w", t.name, err)
	}
	counts, err := g.counts(ctx)
	if err != nil {
		return err
	}
	metrics, err := fetchText(ctx, t.admin+"/metrics")
	if err != nil {
		return err
	}
	b := book{Target: t.name, Requests: usage.Total.Requests, Attempts: usage.Total.Attempts, Calls: counts[t.caller]}
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "interlock_attempts_total{") && strings.Contains(line, `channel="`+refusedChannel+`"`) {
			f := strings.Fields(line)
			n, _ := strconv.ParseFloat(f[len(f)-1], 64)
			b.Unsent += int(n)
		}
	}
	g.books = append(g.books, b)
	return nil
}

// refusedChannel is the name of a channel behind which nothing listens: its attempts are in
// the ledger and no call of the upstream.
const refusedChannel = "refused"

func (g *ground) counts(ctx context.Context) (map[string]int, error) {
	text, err := fetchText(ctx, "http://"+g.addr+"/control/counts")
	if err != nil {
		return nil, fmt.Errorf("the upstream: %w", err)
	}
	counts := map[string]int{}
	return counts, json.Unmarshal(text, &counts)
}

// tell sets the upstream's switches.
func (g *ground) tell(ctx context.Context, what string) error {
	_, err := fetchText(ctx, "http://"+g.addr+"/control/"+what)
	return err
}

func fetchText(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", url, resp.Status, b)
	}
	return b, err
}
