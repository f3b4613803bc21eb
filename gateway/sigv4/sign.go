package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	dateForm  = "20060102T150405Z"
	dayLength = len("20060102")
	ending    = "/aws4_request"
)

// Field is one header field. Names are compared without regard to case.
type Field struct{ Name, Value string }

// Request is what is signed, besides its headers.
type Request struct {
	Method string
	Host   string // as sent: with a port where it is not the scheme's own
	// Path is what the request line has, base path and query included.
	Path string
	Body [sha256.Size]byte // SHA-256
	Time time.Time         // the service refuses one that is some minutes off
}

// Signer signs for one credential, region and service. It keeps the key that it derives for a
// day. It is safe for concurrent use, and prints as no secret.
type Signer struct {
	credential Credential
	scope      string // "/us-east-1/bedrock/aws4_request"
	today      atomic.Pointer[dayKey]
}

type dayKey struct {
	day [dayLength]byte
	key [sha256.Size]byte
}

// New makes a Signer. The error says which part cannot be one, and quotes nothing.
func New(c Credential, region, service string) (*Signer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if !isWord(region) || !isWord(service) {
		return nil, errors.New("the region or the service is not letters, digits and dashes")
	}
	return &Signer{credential: c, scope: "/" + region + "/" + service + ending}, nil
}

// String is the access key and what it signs for.
func (s *Signer) String() string { return s.credential.AccessKey + s.scope }

// GoString is String.
func (s *Signer) GoString() string { return s.String() }

// Sign appends the headers that make the request a signed one: X-Amz-Date, with a temporary
// credential X-Amz-Security-Token, and Authorization. header holds those among the request's
// others that the signature is to cover, and must be sent just so: all that begin with x-amz-,
// and the content type. Give none that the transport sets or a proxy may change; the host is
// covered anyway, and a Host among them is passed over.
func Sign[F ~struct{ Name, Value string }](dst []F, s *Signer, r *Request, header []F) []F {
	date := r.Time.UTC().Format(dateForm)
	var space [16]Field
	fields := append(space[:0], Field{"host", r.Host}, Field{"x-amz-date", date})
	if s.credential.SessionToken != "" {
		fields = append(fields, Field{"x-amz-security-token", s.credential.SessionToken})
	}
	for _, h := range header {
		if f := Field(h); !isOwn(f.Name) {
			fields = append(fields, f)
		}
	}
	authorization := s.authorization(date, r, fields)
	dst = append(dst, F(Field{"X-Amz-Date", date}))
	if s.credential.SessionToken != "" {
		dst = append(dst, F(Field{"X-Amz-Security-Token", s.credential.SessionToken}))
	}
	return append(dst, F(Field{"Authorization", authorization}))
}

func isOwn(name string) bool {
	for _, own := range [...]string{"host", "x-amz-date", "x-amz-security-token", "authorization"} {
		if compareNames(name, own) == 0 {
			return true
		}
	}
	return false
}

// authorization is the value of that header. It sorts fields.
func (s *Signer) authorization(date string, r *Request, fields []Field) string {
	sortFields(fields)
	var space [1024]byte
	hash := sha256.Sum256(appendCanonical(space[:0], r, fields))

	b := append(space[:0], algorithm+"\n"...)
	b = append(b, date...)
	b = append(b, '\n')
	b = append(append(b, date[:dayLength]...), s.scope...)
	b = append(b, '\n')
	b = hex.AppendEncode(b, hash[:])
	key := s.key(date[:dayLength])
	signature := mac(key[:], b)

	b = append(space[:0], algorithm+" Credential="...)
	b = append(append(b, s.credential.AccessKey...), '/')
	b = append(append(b, date[:dayLength]...), s.scope...)
	b = appendNames(append(b, ", SignedHeaders="...), fields)
	b = append(b, ", Signature="...)
	return string(hex.AppendEncode(b, signature[:]))
}

// key is the signing key of a day.
func (s *Signer) key(day string) [sha256.Size]byte {
	if k := s.today.Load(); k != nil && string(k.day[:]) == day {
		return k.key
	}
	region, service := cutScope(s.scope)
	k := &dayKey{key: mac([]byte("AWS4"+s.credential.SecretKey), []byte(day))}
	k.key = mac(k.key[:], []byte(region))
	k.key = mac(k.key[:], []byte(service))
	k.key = mac(k.key[:], []byte(ending[1:]))
	copy(k.day[:], day)
	s.today.Store(k)
	return k.key
}

func cutScope(scope string) (region, service string) {
	scope = scope[1 : len(scope)-len(ending)]
	for i := range len(scope) {
		if scope[i] == '/' {
			return scope[:i], scope[i+1:]
		}
	}
	return scope, ""
}

func mac(key, message []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, key)
	h.Write(message)
	h.Sum(sum[:0])
	return sum
}
