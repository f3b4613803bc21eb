package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Fixture is one exchange, read from a txtar file. README.md says what its parts are.
type Fixture struct {
	Name string

	context callContext
	config  []byte
	subject subject

	request     []byte // the caller's body, nil when there is none
	wantBody    []byte // the provider's request, JSON
	wantHead    string
	answer      *providerAnswer // nil when there is none
	stream      []frame
	hasStream   bool
	want        []byte // the answer in OpenAI's format, JSON
	wantFailure []byte
	wantError   []byte
	wantVerdict []byte
}

type subject struct {
	Key    string          `json:"key"`
	Alias  string          `json:"alias"`
	Labels json.RawMessage `json:"labels"`
}

// ReadFixtures reads every *.txtar in the folder dir of f, in the order of their names.
func ReadFixtures(f fs.FS, dir string) ([]Fixture, error) {
	files, err := fs.Glob(f, path.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var list []Fixture
	for _, file := range files {
		text, err := fs.ReadFile(f, file)
		if err != nil {
			return nil, err
		}
		x, err := ParseFixture(strings.TrimSuffix(path.Base(file), ".txtar"), text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, *x)
	}
	return list, nil
}

// ParseFixture reads one fixture.
func ParseFixture(name string, text []byte) (*Fixture, error) {
	x := &Fixture{
		Name: name, context: defaultContext(), config: []byte("{}"),
		subject: subject{Key: "key-1", Alias: "alias-1", Labels: json.RawMessage("{}")},
	}
	head := &providerAnswer{}
	contextGiven := false
	for _, file := range txtar.Parse(text).Files {
		data := bytes.TrimSpace(file.Data)
		if strings.HasSuffix(file.Name, ".json") && file.Name != "answer.json" && !json.Valid(data) {
			return nil, fmt.Errorf("%s is not JSON", file.Name)
		}
		var err error
		switch file.Name {
		case "config.json":
			x.config = data
		case "context.json":
			contextGiven = bytes.Contains(data, []byte(`"stream"`))
			err = json.Unmarshal(data, &x.context)
		case "subject.json":
			err = json.Unmarshal(data, &x.subject)
		case "request.json":
			x.request = data
		case "provider.json":
			x.wantBody = data
		case "provider.head":
			x.wantHead = string(data)
		case "answer.head":
			err = readHead(head, string(data))
		case "answer.json":
			head.body = data
			x.answer = head
		case "stream.sse":
			x.stream, x.hasStream = splitSSE(string(file.Data)), true
		case "stream.ndjson":
			x.stream, x.hasStream = splitLines(string(file.Data)), true
		case "stream.frames":
			x.hasStream = true
			x.stream, err = splitFrames(string(file.Data))
		case "want.json":
			x.want = data
		case "failure.json":
			x.wantFailure = data
		case "error.json":
			x.wantError = data
		case "verdict.json":
			x.wantVerdict = data
		default:
			err = fmt.Errorf("no fixture has a part of that name")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	if head.status == 0 {
		head.status = 200
		head.header = append(head.header, interlock.Field{Name: "content-type", Value: "application/json"})
	}
	if !contextGiven {
		var asks struct{ Stream bool }
		_ = json.Unmarshal(x.request, &asks)
		x.context.Stream = asks.Stream || x.request == nil && x.hasStream
	}
	if x.want == nil && x.wantFailure == nil && x.wantError == nil && x.wantVerdict == nil && x.wantBody == nil && x.wantHead == "" {
		return nil, fmt.Errorf("it expects nothing")
	}
	return x, nil
}

// readHead reads "429", and then a header a line.
func readHead(a *providerAnswer, text string) error {
	status, rest, _ := strings.Cut(text, "\n")
	n, err := strconv.ParseUint(strings.TrimSpace(status), 10, 32)
	if err != nil {
		return fmt.Errorf("the first line is no status")
	}
	a.status = uint32(n)
	for line := range strings.Lines(rest) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			return fmt.Errorf("%q is no header", line)
		}
		a.header = append(a.header, interlock.Field{Name: strings.ToLower(name), Value: strings.TrimSpace(value)})
	}
	return nil
}

// splitSSE does what the host does with a text/event-stream. A frame [DONE] is a frame.
func splitSSE(text string) (list []frame) {
	var f frame
	var data []string
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if f.data = strings.Join(data, "\n"); len(data) > 0 {
				list = append(list, f)
			}
			f, data = frame{}, nil
		case field == "event":
			f.name = value
		case field == "data":
			data = append(data, value)
		}
	}
	return list
}

func splitLines(text string) (list []frame) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, frame{"", line})
		}
	}
	return list
}

// splitFrames reads frames that are cut already: a line each, its name (- for none), a blank and
// its data.
func splitFrames(text string) (list []frame, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, data, ok := strings.Cut(line, " ")
		if !ok {
			return nil, fmt.Errorf("%q has a name only", line)
		}
		if name == "-" {
			name = ""
		}
		list = append(list, frame{name, data})
	}
	return list, nil
}
