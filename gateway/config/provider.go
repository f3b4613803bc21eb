package config

// Provider is a wire format and a base URL.
type Provider struct {
	// What translates: openai, plugin:NAME or native:NAME.
	Adapter AdapterRef `yaml:"adapter" required:"true"`
	// Everything before the endpoint's own path, as in https://api.openai.com/v1.
	BaseURL string `yaml:"base_url" required:"true" is:"http"`
	// How a channel's credential is presented: bearer, header:NAME, query:NAME, aws_sigv4,
	// gcp, azure_ad or none.
	Auth Auth `yaml:"auth" default:"bearer"`
	// A proxy's URL: http://[user:password@]host[:port] or socks5://…
	Proxy Secret `yaml:"proxy" is:"proxy"`
	// The certificates, in PEM, that the provider's may come from, instead of the system's.
	CAFile string `yaml:"ca_file" is:"path"`
	// A client certificate, in PEM; together with client_key.
	ClientCert string `yaml:"client_cert" is:"path"`
	// Its private key.
	ClientKey string `yaml:"client_key" is:"path"`
	// Headers added to every call.
	Headers map[string]Secret `yaml:"headers" keys:"header" is:"header_value" literal:"ok"`
	// A caller's headers that are let through.
	PassHeaders []string `yaml:"pass_headers" is:"header"`
	// Whether a stream's usage is asked for where the caller did not.
	StreamUsage StreamUsage `yaml:"stream_usage" default:"ask" enum:"ask|leave"`
	// The gateway behind this base URL, where the provider is one itself.
	UpstreamGateway *UpstreamGateway `yaml:"upstream_gateway"`
}

// Served says whether this version can sign the provider's calls. A channel of a provider that
// is not served is no candidate for anything.
func (p *Provider) Served() bool { return !p.Auth.Soon() }

// Amplification returns how many upstream calls one attempt may become: 1 where the provider
// is no gateway.
func (p *Provider) Amplification() int {
	if p.UpstreamGateway == nil {
		return 1
	}
	return p.UpstreamGateway.Attempts
}

// StreamUsage says whether a stream's usage is asked for.
type StreamUsage string

// The answers.
const (
	StreamUsageAsk   StreamUsage = "ask"
	StreamUsageLeave StreamUsage = "leave"
)

// UpstreamGateway is a gateway that is used as a provider.
type UpstreamGateway struct {
	// Which one. Its own retries are switched off where its kind can.
	Kind GatewayKind `yaml:"kind" default:"other" enum:"litellm|portkey|openrouter|cloudflare|envoy|other"`
	// The calls that it still makes of one; multiplies in the ledger's amplification.
	Attempts int `yaml:"attempts" default:"1" min:"1" max:"100"`
	// Headers that tell it not to retry, where its kind alone does not.
	Headers map[string]Secret `yaml:"headers" keys:"header" is:"header_value" literal:"ok"`
}

// GatewayKind names a kind of gateway.
type GatewayKind string

// The kinds.
const (
	GatewayLiteLLM    GatewayKind = "litellm"
	GatewayPortkey    GatewayKind = "portkey"
	GatewayOpenRouter GatewayKind = "openrouter"
	GatewayCloudflare GatewayKind = "cloudflare"
	GatewayEnvoy      GatewayKind = "envoy"
	GatewayOther      GatewayKind = "other"
)
