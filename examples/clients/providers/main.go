// Command providers starts scripted providers for the client tests: one for each fault file
// named on the command line, called after the file. It prints one line of JSON
//
//	{"control": "http://…", "free": "127.0.0.1:PORT", "providers": {"NAME": "http://…"}}
//
// where free is an address nobody listened on a moment ago, for the gateway. The control
// address answers GET /calls?model=NAME with what all providers were asked for that model:
// {"calls": N, "left": N}, left being the calls whose peer closed before the answer was whole.
// It ends when its standard input does.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/fault"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "providers: "+err.Error())
		os.Exit(1)
	}
}

type ready struct {
	Control   string            `json:"control"`
	Free      string            `json:"free"`
	Providers map[string]string `json:"providers"`
}

func run(files []string, stdin io.Reader, stdout io.Writer) error {
	r := ready{Providers: map[string]string{}}
	var running []*fault.Provider
	for _, file := range files {
		p, err := start(file)
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }()
		running = append(running, p)
		r.Providers[p.Name()] = p.URL()
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.Control, r.Free = "http://"+control.Addr().String(), free.Addr().String()
	_ = free.Close()
	s := &http.Server{Handler: counts(running), ReadHeaderTimeout: 5 * time.Second}
	defer func() { _ = s.Close() }()
	go func() { _ = s.Serve(control) }()
	if err := json.NewEncoder(stdout).Encode(r); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stdin)
	return err
}

func start(file string) (*fault.Provider, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	script, errs := fault.Parse(file, string(text))
	if len(errs) > 0 {
		return nil, errs[0]
	}
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	return fault.Start(fault.Options{Name: name, Script: script})
}

func counts(providers []*fault.Provider) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, r *http.Request) {
		var n struct {
			Calls int `json:"calls"`
			Left  int `json:"left"`
		}
		model := r.URL.Query().Get("model")
		for _, p := range providers {
			for _, c := range p.Calls() {
				if c.Model != model {
					continue
				}
				n.Calls++
				if c.End == fault.EndPeerClosed {
					n.Left++
				}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(n)
	})
	return mux
}
