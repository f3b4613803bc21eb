package adapter

import (
	"errors"
	"runtime"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Native runs the native build of a plugin: the same source, without the sandbox. It is for
// the plugins that come with the gateway. It is safe for concurrent use.
type Native struct {
	name   string
	guests sync.Pool
}

// NewNative makes a runner of a plugin's source. config is JSON, an object; nil is an empty one.
// The error is the plugin's own about its configuration.
func NewNative(name, manifest string, maker interlock.Maker, config []byte) (*Native, error) {
	first, err := configured(manifest, maker, config)
	if err != nil {
		return nil, err
	}
	n := &Native{name: name}
	n.guests.New = func() any {
		g, err := configured(manifest, maker, config)
		if err != nil {
			return nil // it did the first time, and is pure
		}
		return g
	}
	n.guests.Put(first)
	return n, nil
}

func configured(manifest string, maker interlock.Maker, config []byte) (*interlock.Guest, error) {
	g := interlock.NewGuest(manifest, maker)
	var w interlock.Writer
	w.Bytes(make([]byte, 4+8+3*4)) // a context of no request
	w.Bytes(config)
	if out, failed := g.Call(interlock.OpConfigure, w, nil); failed {
		return nil, wasm.DecodeError(out)
	}
	return g, nil
}

// Call implements Runner. It never waits. A panic of the plugin is a failure of the call.
func (n *Native) Call(_ wasm.Wait, op wasm.Op, in, dst []byte) (out []byte, err error) {
	g, ok := n.guests.Get().(*interlock.Guest)
	if !ok {
		return dst, &wasm.Failure{Plugin: n.name, Reason: wasm.NotStart}
	}
	defer func() {
		if v := recover(); v != nil {
			out, err = dst, &wasm.Failure{Plugin: n.name, Reason: wasm.Trapped, Err: panicked(v)}
			return
		}
		n.guests.Put(g)
	}()
	out, failed := g.Call(uint32(op), in, dst)
	if failed {
		return dst, wasm.DecodeError(out[len(dst):])
	}
	return out, nil
}

var errPanic = errors.New("a panic, whose words are not kept: they may quote a prompt")

// panicked is the error of a panic. What the Go runtime finds wrong quotes nothing.
func panicked(v any) error {
	if err, ok := v.(runtime.Error); ok {
		return err
	}
	return errPanic
}

var _ Runner = (*Native)(nil)
