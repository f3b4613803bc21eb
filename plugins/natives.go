package plugins

// natives are the adapters that come with the gateway.
var natives = map[string]Source{}
