package wasm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The version of the ABI that the host speaks.
const (
	abiMajor = 1
	abiMinor = 0
)

// Manifest says what a plugin is and wants. Its layout is documented in sdk/abi.
type Manifest struct {
	Name              string          `json:"name"`
	Version           string          `json:"version"`
	ABI               string          `json:"abi"`
	Kind              string          `json:"kind"` // KindAdapter or KindGuard
	Operations        []string        `json:"operations"`
	Endpoints         []string        `json:"endpoints,omitempty"`
	ContentTypes      ContentTypes    `json:"content_types,omitzero"`
	RequestHeaders    []string        `json:"request_headers,omitempty"`
	ResponseHeaders   []string        `json:"response_headers,omitempty"`
	Auth              []string        `json:"auth,omitempty"`
	Capabilities      []string        `json:"capabilities,omitempty"`
	ModelCapabilities []string        `json:"model_capabilities,omitempty"`
	Limits            ManifestLimits  `json:"limits,omitzero"`
	ConfigSchema      json.RawMessage `json:"config_schema,omitempty"`
}

// ContentTypes are those of a provider's answers.
type ContentTypes struct {
	Events []string `json:"events,omitempty"`
	Whole  []string `json:"whole,omitempty"`
}

// ManifestLimits are what a plugin wants at most; zero where it names none. The operator's hold
// where they are smaller.
type ManifestLimits struct {
	Memory      Size     `json:"memory,omitzero"`
	CallTimeout Duration `json:"call_timeout,omitzero"`
	State       Size     `json:"state,omitzero"`
}

// The kinds of plugin.
const (
	KindAdapter = "adapter"
	KindGuard   = "guard"
)

// MaxState is the most that a stream's state may be, in bytes.
const MaxState = 64 << 10

const (
	maxManifest   = 256 << 10
	capabilityLog = "log"
)

// modelCapabilities are what a request can ask of a model: the catalogue's words.
var modelCapabilities = []string{
	"streaming", "tools", "parallel_tool_calls", "json_object", "json_schema", "reasoning", "embeddings", "moderation",
}

// capabilities are what an operator can grant.
var capabilities = []string{capabilityLog}

// Size is a number of bytes, written like 32MiB.
type Size int64

var sizeForm = regexp.MustCompile(`^([0-9]{1,9})(B|KiB|MiB|GiB)$`)

func (s *Size) UnmarshalText(text []byte) error {
	m := sizeForm.FindSubmatch(text)
	if m == nil {
		return fmt.Errorf("%q is not a size such as 32MiB", text)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		return err
	}
	shift := map[string]int{"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[string(m[2])]
	*s = Size(n << shift)
	return nil
}

func (s Size) MarshalText() ([]byte, error) {
	switch {
	case s >= 1<<20 && s%(1<<20) == 0:
		return fmt.Appendf(nil, "%dMiB", s>>20), nil
	case s >= 1<<10 && s%(1<<10) == 0:
		return fmt.Appendf(nil, "%dKiB", s>>10), nil
	}
	return fmt.Appendf(nil, "%dB", s), nil
}

// Duration is a span of time, written like 100ms.
type Duration time.Duration

func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as 100ms", text)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// ParseManifest reads a manifest and checks it. The error names everything that is wrong.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > maxManifest {
		return nil, fmt.Errorf("the manifest has %d bytes, at most %d are allowed", len(text), maxManifest)
	}
	m := &Manifest{}
	if err := decodeStrict(text, m); err != nil {
		// A later minor version may have fields that are not known here.
		later := &Manifest{}
		if json.Unmarshal(text, later) != nil || !later.newer() {
			return nil, fmt.Errorf("the manifest: %w", err)
		}
		m = later
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	if len(m.ConfigSchema) > 0 { // one spelling for the same value
		var v any
		if err := json.Unmarshal(m.ConfigSchema, &v); err != nil {
			return nil, fmt.Errorf("the manifest: config_schema: %w", err)
		}
		m.ConfigSchema, _ = json.Marshal(v) // it was JSON a moment ago
	}
	return m, nil
}

