package config

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"slices"
	"strings"
)

// check finds what is wrong between keys, fills in what depends on others, and warns of what
// is legal but unwise.
func (d *document) check(c *Config) {
	if !d.has("data_dir") {
		c.DataDir = d.resolve(c.DataDir)
	}
	if _, ok := c.Budgets[Interactive]; !ok {
		if c.Budgets == nil {
			c.Budgets = map[string]Budget{}
		}
		c.Budgets[Interactive] = DefaultBudget()
	}
	d.checkListen(c)
	d.checkStorage(c)
	d.checkPolicy(c)
	d.checkPlugins(c)
	d.checkProviders(c)
	d.checkGroups(c)
	d.checkKeys(c)
	d.checkBudgets(c)
	d.checkAliases(c)
	d.checkBreaker(c)
	d.checkServes(c)
}

// checkServes warns of a file that says nothing wrong and by which nobody is served. It stays a
// warning under a strict check: the defaults are that, and keys may be made at run time.
func (d *document) checkServes(c *Config) {
	if d.broken[""] {
		return // the file is no mapping
	}
	before := len(d.warnings)
	if len(c.Groups) == 0 {
		d.warn("groups", "none is configured: every model is unknown, and no request can be served")
	}
	if len(c.Keys) == 0 {
		d.warn("keys", "none is configured: every caller is refused until a key is made with `interlock key create`")
	}
	for i := before; i < len(d.warnings); i++ {
		d.warnings[i].lenient = true
	}
}

// DefaultBudget is the interactive budget's default.
func DefaultBudget() (b Budget) {
	fill(&b)
	return b
}

func (d *document) checkListen(c *Config) {
	t := c.Listen.TLS
	d.pair("listen.tls", "cert_file", t.CertFile, "key_file", t.KeyFile)
	d.authorities("listen.tls.client_ca_file", t.ClientCAFile)
	if t.ClientCAFile != "" && t.CertFile == "" {
		d.fail("listen.tls.client_ca_file", "callers' certificates need TLS: cert_file and key_file are required with it")
	}
	if c.Admin.Listen == c.Listen.Address && !strings.HasSuffix(c.Admin.Listen, ":0") {
		d.fail("admin.listen", "is the same address as listen.address")
	}
	if !c.Admin.Secured() && !isLoopback(c.Admin.Listen) && !d.isBroken("admin.token") && !d.isBroken("admin.tokens") {
		d.fail("admin.listen", "is not on loopback: admin.token is required with it")
	}
	names, tokens := unique{d: d}, unique{d: d, secret: true}
	tokens.add(c.Admin.Token.Reveal(), "admin.token")
	for i, t := range c.Admin.Tokens {
		path := at("admin.tokens", i)
		names.add(t.Name, path+".name")
		tokens.add(t.Token.Reveal(), path+".token")
	}
}

// isLoopback says whether only this machine reaches an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	host, _, _ = strings.Cut(host, "%")
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// pair checks a certificate and its key, in two files.
func (d *document) pair(path, certKey, certFile, keyKey, keyFile string) {
	switch {
	case certFile == "" && keyFile == "":
		return
	case keyFile == "":
		d.fail(path+"."+certKey, "%s is required with it", keyKey)
		return
	case certFile == "":
		d.fail(path+"."+keyKey, "%s is required with it", certKey)
		return
	}
	cert, ok := d.pem(path+"."+certKey, certFile)
	key, fine := d.pem(path+"."+keyKey, keyFile)
	if !ok || !fine {
		return
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		d.fail(path+"."+certKey, "this and %s are no certificate with its key: %s", keyKey, err)
	}
}

func (d *document) authorities(path, file string) {
	if file == "" {
		return
	}
	if pem, ok := d.pem(path, file); ok && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		d.fail(path, "the file holds no PEM certificate")
	}
}

func (d *document) pem(path, file string) ([]byte, bool) {
	if d.isBroken(path) {
		return nil, false
	}
	d.watch(file)
	b, err := d.env.ReadFile(file)
	if err != nil {
		d.fail(path, "the file %s cannot be read: %s", file, reason(err))
	}
	return b, err == nil
}

