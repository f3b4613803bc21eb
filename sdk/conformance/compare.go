package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// differs says where got is not what want asks for, "" when nowhere. What want does not name may
// be anything; what it has as null must be null or absent; an array must be as long. A string in
// got that holds JSON equals want's if both are the same JSON.
func differs(want, got []byte) string {
	w, err := decode(want)
	if err != nil {
		return "what is wanted is not JSON"
	}
	g, err := decode(got)
	if err != nil {
		return "not JSON"
	}
	return differ("", w, g, false)
}

// same is differs where every member counts.
func same(want, got []byte) string {
	w, err := decode(want)
	if err != nil {
		return "what is wanted is not JSON"
	}
	g, err := decode(got)
	if err != nil {
		return "not JSON"
	}
	return differ("", w, g, true)
}

func differ(at string, want, got any, all bool) string {
	unlike := func() string {
		w, _ := json.Marshal(want)
		g, _ := json.Marshal(got)
		return fmt.Sprintf("%s is %.300s, want %.300s", name(at), g, w)
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return unlike()
		}
		keys := make([]string, 0, len(w))
		for key := range w {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			if w[key] == nil && g[key] == nil {
				continue
			}
			if d := differ(at+"."+key, w[key], g[key], all); d != "" {
				return d
			}
		}
		for key := range g {
			if _, ok := w[key]; all && !ok {
				return name(at) + " has a member that is not wanted: " + key
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return unlike()
		}
		for i := range w {
			if d := differ(at+"["+strconv.Itoa(i)+"]", w[i], g[i], all); d != "" {
				return d
			}
		}
	case string:
		g, ok := got.(string)
		if !ok || w != g && !sameText(w, g) {
			return unlike()
		}
	case json.Number:
		g, ok := got.(json.Number)
		if !ok {
			return unlike()
		}
		a, errA := w.Float64()
		b, errB := g.Float64()
		if w != g && (errA != nil || errB != nil || a != b) {
			return unlike()
		}
	default:
		if want != got {
			return unlike()
		}
	}
	return ""
}

// sameText compares the JSON objects in two strings, as tool-call arguments are.
func sameText(a, b string) bool {
	v, err := decode([]byte(a))
	if _, ok := v.(map[string]any); err != nil || !ok || !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
		return false
	}
	return same([]byte(a), []byte(b)) == ""
}

func name(at string) string {
	if at == "" {
		return "it"
	}
	return at[min(1, len(at)):]
}
