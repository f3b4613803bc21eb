package admin

import _ "embed"

// OpenAPI is the OpenAPI 3.1 document of both listeners, as JSON.
//
//go:embed openapi.json
var OpenAPI []byte
