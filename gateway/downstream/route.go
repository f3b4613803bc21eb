package downstream

import (
	"bytes"
	"net/url"

	"github.com/interlock-gateway/interlock/gateway/openai"
)

// operation is what a path asks for. The zero value is nothing that the front knows.
type operation uint8

const (
	unknown operation = iota
	call              // an endpoint of the OpenAI API: becomes an exchange
	listModels
	oneModel
	oneRequest
	document // the OpenAPI document: needs no key
)

// target is where a request goes.
type target struct {
	operation operation
	endpoint  openai.Endpoint // of a call
	id        []byte          // of one model or request, still percent-encoded
}

const (
	modelsPath   = "/v1/models"
	requestsPath = "/interlock/v1/requests/"
	documentPath = "/openapi.json"
)

// locate reads a request target: a path, maybe with a query, which is ignored, maybe after a
// scheme and a host.
func locate(uri []byte) target {
	path := pathOf(uri)
	if e, ok := openai.EndpointOf(path); ok {
		return target{operation: call, endpoint: e}
	}
	if string(path) == modelsPath {
		return target{operation: listModels}
	}
	if string(path) == documentPath {
		return target{operation: document}
	}
	if id, ok := bytes.CutPrefix(path, []byte(modelsPath+"/")); ok && len(id) > 0 {
		return target{operation: oneModel, id: id}
	}
	if id, ok := bytes.CutPrefix(path, []byte(requestsPath)); ok && len(id) > 0 && bytes.IndexByte(id, '/') < 0 {
		return target{operation: oneRequest, id: id}
	}
	return target{}
}

func pathOf(uri []byte) []byte {
	if i := bytes.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	if len(uri) > 0 && uri[0] == '/' {
		return uri
	}
	if _, rest, ok := bytes.Cut(uri, []byte("://")); ok {
		if i := bytes.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
	}
	return nil
}

// allow lists the methods of an operation.
func (o operation) allow() string {
	if o == call {
		return "POST"
	}
	return "GET, HEAD"
}

// permits says whether an operation has a method.
func (o operation) permits(method []byte) bool {
	if o == call {
		return string(method) == "POST"
	}
	return string(method) == "GET" || string(method) == "HEAD"
}

// name decodes the target's identifier; false where its percent-encoding is broken.
func (t target) name() (string, bool) {
	s, err := url.PathUnescape(string(t.id))
	return s, err == nil
}