func decodeStrict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// abi returns the version of the ABI that the plugin is made for.
func (m *Manifest) abi() (major, minor int, ok bool) {
	a, b, found := strings.Cut(m.ABI, ".")
	major, err := strconv.Atoi(a)
	if err != nil || !found {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(b)
	return major, minor, err == nil && major >= 0 && minor >= 0
}

func (m *Manifest) newer() bool {
	major, minor, ok := m.abi()
	return ok && major == abiMajor && minor > abiMinor
}

// equal says whether two manifests say the same.
func (m *Manifest) equal(other *Manifest) bool {
	a, errA := json.Marshal(m)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]{1,64})?$`)
	wordForm    = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)
	headerForm  = regexp.MustCompile("^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	mediaForm   = regexp.MustCompile(`^[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}$`)
	authForm    = regexp.MustCompile(`^(bearer|header|query|aws_sigv4|gcp|azure_ad|none)(:[A-Za-z0-9_-]{1,64})?$`)

	endpoints  = []string{"chat_completions", "responses", "completions", "embeddings", "moderations"}
	operations = map[string][]string{
		KindAdapter: {"request", "response", "events", "classify"},
		KindGuard:   {"guard_request", "guard_response", "guard_events"},
	}
	// forbidden headers are the host's business, or carry credentials.
	forbidden = []string{
		"authorization", "proxy-authorization", "cookie", "set-cookie", "host", "content-length", "transfer-encoding",
		"connection", "keep-alive", "te", "trailer", "upgrade", "content-type", "content-encoding",
		"x-api-key", "api-key", "x-goog-api-key",
	}
)

func (m *Manifest) check() error {
	var all []error
	fault := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if !nameForm.MatchString(m.Name) {
		fault("name %q: lower-case letters, digits, - and _ are expected", m.Name)
	}
	if !versionForm.MatchString(m.Version) {
		fault("version %q: a version such as 1.0.0 is expected", m.Version)
	}
	if major, _, ok := m.abi(); !ok || major != abiMajor {
		fault("abi %q: this gateway speaks %d.%d", m.ABI, abiMajor, abiMinor)
	}
	known, ok := operations[m.Kind]
	if !ok {
		fault("kind %q: adapter or guard is expected", m.Kind)
	}
	each := func(field string, list []string, good func(string) bool) {
		for i, v := range list {
			if !good(v) {
				fault("%s: %q is not one", field, v)
			}
			if slices.Contains(list[:i], v) {
				fault("%s: %q stands twice", field, v)
			}
		}
	}
	if ok {
		each("operations", m.Operations, func(v string) bool { return slices.Contains(known, v) || m.newer() })
		if len(m.Operations) == 0 {
			fault("operations: none")
		}
	}
	if m.Kind == KindAdapter && len(m.Endpoints) == 0 {
		fault("endpoints: none")
	}
	each("endpoints", m.Endpoints, func(v string) bool { return slices.Contains(endpoints, v) || m.newer() })
	each("content_types.events", m.ContentTypes.Events, mediaForm.MatchString)
	each("content_types.whole", m.ContentTypes.Whole, mediaForm.MatchString)
	each("request_headers", m.RequestHeaders, func(v string) bool {
		return headerForm.MatchString(v) && !slices.Contains(forbidden, v)
	})
	each("response_headers", m.ResponseHeaders, func(v string) bool { return headerForm.MatchString(v) && v != "set-cookie" })
	each("auth", m.Auth, authForm.MatchString)
	each("capabilities", m.Capabilities, func(v string) bool { return slices.Contains(capabilities, v) })
	each("model_capabilities", m.ModelCapabilities, func(v string) bool {
		return slices.Contains(modelCapabilities, v) || m.newer() && wordForm.MatchString(v)
	})
	if m.Limits.State > MaxState {
		fault("limits.state: at most %d bytes are kept", MaxState)
	}
	if len(m.ConfigSchema) > 0 {
		if _, err := compileSchema(m.ConfigSchema); err != nil {
			fault("config_schema: %w", err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	texts := make([]string, len(all))
	for i, err := range all { // a schema's own errors have several lines
		texts[i] = strings.Join(strings.Fields(err.Error()), " ")
	}
	return errors.New(strings.Join(texts, "; "))
}
