package admin

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/interlock-gateway/interlock/gateway/config"
)

type shownPlugin struct {
	Name         string     `json:"name"`
	Source       string     `json:"source"`
	Status       string     `json:"status"`
	SHA256       *string    `json:"sha256"`
	Kind         *string    `json:"kind"`
	Version      *string    `json:"version"`
	ABI          *string    `json:"abi"`
	Operations   []string   `json:"operations"`
	Endpoints    []string   `json:"endpoints"`
	Capabilities []string   `json:"capabilities"`
	LoadedAt     *time.Time `json:"loaded_at"`
	Error        *string    `json:"error"`
}

// pluginStatus lists the plugins that the configuration names, and what became of each.
func (s *Server) pluginStatus(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	list := []shownPlugin{}
	for _, p := range s.Plugins() {
		list = append(list, shownPlugin{
			Name: p.Name, Source: p.Source, Status: p.Status, SHA256: textOrNull(p.SHA256), Kind: textOrNull(p.Kind),
			Version: textOrNull(p.Version), ABI: textOrNull(p.ABI), Operations: listed(p.Operations),
			Endpoints: listed(p.Endpoints), Capabilities: listed(p.Capabilities), LoadedAt: timeOrNull(p.Since), Error: textOrNull(p.Error),
		})
	}
	return writeJSON(w, http.StatusOK, struct {
		Plugins []shownPlugin `json:"plugins"`
	}{list})
}

func listed(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// refusedPlugin is a plugin whose module or settings were not taken, with what that means.
type refusedPlugin struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Error  string `json:"error"`
	// Kept is what goes on in its place; null where there is nothing: then its channels serve
	// nothing, and its guards fail as on_error says.
	Kept     *keptPlugin `json:"kept"`
	Channels []string    `json:"channels"` // GROUP/NAME of those whose provider it translates for
	Guards   []string    `json:"guards"`   // key/NAME and alias/NAME of those whose traffic it looks at
}

type keptPlugin struct {
	Version  string     `json:"version"`
	SHA256   string     `json:"sha256"`
	LoadedAt *time.Time `json:"loaded_at"`
}

// refusedPlugins lists the plugins that are not as the configuration in force has them.
func (s *Server) refusedPlugins() []refusedPlugin {
	cfg := s.Generation().Config
	list := []refusedPlugin{}
	for _, p := range s.Plugins() {
		if p.Error == "" {
			continue
		}
		r := refusedPlugin{Name: p.Name, Source: p.Source, Error: p.Error, Channels: channelsOf(cfg, p.Name), Guards: guardsOf(cfg, p.Name)}
		if p.Version != "" {
			r.Kept = &keptPlugin{p.Version, p.SHA256, timeOrNull(p.Since)}
		}
		list = append(list, r)
	}
	return list
}

// channelsOf are the channels whose provider a plugin translates for.
func channelsOf(cfg *config.Config, plugin string) []string {
	list := []string{}
	for _, g := range cfg.Groups {
		for _, c := range g.Channels {
			if a := cfg.Providers[c.Provider].Adapter; a.Kind == config.AdapterPlugin && a.Name == plugin {
				list = append(list, g.Name+"/"+c.Name)
			}
		}
	}
	return list
}

// guardsOf are the keys and aliases whose traffic a plugin looks at.
func guardsOf(cfg *config.Config, plugin string) []string {
	list := []string{}
	uses := func(guards []config.Guard) bool {
		return slices.ContainsFunc(guards, func(g config.Guard) bool { return g.Plugin == plugin })
	}
	for _, k := range cfg.Keys {
		if uses(k.Guards) {
			list = append(list, "key/"+k.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Aliases)) {
		if uses(cfg.Aliases[name].Guards) {
			list = append(list, "alias/"+name)
		}
	}
	return list
}
