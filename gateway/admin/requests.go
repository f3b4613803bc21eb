package admin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/ledger"
)

// The forms that GET of requests can have, by the Accept header; JSON unless another is named.
const (
	asText  = "text/plain"           // one request: its time line, for people
	asLines = "application/x-ndjson" // all selected requests, one a line, with decisions
	asCSV   = "text/csv"             // all selected requests, one attempt a line
)

// accepts reports whether the caller names exactly that form. Wildcards mean JSON.
func (c *call) accepts(form string) bool {
	for _, header := range c.Header.Values("Accept") {
		for one := range strings.SplitSeq(header, ",") {
			name, _, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(name), form) {
				return true
			}
		}
	}
	return false
}

func (s *Server) listRequests(w http.ResponseWriter, c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	filter, err := ledger.ParseFilter(q)
	if err != nil {
		return err
	}
	switch {
	case c.accepts(asLines):
		return s.export(w, c, filter, ledger.JSONLines, asLines)
	case c.accepts(asCSV):
		return s.export(w, c, filter, ledger.CSV, asCSV)
	}
	page, err := s.reader.List(c.Context(), filter)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, "application/json", page.AppendJSON(nil))
}

// export streams what the filter selects. Once bytes are out an error can only be told by
// breaking off, which no client takes for the end.
func (s *Server) export(w http.ResponseWriter, c *call, f ledger.Filter, format ledger.Format, form string) error {
	w.Header().Set("Content-Type", form)
	if c.Method == http.MethodHead {
		return nil
	}
	out := &patient{w: w, control: http.NewResponseController(w)}
	err := s.reader.Export(c.Context(), out, f, format)
	switch {
	case err == nil:
		return nil
	case !out.begun:
		return err
	default:
		if c.Context().Err() == nil {
			s.log.Error("an export broke off", "error", err.Error())
		}
		panic(http.ErrAbortHandler)
	}
}

// patient writes for as long as the reader keeps reading: each write has the whole timeout.
type patient struct {
	w       io.Writer
	control *http.ResponseController
	begun   bool
}

func (p *patient) Write(b []byte) (int, error) {
	p.begun = true
	_ = p.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it cannot be moved the server's own stands
	return p.w.Write(b)
}

func (s *Server) showRequest(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	r, err := s.reader.Show(c.Context(), c.names[0])
	if errors.Is(err, ledger.ErrNotFound) {
		return missing("the ledger has no request %q", c.names[0])
	}
	if err != nil {
		return err
	}
	if c.accepts(asText) {
		return write(w, http.StatusOK, asText+"; charset=utf-8", r.AppendTimeline(nil))
	}
	return write(w, http.StatusOK, "application/json", r.AppendJSON(nil, true))
}

func (s *Server) usage(w http.ResponseWriter, c *call) error {
	q, err := c.parameters("group_by", "since")
	if err != nil {
		return err
	}
	groups, err := ledger.ParseUsageGroups(q.Get("group_by"))
	if err != nil {
		return err
	}
	since, err := ledger.ParseFilter(map[string][]string{"since": {q.Get("since")}})
	if err != nil {
		return err
	}
	report, err := s.reader.Usage(c.Context(), groups, since.Since)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, "application/json", report.AppendJSON(nil))
}
