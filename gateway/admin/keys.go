package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/key"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// keySpec is what a key made at run time may do: the configuration's words.
type keySpec struct {
	Name    string            `json:"name"`
	Groups  []string          `json:"groups"`
	Models  []string          `json:"models"`
	Budget  string            `json:"budget"`
	Budgets []string          `json:"budgets"`
	RPM     int               `json:"rpm"`
	Labels  map[string]string `json:"labels"`
}

// keyView is a key without the key. ID, who and when are null of one in the configuration.
type keyView struct {
	ID      *string           `json:"id"`
	Name    string            `json:"name"`
	Source  string            `json:"source"` // config or admin
	Groups  []string          `json:"groups"`
	Models  []string          `json:"models"`
	Budget  string            `json:"budget"`
	Budgets []string          `json:"budgets"`
	RPM     *int              `json:"rpm"` // null: no limit
	Labels  map[string]string `json:"labels"`
	InForce bool              `json:"in_force"`
	Created *time.Time        `json:"created_at"`
	Who     *string           `json:"who"`
}

// complete replaces what was left out by what holds instead.
func (v keyView) complete() keyView {
	if v.Budget == "" {
		v.Budget = key.DefaultBudget
	}
	if len(v.Models) == 0 {
		v.Models = []string{"*"}
	}
	if v.Groups == nil {
		v.Groups = []string{}
	}
	if v.Budgets == nil {
		v.Budgets = []string{}
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	return v
}

func rpmOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func viewConfigured(k *config.Key) keyView {
	v := keyView{
		Name: k.Name, Source: "config", Groups: k.OrderedGroups(), Budget: k.Budget, Budgets: k.Budgets,
		RPM: rpmOrNull(k.RPM), Labels: k.Labels, InForce: true,
	}
	for _, g := range k.Models {
		v.Models = append(v.Models, g.String())
	}
	return v.complete()
}

func viewStored(k *storage.Key, inForce bool) keyView {
	return keyView{
		ID: textOrNull(k.ID), Name: k.Name, Source: "admin", Groups: k.Groups, Models: k.Models, Budget: k.Budget,
		Budgets: k.Budgets, RPM: rpmOrNull(k.RPM), Labels: k.Labels, InForce: inForce, Created: timeOrNull(k.Created), Who: textOrNull(k.Who),
	}.complete()
}

func (s *Server) listKeys(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	stored, err := s.DB.Keys(c.Context())
	if err != nil {
		return err
	}
	g := s.Generation()
	views := []keyView{}
	for i := range g.Config.Keys {
		views = append(views, viewConfigured(&g.Config.Keys[i]))
	}
	for i := range stored {
		views = append(views, viewStored(&stored[i], s.inForce(stored[i].ID)))
	}
	return writeJSON(w, http.StatusOK, map[string][]keyView{"keys": views})
}

// inForce says whether new requests know a key made at run time.
func (s *Server) inForce(id string) bool {
	return slices.ContainsFunc(s.Generation().Keys.All(), func(k *key.Key) bool { return k.ID == id && id != "" })
}

// createKey makes a key and shows it, this once. Only its digest is kept.
func (s *Server) createKey(w http.ResponseWriter, c *call) error {
	var spec keySpec
	if err := c.read(&spec); err != nil {
		return err
	}
	if err := spec.check(s.Generation().Config); err != nil {
		return err
	}
	ctx, cancel := c.changing()
	defer cancel()
	s.keys.Lock()
	defer s.keys.Unlock()
	if err := s.nameIsFree(ctx, spec.Name); err != nil {
		return err
	}
	secret := newKey()
	made, err := s.DB.AddKey(ctx, storage.Key{
		Name: spec.Name, SHA256: sha256.Sum256([]byte(secret)), Groups: spec.Groups, Models: spec.Models,
		Budget: spec.Budget, Budgets: spec.Budgets, RPM: spec.RPM, Labels: spec.Labels, Who: c.who, Created: s.Now(),
	})
	if err != nil {
		return err
	}
	if err := s.KeysChanged(ctx); err != nil {
		_, undone := s.DB.DeleteKey(ctx, made.ID)
		return errors.Join(err, undone)
	}
	view := viewStored(&made, true)
	if err := s.record(ctx, c, "key/"+made.ID, nil, &view, ""); err != nil {
		// The key would be lost to whoever made it, and in force all the same.
		s.log.Warn("a key was made without a record", "key", made.ID)
	}
	return writeJSON(w, http.StatusCreated, struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Key  string `json:"key"`
	}{made.ID, made.Name, secret})
}