func (d *document) checkStorage(c *Config) {
	path, ok := strings.CutPrefix(c.Storage.URL, "sqlite:")
	if !ok {
		path = "interlock.db"
		d.warn("storage.url", "not in force: this version does not have PostgreSQL yet; %s holds instead", "sqlite:"+path)
	}
	if path != ":memory:" {
		path = d.resolve(path)
	}
	c.Storage.URL = "sqlite:" + path
}

func (d *document) checkPolicy(c *Config) {
	names := unique{d: d}
	for i, b := range c.Policy.Bundles {
		path := at("policy.bundles", i)
		names.add(b.Name, path+".name")
		d.pair(path, "client_cert", b.ClientCert, "client_key", b.ClientKey)
		d.authorities(path+".ca_file", b.CAFile)
		switch {
		case b.Path != "" && b.URL != "":
			d.fail(path+".url", "path or url, not both")
		case b.Path != "":
			d.watch(b.Path)
		case b.URL == "":
			if !d.isBroken(path+".path") && !d.isBroken(path+".url") {
				d.fail(path, "path or url is required")
			}
		case b.VerificationKey == "" && !b.Unsigned && !d.isBroken(path+".verification_key"):
			d.fail(path+".url", "verification_key is required with it, or unsigned: true to do without")
		}
	}
	log, reports := &c.Policy.DecisionLog, &c.Policy.Status
	d.pair("policy.decision_log", "client_cert", log.ClientCert, "client_key", log.ClientKey)
	d.authorities("policy.decision_log.ca_file", log.CAFile)
	d.pair("policy.status", "client_cert", reports.ClientCert, "client_key", reports.ClientKey)
	d.authorities("policy.status.ca_file", reports.CAFile)
	if c.Policy.Candidate.Mode == Canary && c.Policy.Candidate.Path == "" {
		d.fail("policy.candidate.mode", "canary needs a path")
	}
}

func (d *document) checkPlugins(c *Config) {
	names := unique{d: d}
	for i, p := range c.Plugins {
		path := at("plugins", i)
		names.add(p.Name, path+".name")
		if strings.HasPrefix(p.Source, "https:") && p.SHA256 == "" && !d.isBroken(path+".sha256") {
			d.fail(path+".source", "sha256 is required with an https source")
		}
		if file, ok := strings.CutPrefix(p.Source, "file:"); ok {
			c.Plugins[i].Source = "file:" + d.resolve(file)
			d.watch(d.resolve(file))
		}
	}
}

// checkGuards checks the plugins that guards name.
func (d *document) checkGuards(c *Config, guards []Guard, path string) {
	for i, g := range guards {
		if !slices.ContainsFunc(c.Plugins, func(p Plugin) bool { return p.Name == g.Plugin }) {
			d.dangling(at(path, i)+".plugin", "plugin", pluginNames(c))
		}
	}
}

func pluginNames(c *Config) (names []string) {
	for _, p := range c.Plugins {
		names = append(names, p.Name)
	}
	return names
}

func (d *document) checkBreaker(c *Config) {
	if c.Breaker.MaxOpen < c.Breaker.OpenFor {
		path := "breaker.max_open"
		if !d.has(path) {
			path = "breaker.open_for"
		}
		d.fail(path, "max_open (%s) must be at least open_for (%s)", c.Breaker.MaxOpen, c.Breaker.OpenFor)
	}
}

// dangling reports a reference to something that does not exist.
func (d *document) dangling(path, what string, known []string) {
	if len(known) == 0 {
		d.fail(path, "no such %s: none is configured", what)
		return
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if len(known) > 20 {
		known = append(known[:20:20], "…")
	}
	d.fail(path, "no such %s; there is %s", what, strings.Join(known, ", "))
}

func keysOf[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// unique finds values that occur twice.
type unique struct {
	d      *document
	secret bool // the values are not shown
	seen   map[string]string
}

func (u *unique) add(value, path string) {
	if value == "" {
		return
	}
	if u.seen == nil {
		u.seen = map[string]string{}
	}
	first, twice := u.seen[value]
	switch {
	case !twice:
		u.seen[value] = path
	case u.secret:
		u.d.fail(path, "is the same as %s", first)
	default:
		u.d.fail(path, "must be unique: it is the same as %s", first)
	}
}
