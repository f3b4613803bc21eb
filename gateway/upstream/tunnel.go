package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	xproxy "golang.org/x/net/proxy"
)

// maxConnectReply bounds a proxy's answer to CONNECT.
const maxConnectReply = 16 << 10

// tunnel asks the proxy at the other end of m for a way to address.
func (p *proxy) tunnel(ctx context.Context, m *meter, address string) error {
	stop := context.AfterFunc(ctx, func() { _ = m.SetDeadline(past) })
	ask := p.connect
	if p.socks {
		ask = p.socks5
	}
	err := ask(ctx, m, address)
	if !stop() && err == nil {
		return ctx.Err() // the deadline is in the past by now, or will be
	}
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	return m.SetDeadline(time.Time{})
}

// connect speaks HTTP CONNECT (RFC 9110, section 9.3.6).
func (p *proxy) connect(_ context.Context, m *meter, address string) error {
	req := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if p.authorization != "" {
		req += "Proxy-Authorization: " + p.authorization + "\r\n"
	}
	if _, err := m.Write([]byte(req + "\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 0, 512)
	for {
		if len(reply) == cap(reply) {
			if len(reply) >= maxConnectReply {
				return errors.New("the answer to CONNECT has too large a head")
			}
			reply = append(reply, 0)[:len(reply)]
		}
		n, err := m.Read(reply[len(reply):cap(reply)])
		reply = reply[:len(reply)+n]
		if end := bytes.Index(reply, []byte("\r\n\r\n")); end >= 0 {
			return checkConnectReply(reply, end+4)
		}
		if err != nil {
			return err
		}
	}
}

func checkConnectReply(reply []byte, end int) error {
	if len(reply) < len("HTTP/1.1 200") || !bytes.HasPrefix(reply, []byte("HTTP/1.")) || reply[8] != ' ' {
		return errors.New("the answer to CONNECT is not HTTP/1.x")
	}
	status := reply[9:12]
	if status[0] != '2' {
		if !isDigits(status) {
			return errors.New("the answer to CONNECT has no status")
		}
		return fmt.Errorf("CONNECT was answered with status %s", status)
	}
	if len(reply) != end {
		return errors.New("bytes came behind the answer to CONNECT") // they would pass for the upstream's
	}
	return nil
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// socks5 speaks SOCKS 5 (RFC 1928) with a name, so the proxy resolves it.
func (p *proxy) socks5(ctx context.Context, m *meter, address string) error {
	var auth *xproxy.Auth
	if p.user != "" {
		auth = &xproxy.Auth{User: p.user, Password: p.password}
	}
	d, err := xproxy.SOCKS5("tcp", p.address, auth, nil)
	if err != nil {
		return err
	}
	over, ok := d.(interface {
		DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return errors.New("this build cannot speak SOCKS over a connection of its own")
	}
	_, err = over.DialWithConn(ctx, m, "tcp", address)
	return err
}
