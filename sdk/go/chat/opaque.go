package chat

import (
	"iter"
	"unicode/utf8"

	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Own ranges over the items of provider_data that carry the adapter's own name as "provider",
// each with the part of the message's reasoning that belongs to it, decoded: as many bytes as its
// "reasoning_bytes" says, behind those of the items before. Items of other providers are passed
// over, their reasoning too; so is an item whose reasoning is not there any more, and all behind
// it that have some.
func (m *Message) Own(provider string) iter.Seq2[json.Value, []byte] {
	return func(yield func(json.Value, []byte) bool) { m.own(provider, yield) }
}

func (m *Message) own(provider string, yield func(json.Value, []byte) bool) {
	if len(m.ProviderData) == 0 {
		return
	}
	rest := m.Reasoning.Text()
	for _, item := range m.ProviderData {
		var from, size json.Value
		for key, v := range item.Members() {
			switch string(key) {
			case "provider":
				from = v
			case "reasoning_bytes":
				size = v
			}
		}
		n, _ := size.Uint()
		var text []byte
		if n > 0 {
			if n > uint64(len(rest)) || n < uint64(len(rest)) && !utf8.RuneStart(rest[n]) {
				rest = nil
				continue
			}
			text, rest = rest[:n:n], rest[n:]
		}
		if from.Is(provider) && !yield(item, text) {
			return
		}
	}
}
