package wasm

// Op is an operation of the ABI.
type Op uint32

const (
	OpConfigure Op = iota
	OpRequest
	OpResponse
	OpEvents
	OpClassify
	OpDescribe
	OpGuardRequest
	OpGuardResponse
	OpGuardEvents
)

var opNames = [...]string{
	OpConfigure: "configure", OpRequest: "request", OpResponse: "response", OpEvents: "events",
	OpClassify: "classify", OpDescribe: "describe", OpGuardRequest: "guard_request",
	OpGuardResponse: "guard_response", OpGuardEvents: "guard_events",
}

// String returns the operation's name, as metrics and manifests have it.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

// urgent says that somebody is being answered right now: such a call goes first and may use the
// whole pool, the others half of it.
func (o Op) urgent() bool { return o == OpEvents || o == OpGuardEvents }
