package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// peerFile names other gateways to be measured beside. They run already, somewhere on this
// machine, and ask the benchmark's upstream; bench/peers.example.yaml describes the keys.
type peerFile struct {
	// Upstream is where the benchmark's upstream listens, so that peers can be pointed to it.
	Upstream string `yaml:"upstream"`
	Peers    []peer `yaml:"peers"`
}

type peer struct {
	Name    string            `yaml:"name"`
	BaseURL string            `yaml:"base_url"`
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	Model   string            `yaml:"model"`
	Models  map[string]string `yaml:"models"`
	Loads   []string          `yaml:"loads"`
	PIDFile string            `yaml:"pid_file"`
}

// readPeers reads the file; where there is none there are no peers.
func readPeers(file string) (*peerFile, []*target, error) {
	f := &peerFile{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := yaml.UnmarshalWithOptions(text, f, yaml.Strict()); err != nil && strings.TrimSpace(string(text)) != "" {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []*target
	for i := range f.Peers {
		t, err := f.Peers[i].target()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: peers[%d]: %w", file, i, err)
		}
		all = append(all, t)
	}
	if len(all) > 0 && f.Upstream == "" {
		return nil, nil, fmt.Errorf("%s: upstream: the peers must be told a fixed address, such as 127.0.0.1:9180", file)
	}
	return f, all, nil
}

func (p *peer) target() (*target, error) {
	if p.Name == "" || slices.Contains([]string{"direct", "nginx", "gateway"}, p.Name) {
		return nil, fmt.Errorf("name %q: a name of its own is needed", p.Name)
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("base_url %q: http://HOST:PORT[/PATH] is needed (the load speaks plain HTTP/1.1)", p.BaseURL)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	path := p.Path
	if path == "" {
		path = chatPath
	}
	t := &target{name: p.Name, addr: addr, path: strings.TrimSuffix(u.Path, "/") + path, headers: headers{}, models: models{}, loads: p.Loads}
	for name, v := range p.Headers {
		if t.headers[name], err = expand(v); err != nil {
			return nil, fmt.Errorf("headers.%s: %w", name, err)
		}
	}
	for _, m := range []string{modelPlain, modelPaced, modelSlow} {
		if p.Model != "" && m == modelPlain {
			t.models[m] = p.Model
		}
		if to, ok := p.Models[m]; ok {
			t.models[m] = to
		}
	}
	for _, l := range p.Loads {
		if !slices.Contains([]string{post.name, stream.name, paced.name, slow.name}, l) {
			return nil, fmt.Errorf("loads: %q: there are %s, %s, %s and %s", l, post.name, stream.name, paced.name, slow.name)
		}
	}
	if p.PIDFile == "" {
		return t, nil
	}
	text, err := os.ReadFile(p.PIDFile)
	if err != nil {
		return nil, fmt.Errorf("pid_file: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return nil, fmt.Errorf("pid_file: %s holds no process ID", p.PIDFile)
	}
	t.process = &process{pid: pid}
	return t, nil
}

var environment = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts the environment's values in place of ${env:NAME}.
func expand(s string) (string, error) {
	var missing error
	s = environment.ReplaceAllStringFunc(s, func(ref string) string {
		name := environment.FindStringSubmatch(ref)[1]
		v, ok := os.LookupEnv(name)
		if !ok {
			missing = fmt.Errorf("the environment has no %s", name)
		}
		return v
	})
	return s, missing
}
