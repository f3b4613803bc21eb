package policy

import (
	"context"
	"encoding/json"
	"time"
)

// Source is where a bundle is read from.
type Source struct{ path string }

// Builtin is the bundle that is embedded in the program.
func Builtin() Source { panic("skeleton") }

// Path is the bundle in a directory or a .tar.gz file.
func Path(name, path string) Source { panic("skeleton") }

// Options of a Revision.
type Options struct {
	Timeout   time.Duration // of one evaluation; 0 = 250 ms
	CacheSize int           // decisions per point; 0 = 4096, negative = no cache
}

// Revision is one bundle, compiled, checked and ready. Immutable, safe for concurrent use.
type Revision struct{}

// Load reads, checks, compiles and probes a bundle: all or nothing. An error is an Errors
// where the bundle itself is at fault.
func Load(ctx context.Context, src Source, opts Options) (*Revision, error) { panic("skeleton") }

// ID identifies the bundle's content: its name and a digest.
func (r *Revision) ID() string { panic("skeleton") }

// Kind reports whether requests of that kind are replayable (data.interlock.kinds), unless
// they may have side effects. A kind the bundle does not know is not.
func (r *Revision) Kind(name string) bool { panic("skeleton") }

// DeclaredKind reports whether requests of that kind are replayable where the caller itself
// declares that they have no side effects. It holds for every kind that Kind holds for.
func (r *Revision) DeclaredKind(name string) bool { panic("skeleton") }

// KindOf returns the request kind of data.interlock.kinds for an endpoint: chat, completions,
// embeddings, moderations, rerank, messages, images, audio, videos, files, batches; responses,
// or responses_background, responses_conversation, responses_hosted_tools.
func KindOf(endpoint string, background, conversation, hostedTools bool) string { panic("skeleton") }

// Evaluate decides on a given JSON input, checked against the input schema and never cached:
// for the admin API. The output is what the rule gave, checked like any decision.
func (r *Revision) Evaluate(ctx context.Context, p Point, input json.RawMessage) (json.RawMessage, error) {
	panic("skeleton")
}

// Fault is one fault of a bundle.
type Fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// Errors is every fault of a bundle.
type Errors []Fault

func (e Errors) Error() string { panic("skeleton") }

// Watcher follows a bundle on disk. Every change is loaded off the request's path.
type Watcher struct{}

// Watch loads src again whenever it changes and calls changed with the new revision, or with
// nil and the error while what is on disk is refused. Calls come one at a time, from one
// goroutine, and only when the content differs from the one before. Close ends it.
func Watch(src Source, opts Options, active *Revision, changed func(*Revision, error)) (*Watcher, error) {
	panic("skeleton")
}

// Close stops watching and waits until no call of changed is running.
func (w *Watcher) Close() error { panic("skeleton") }
