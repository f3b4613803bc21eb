package fault

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

var healthyScript = &Script{name: "healthy", settings: defaultSettings()}

func literalTemplate(s string) *template {
	return &template{pieces: []templatePiece{{literal: s}}}
}

// admit refuses what a provider refuses before anything else: a wrong key, a
// model it does not serve.
func (x *exchange) admit() (refused bool) {
	set := x.script.settings
	switch a := x.request.asked; {
	case set.key != "" && !carriesKey(x.request.header, set.key):
		x.refuse(http.StatusUnauthorized, problem{message: literalTemplate("Incorrect API key provided.")})
		return true
	case len(set.models) > 0 && a.model != "" && !slices.Contains(set.models, a.model):
		x.refuse(http.StatusNotFound, problem{message: literalTemplate("The model `" + a.model + "` does not exist.")})
		return true
	}
	return false
}

func carriesKey(h http.Header, key string) bool {
	for _, name := range []string{"Authorization", "Api-Key", "X-Api-Key"} {
		if strings.TrimPrefix(h.Get(name), "Bearer ") == key {
			return true
		}
	}
	return false
}

// healthy makes the answer what a healthy provider gives. It is true where the
// answer is said in events, which it then puts among the steps.
func (x *exchange) healthy() (speaks bool) {
	switch e := x.request.endpoint; {
	case e == endpointOther:
		x.refuse(http.StatusNotFound, problem{message: literalTemplate("Unknown path " + x.request.path), code: literalTemplate("not_found")})
	case e == endpointModels && x.request.method == http.MethodGet:
		x.models()
	case e == endpointModels || x.request.method != http.MethodPost:
		x.refuse(http.StatusMethodNotAllowed, problem{})
	case !x.request.asked.valid && !x.plan.readHead:
		x.refuse(http.StatusBadRequest, problem{message: literalTemplate("We could not parse the JSON body of your request.")})
	case e == endpointEmbeddings:
		x.embeddings()
	case e == endpointModerations:
		x.moderations()
	default:
		x.sayHealthy()
		return true
	}
	return false
}

// sayHealthy puts the healthy answer at the end of the steps, or before the
// "end" among them.
func (x *exchange) sayHealthy() {
	a := x.script.settings.healthy
	if x.request.asked.hasSchema {
		a.parts = []part{{kind: eventText, content: content{text: *literalTemplate(sample(x.request.asked.schema))}}}
	}
	at := len(x.steps)
	for i, s := range x.steps {
		if _, ok := s.(endStep); ok {
			at = i
			break
		}
	}
	steps := append([]step{}, x.steps[:at]...)
	x.steps = append(append(steps, a), x.steps[at:]...)
}

func (x *exchange) json(format string, args ...any) {
	x.static = &bodyText{fmt.Sprintf(format, args...), "application/json"}
}

// models answers GET /v1/models and /v1/models/{id}.
func (x *exchange) models() {
	names := x.script.settings.models
	if len(names) == 0 {
		names = []string{x.provider.name + "-model"}
	}
	object := func(id string) string {
		return fmt.Sprintf(`{"id":%s,"object":"model","created":%d,"owned_by":%s}`, quoted(id), firstCreated, quoted(x.provider.name))
	}
	if _, id, one := strings.Cut(x.request.path, "/models/"); one {
		if !slices.Contains(names, id) {
			x.refuse(http.StatusNotFound, problem{message: literalTemplate("The model `" + id + "` does not exist.")})
			return
		}
		x.json("%s", object(id))
		return
	}
	var list []string
	for _, n := range names {
		list = append(list, object(n))
	}
	x.json(`{"object":"list","data":[%s]}`, strings.Join(list, ","))
}

// embeddings answers with a unit vector for each input, the same for the same
// input, seed and number of dimensions.
func (x *exchange) embeddings() {
	a := x.request.asked
	dimensions := x.script.settings.dimensions
	if a.dimension > 0 {
		dimensions = min(a.dimension, maxDimensions)
	}
	var data []string
	tokens := 0
	for i, input := range a.inputs {
		tokens += len(input)/4 + 1
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, renderVector(vector(input, x.seed, dimensions), a.base64)))
	}
	x.json(`{"object":"list","data":[%s],%s"usage":{"prompt_tokens":%d,"total_tokens":%d}}`, strings.Join(data, ","), x.identity.modelField(), tokens, tokens)
}

const maxDimensions = 8192

func vector(input json.RawMessage, seed uint64, dimensions int) []float32 {
	h := fnv.New64a()
	_, _ = h.Write(input)
	state := h.Sum64() ^ splitmix64(seed)
	out := make([]float32, dimensions)
	norm := 0.0
	for i := range out {
		state = splitmix64(state)
		v := float64(state>>11)/(1<<52) - 1
		out[i] = float32(v)
		norm += v * v
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(norm))
	}
	return out
}

// renderVector gives the numbers, or base64 of them as little-endian float32.
func renderVector(v []float32, asBase64 bool) string {
	if asBase64 {
		raw := make([]byte, 0, 4*len(v))
		for _, f := range v {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
		}
		return quoted(base64.StdEncoding.EncodeToString(raw))
	}
	b := []byte{'['}
	for i, f := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(f), 'f', -1, 32)
	}
	return string(append(b, ']'))
}

// moderationCategories are those of omni-moderation-latest.
var moderationCategories = strings.Fields(`harassment harassment/threatening hate hate/threatening illicit
	illicit/violent self-harm self-harm/instructions self-harm/intent sexual sexual/minors violence violence/graphic`)

// moderations answers that nothing is flagged, for each input.
func (x *exchange) moderations() {
	var categories, scores []string
	for _, c := range moderationCategories {
		categories = append(categories, quoted(c)+":false")
		scores = append(scores, quoted(c)+":0.0001")
	}
	result := fmt.Sprintf(`{"flagged":false,"categories":{%s},"category_scores":{%s}}`, strings.Join(categories, ","), strings.Join(scores, ","))
	results := make([]string, max(len(x.request.asked.inputs), 1))
	for i := range results {
		results[i] = result
	}
	x.json(`{"id":%s,%s"results":[%s]}`, quoted(x.vars.id), x.identity.modelField(), strings.Join(results, ","))
}
