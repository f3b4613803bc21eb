package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// features runs gateways that differ in one thing each, by their configuration alone.
func (s *section) features(ctx context.Context) error {
	type variant struct {
		name, base string // base: what it is compared with, "" for the first
		k          kind
		prepare    func(*setting) error
		threads    bool // on Go's sockets, as TLS is
		models     int  // requests for so many different models, in turn
	}
	under := func(part, key string, v any) func(*setting) error {
		return func(set *setting) error { set.under(part)[key] = v; return nil }
	}
	none := func(*setting) error { return nil }
	list := []variant{
		{name: "as it comes", k: post, prepare: none},
		{name: "ledger durability sync", base: "as it comes", k: post, prepare: func(set *setting) error {
			set.under("storage")["ledger"] = object{"durability": "sync"}
			return nil
		}},
		{name: "log level error", base: "as it comes", k: post, prepare: under("log", "level", "error")},
		{name: "limits on the key and the group", base: "as it comes", k: post, prepare: func(set *setting) error {
			set.file["groups"].([]any)[0].(object)["rpm"] = 1_000_000_000
			set.file["keys"].([]any)[0].(object)["rpm"] = 1_000_000_000
			return nil
		}},
		{name: "decision log into a file", base: "as it comes", k: post, prepare: func(set *setting) error {
			set.file["policy"] = object{"decision_log": object{"file": filepath.Join(set.dir, "decisions.log")}}
			return nil
		}},
		{name: "policy evaluated every time", base: "as it comes", k: post, prepare: none, models: 20000},
		{name: "Go's sockets in the load", k: post, prepare: none, threads: true},
		{name: "TLS to callers", base: "Go's sockets in the load", k: post, threads: true, prepare: encrypted},
		{name: "streams", k: stream, prepare: none},
		{name: "streams, usage not asked for", base: "streams", k: stream, prepare: func(set *setting) error {
			set.under("providers")["upstream"].(object)["stream_usage"] = "leave"
			return nil
		}},
	}
	var all []*target
	defer func() { s.closeAll(ctx, all) }()
	jobs := map[*target]job{}
	for _, v := range list {
		set, err := s.r.setting(v.name)
		if err != nil {
			return err
		}
		if err := v.prepare(set); err != nil {
			return err
		}
		t, err := set.begin()
		if err != nil {
			return err
		}
		all = append(all, t)
		j := job{Mode: closed, Connections: busy, Want: v.k.want, Threads: v.threads}
		for i := range max(v.models, 1) {
			k := v.k
			if v.models > 0 {
				k.model = fmt.Sprintf("bench-%d", i)
			}
			j.Requests = append(j.Requests, t.request(k))
		}
		jobs[t] = j
		if err := s.warm(ctx, t, j); err != nil {
			return err
		}
	}
	each := s.each(len(all) * s.rounds)
	got := series{}
	err := alternate(s.rounds, all, func(t *target) error {
		j := jobs[t]
		j.Duration = each
		m, err := s.shoot(ctx, t, j)
		got[t.name] = append(got[t.name], m)
		return err
	})
	if err != nil {
		return err
	}
	var rows [][]string
	for _, v := range list {
		cpu := values(got[v.name], perRequest)
		row := []string{v.name, s.record("cpu_per_request", v.name, v.k.name, "µs", cpu).String(), s.record("throughput", v.name, v.k.name, "1/s", values(got[v.name], perSecond)).String(), "", ""}
		if base := values(got[v.base], perRequest); v.base != "" {
			row[3] = v.base
			row[4] = s.record("added_cpu", v.name+"-"+v.base, v.k.name, "µs", paired(cpu, base, less)).String()
		}
		rows = append(rows, row)
	}
	s.say(fmt.Sprintf("Gateways that differ in their configuration alone, %d connections in a closed loop, processor time per request. Policy evaluated every time: requests name 20,000 models in turn, more than decisions are remembered for; the ledger then also meets as many names. The TLS rows come from a load on Go's own sockets, keep-alive, so the handshake is not in them.", busy))
	s.table([]string{"", "cpu, µs", "answers a second", "compared with", "added cpu, µs"}, rows)
	s.say("No switch, so not measured: the ledger off or in memory, the policy off, metrics off, watching callers off.")
	return nil
}

// encrypted gives the callers' side a certificate made for the occasion.
func encrypted(set *setting) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, b := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: secret}} {
		file := filepath.Join(set.dir, name+".pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			return err
		}
	}
	set.under("listen")["tls"] = object{"cert_file": filepath.Join(set.dir, "cert.pem"), "key_file": filepath.Join(set.dir, "key.pem")}
	set.tls = true
	return nil
}
