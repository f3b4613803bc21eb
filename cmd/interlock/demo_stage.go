package main

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/fault"
	"github.com/interlock-gateway/interlock/gateway/server"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

//go:embed demo
var demoFiles embed.FS

// demoProviders are the scripted providers, in the order in which they are printed.
var demoProviders = []string{"north", "south", "east"}

// stage is the running demonstration: the providers, the gateway before them, a caller.
type stage struct {
	dir       string // removed at the end
	config    string // the gateway's configuration file, in dir
	policy    string // the policy bundle's directory; "" = the built-in one
	key       string // the caller's key
	providers map[string]*fault.Provider
	server    *server.Server
	log       *telemetry.Log
	logFile   *os.File // nil where the log goes elsewhere
	client    *http.Client
	stop      context.CancelFunc
	ended     chan error
}

// setStage starts everything. What was started before an error is stopped again.
func setStage(ctx context.Context, o demoOptions, stderr io.Writer) (*stage, error) {
	st := &stage{
		key: "ik-" + strings.ToLower(rand.Text()), providers: map[string]*fault.Provider{},
		client: &http.Client{Transport: &http.Transport{}, Timeout: demoLimit},
	}
	if err := st.start(ctx, o, stderr); err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

func (st *stage) start(ctx context.Context, o demoOptions, stderr io.Writer) error {
	var err error
	if st.dir, err = os.MkdirTemp("", "interlock-demo-"); err != nil {
		return err
	}
	for _, name := range demoProviders {
		if err := st.provide(name); err != nil {
			return err
		}
	}
	if o.policy != "" {
		if st.policy, err = filepath.Abs(o.policy); err != nil {
			return err
		}
	}
	if err := st.configure(); err != nil {
		return err
	}
	var out io.Writer = stderr
	if !o.verbose {
		if st.logFile, err = os.Create(filepath.Join(st.dir, "interlock.log")); err != nil {
			return err
		}
		out = st.logFile
	}
	if st.log, err = telemetry.NewLog(telemetry.LogOptions{Output: out}); err != nil {
		return err
	}
	so := server.Options{Path: st.config, Log: st.log, Version: version}
	if so.Listener, err = listenNear(o.listen); err != nil {
		return err
	}
	if so.AdminListener, err = listenNear(o.admin); err != nil {
		_ = so.Listener.Close() // nothing was served on it
		return err
	}
	if st.server, err = server.New(ctx, so); err != nil {
		_ = so.Listener.Close()
		_ = so.AdminListener.Close()
		return err
	}
	// The gateway is stopped by close, not by the caller's context: the demonstration ends
	// its own traffic first.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	st.stop, st.ended = stop, make(chan error, 1)
	go func() { st.ended <- st.server.Run(running, nil) }()
	return nil
}

func (st *stage) provide(name string) error {
	file := name + ".fault"
	text, err := demoFiles.ReadFile("demo/" + file)
	if err != nil {
		return err
	}
	script, errs := fault.Parse(file, string(text))
	if len(errs) > 0 {
		return errs[0]
	}
	p, err := fault.Start(fault.Options{Name: name, Script: script})
	if err != nil {
		return err
	}
	st.providers[name] = p
	return nil
}

// configure writes the gateway's configuration file.
func (st *stage) configure() error {
	text, err := demoFiles.ReadFile("demo/interlock.yaml")
	if err != nil {
		return err
	}
	fill := []string{"{{key}}", st.key, "{{policy}}", demoPolicy(st.policy)}
	for name, p := range st.providers {
		fill = append(fill, "{{"+name+"}}", p.URL())
	}
	st.config = filepath.Join(st.dir, "interlock.yaml")
	return os.WriteFile(st.config, []byte(strings.NewReplacer(fill...).Replace(string(text))), 0o600)
}

// demoPolicy is the configuration's part that names a bundle.
func demoPolicy(path string) string {
	if path == "" {
		return ""
	}
	return "\npolicy:\n  bundles:\n    - {name: yours, path: " + strconv.Quote(path) + "}\n"
}

// listenNear listens on the address, or where it is taken on any port of its host.
func listenNear(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	host, _, wrong := net.SplitHostPort(address)
	if wrong != nil {
		return nil, fmt.Errorf("%q: an address is HOST:PORT", address)
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}

// url is the callers' base URL.
func (st *stage) url() string { return "http://" + st.server.Addr().String() }

// adminURL is the operators' base URL.
func (st *stage) adminURL() string { return "http://" + st.server.AdminAddr().String() }

// calls is how many calls the providers have counted.
func (st *stage) calls() int {
	n := 0
	for _, p := range st.providers {
		n += p.Count()
	}
	return n
}

// wait waits for ctx, or for a gateway that ends by itself, which is an error.
func (st *stage) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-st.ended:
		st.ended <- nil
		return errors.Join(errors.New("the gateway ended by itself"), err)
	}
}

// close stops everything and removes the demonstration's directory.
func (st *stage) close() error {
	var errs []error
	st.client.CloseIdleConnections()
	if st.stop != nil {
		st.stop()
		select {
		case err := <-st.ended:
			errs = append(errs, err)
		case <-time.After(20 * time.Second):
			errs = append(errs, errors.New("the gateway did not stop"))
		}
	}
	for _, p := range st.providers {
		errs = append(errs, p.Close())
	}
	if st.log != nil {
		errs = append(errs, st.log.Close())
	}
	if st.logFile != nil {
		errs = append(errs, st.logFile.Close())
	}
	if st.dir != "" {
		errs = append(errs, os.RemoveAll(st.dir))
	}
	return errors.Join(errs...)
}
