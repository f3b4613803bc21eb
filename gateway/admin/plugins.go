package admin

import (
	"net/http"
	"time"
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
