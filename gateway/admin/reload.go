package admin

import (
	"net/http"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// reload builds a generation from the configuration as it is now. Refused, it lists every
// error, and the generation before stays. A plugin that is refused does not hold up a reload: the
// answer says what became of it.
func (s *Server) reload(w http.ResponseWriter, c *call) error {
	if err := c.readOptional(&struct{}{}); err != nil {
		return err
	}
	type generation struct {
		Generation uint64 `json:"generation"`
	}
	before := generation{s.Generation().Number}
	ctx, cancel := c.changing()
	defer cancel()
	n, problems, err := s.Reload(ctx)
	if err != nil {
		return s.refuseReload(w, problems, err)
	}
	if err := s.record(ctx, c, "reload", &before, &generation{n}, ""); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		generation
		RefusedPlugins []refusedPlugin `json:"refused_plugins"`
	}{generation{n}, s.refusedPlugins()})
}

func (s *Server) refuseReload(w http.ResponseWriter, problems []config.Problem, err error) error {
	if len(problems) == 0 {
		problems = []config.Problem{{Message: err.Error()}}
	}
	refused := &refusal{
		status: http.StatusUnprocessableEntity, code: reloadRefused,
		message: "the configuration cannot be used; the one before stays in force",
	}
	return writeJSON(w, refused.status, struct {
		Error  errorBody        `json:"error"`
		Errors []config.Problem `json:"errors"`
	}{refused.body(), problems})
}