func (s *Server) nameIsFree(ctx context.Context, name string) error {
	taken := &refusal{status: http.StatusConflict, code: nameTaken, param: "name", message: "a key named " + name + " exists already"}
	for i := range s.Generation().Config.Keys {
		if s.Generation().Config.Keys[i].Name == name {
			return taken
		}
	}
	stored, err := s.DB.Keys(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(stored, func(k storage.Key) bool { return k.Name == name }) {
		return taken
	}
	return nil
}

// deleteKey ends a key made at run time. One that the storage has lost but requests still know
// ends too, so that a delete that failed half way can be repeated.
func (s *Server) deleteKey(w http.ResponseWriter, c *call) error {
	id := c.names[0]
	why := struct {
		Reason string `json:"reason"`
	}{}
	if err := c.readOptional(&why); err != nil {
		return err
	}
	if err := reasonable(why.Reason); err != nil {
		return err
	}
	ctx, cancel := c.changing()
	defer cancel()
	s.keys.Lock()
	defer s.keys.Unlock()
	inForce := s.inForce(id)
	was, err := s.DB.DeleteKey(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		if !inForce {
			return missing("no key made at run time has the ID %q; keys of the configuration are removed there", id)
		}
		was = storage.Key{ID: id}
		for _, k := range s.Generation().Keys.All() {
			if k.ID == id {
				was.Name = k.Name
			}
		}
	} else if err != nil {
		return err
	}
	if err := s.KeysChanged(ctx); err != nil {
		s.log.Error("a deleted key is still in force", "key", id, "error", err.Error())
		return &refusal{
			status: http.StatusInternalServerError, code: keysNotInForce,
			message: "the key is deleted, but stays in force until the next generation is built, which failed; delete it again or reload",
		}
	}
	view := viewStored(&was, false)
	if err := s.record(ctx, c, "key/"+id, &view, nil, why.Reason); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// check holds a key to the configuration, as a key of the file is.
func (k *keySpec) check(c *config.Config) error {
	if !config.IsName(k.Name) {
		return bad("name", "name: 1 to 128 letters, digits and . _ - : @ + are allowed, beginning with a letter or digit")
	}
	if err := k.checkGroups(c); err != nil {
		return err
	}
	for _, m := range k.Models {
		if _, err := config.NewGlob(m); err != nil {
			return bad("models", "models: %q: %s", m, err)
		}
	}
	if k.Budget != "" {
		if err := knownBudget(c, "budget", k.Budget); err != nil {
			return err
		}
	}
	for _, b := range k.Budgets {
		if err := knownBudget(c, "budgets", b); err != nil {
			return err
		}
	}
	if k.RPM < 0 {
		return bad("rpm", "rpm: %d is not allowed; 0 means no limit", k.RPM)
	}
	for name, value := range k.Labels {
		if !config.IsName(name) {
			return bad("labels", "labels: %q is no name of a label: letters, digits and . _ - : @ + are allowed", name)
		}
		if len(value) > maxReason || !utf8.ValidString(value) {
			return bad("labels", "labels: the value of %s is too long: at most %d bytes are allowed", name, maxReason)
		}
	}
	return nil
}

func (k *keySpec) checkGroups(c *config.Config) error {
	if len(k.Groups) == 0 {
		return bad("groups", "groups is required, at least one")
	}
	var known []string
	for i := range c.Groups {
		known = append(known, c.Groups[i].Name)
	}
	for i, g := range k.Groups {
		if !slices.Contains(known, g) {
			return bad("groups", "groups: the configuration has no group %q; it has %s", g, strings.Join(known, ", "))
		}
		if slices.Contains(k.Groups[:i], g) {
			return bad("groups", "groups: %q is named twice", g)
		}
	}
	return nil
}

func knownBudget(c *config.Config, field, name string) error {
	if _, ok := c.Budgets[name]; !ok {
		return bad(field, "%s: the configuration has no budget %q; it has %s", field, name,
			strings.Join(slices.Sorted(maps.Keys(c.Budgets)), ", "))
	}
	return nil
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// newKey makes a key of 190 random bits. Bytes that would favour a digit are not used.
func newKey() string {
	const fair = 256 - 256%len(base62)
	b := make([]byte, 0, 36)
	b = append(b, "ilk_"...)
	var random [64]byte
	for {
		_, _ = rand.Read(random[:]) // never fails, see crypto/rand
		for _, r := range random {
			if int(r) >= fair {
				continue
			}
			if b = append(b, base62[int(r)%len(base62)]); len(b) == cap(b) {
				return string(b)
			}
		}
	}
}
