package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

// Replayed is what a candidate would make of the decisions of a ledger.
type Replayed struct {
	Requests  int           `json:"requests"`
	Decisions int           `json:"decisions"`
	Distinct  int           `json:"evaluated"` // identical inputs are evaluated once
	Differ    int           `json:"differ"`    // the gateway would do something else
	Reworded  int           `json:"reworded"`  // the same, for another reason or by another rule
	Unread    int           `json:"unread"`    // records whose texts are gone, or are none of this version's
	Groups    []ReplayGroup `json:"groups"`
}

// ReplayGroup is decisions of a point that would change in one way.
type ReplayGroup struct {
	Point     string          `json:"point"`
	Kind      string          `json:"kind"` // decision or record
	Old       policy.Verdict  `json:"old"`
	New       policy.Verdict  `json:"new"`
	Decisions int             `json:"decisions"`
	Requests  []string        `json:"requests"` // some of them
	Example   json.RawMessage `json:"example"`  // an input
}

const (
	maxReplayLine   = 64 << 20 // of one request in the export
	maxReplayKept   = 1 << 16  // distinct inputs whose decision is remembered
	maxReplayGroups = 10_000
	shownRequests   = 5 // of each group
)

// recorded is what a line of the ledger's export has of a request.
type recorded struct {
	ID        string `json:"request_id"`
	Decisions []struct {
		Attempt *int            `json:"attempt"`
		Point   string          `json:"point"`
		Input   json.RawMessage `json:"input"`
		Output  json.RawMessage `json:"output"`
	} `json:"decisions"`
}

// Replay decides again what a ledger's export in JSON Lines records, with a candidate. It
// holds one request, and a bounded number of decisions, at a time.
func Replay(ctx context.Context, r *policy.Revision, export io.Reader) (*Replayed, error) {
	p := &replaying{revision: r, kept: map[[16]byte]policy.Verdict{}, groups: map[string]*ReplayGroup{}}
	lines := bufio.NewReaderSize(export, 1<<16)
	for {
		line, err := readLine(lines)
		if len(bytes.TrimSpace(line)) > 0 {
			if err := p.request(ctx, line); err != nil {
				return nil, err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return p.result(), nil
}

// readLine reads one line within the limit; a last one may end without its newline.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxReplayLine {
			return nil, fmt.Errorf("a request of the ledger is larger than %d MiB", maxReplayLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

type replaying struct {
	revision *policy.Revision
	total    Replayed
	kept     map[[16]byte]policy.Verdict
	groups   map[string]*ReplayGroup
}

func (p *replaying) request(ctx context.Context, line []byte) error {
	var r recorded
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("not an export of the ledger: %w", err)
	}
	p.total.Requests++
	for _, d := range r.Decisions {
		point, ok := policy.ParsePoint(d.Point)
		if !ok { // a guard's: no policy decided it
			continue
		}
		p.total.Decisions++
		old, err := policy.VerdictOf(point, d.Output)
		if err != nil || isNull(d.Input) || isNull(d.Output) {
			p.total.Unread++
			continue
		}
		new, err := p.decide(ctx, point, d.Input)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil { // a field that this version no longer has
			p.total.Unread++
			continue
		}
		if err := p.compare(r.ID, d.Point, d.Input, old, new); err != nil {
			return err
		}
	}
	return nil
}

func isNull(text json.RawMessage) bool { return len(text) == 0 || string(text) == "null" }

// decide evaluates an input once, as long as it is remembered.
func (p *replaying) decide(ctx context.Context, point policy.Point, input json.RawMessage) (policy.Verdict, error) {
	sum := sha256.Sum256(append([]byte(point.String()+" "), input...))
	key := [16]byte(sum[:])
	if v, ok := p.kept[key]; ok {
		return v, nil
	}
	v, err := p.revision.Decide(ctx, point, input)
	if err != nil {
		return v, err
	}
	p.total.Distinct++
	if len(p.kept) >= maxReplayKept {
		clear(p.kept)
	}
	p.kept[key] = v
	return v, nil
}

func (p *replaying) compare(id, point string, input json.RawMessage, old, new policy.Verdict) error {
	if old == new {
		return nil
	}
	kind := "decision"
	if old.Does == new.Does {
		kind = "record"
		p.total.Reworded++
	} else {
		p.total.Differ++
	}
	name := fmt.Sprintf("%s %q %q", point, old, new)
	g := p.groups[name]
	if g == nil {
		if len(p.groups) >= maxReplayGroups {
			return fmt.Errorf("more than %d ways in which decisions differ: narrow the time with --since", maxReplayGroups)
		}
		g = &ReplayGroup{Point: point, Kind: kind, Old: old, New: new, Example: bytes.Clone(input)}
		p.groups[name] = g
	}
	g.Decisions++
	if len(g.Requests) < shownRequests && !slices.Contains(g.Requests, id) {
		g.Requests = append(g.Requests, id)
	}
	return nil
}

// result returns the groups, what is done otherwise and often first.
func (p *replaying) result() *Replayed {
	r := &p.total
	r.Groups = make([]ReplayGroup, 0, len(p.groups))
	for _, g := range p.groups {
		r.Groups = append(r.Groups, *g)
	}
	slices.SortFunc(r.Groups, func(a, b ReplayGroup) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Decisions, a.Decisions), cmp.Compare(a.Point, b.Point),
			cmp.Compare(a.Old.Does, b.Old.Does), cmp.Compare(a.New.Does, b.New.Does), cmp.Compare(a.Old.Rule, b.Old.Rule),
			cmp.Compare(a.New.Rule, b.New.Rule), cmp.Compare(a.Old.Reason, b.Old.Reason), cmp.Compare(a.New.Reason, b.New.Reason))
	})
	return r
}

// Write writes the result as JSON, or as a text for people.
func (r *Replayed) Write(w io.Writer, asJSON bool, revision string) error {
	if asJSON {
		return writeJSON(w, struct {
			Revision string `json:"revision"`
			*Replayed
		}{revision, r})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s of %s, decided again by %s\n", plural(r.Decisions, "decision"), plural(r.Requests, "request"), printed(revision))
	fmt.Fprintf(&out, "%d would differ, %d would only have another reason or rule\n", r.Differ, r.Reworded)
	fmt.Fprintf(&out, "%s evaluated", plural(r.Distinct, "distinct input"))
	if r.Unread > 0 {
		fmt.Fprintf(&out, "; %d could not be: their texts are gone, or of another version", r.Unread)
	}
	out.WriteString("\n")
	for _, g := range r.Groups {
		fmt.Fprintf(&out, "\n%s  %s\n", g.Point, plural(g.Decisions, "decision"))
		if g.Kind == "record" {
			fmt.Fprintf(&out, "  = %s\n", printed(g.Old.Does))
		} else {
			fmt.Fprintf(&out, "  - %s\n  + %s\n", printed(g.Old.Does), printed(g.New.Does))
		}
		fmt.Fprintf(&out, "    %s\n    such as %s\n", whyText(g.Old, g.New), printed(strings.Join(g.Requests, ", ")))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
