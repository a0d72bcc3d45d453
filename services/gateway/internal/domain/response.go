package domain

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Response is the part of a service's response that clients see.
type Response struct {
	Status          int
	ContentType     string
	Location        string
	ETag            string
	CacheControl    string
	WWWAuthenticate string
	RetryAfter      string
	ShouldRetry     string // "false" if a retry cannot succeed
	Replayed        bool
	IgnoredFields   string // like Applied, the applied preference, absent from a replay
	Applied         string
	Body            []byte
	RecordExpiresAt time.Time           // expiry of the idempotency record; zero: no record
	Passed          map[string][]string // additional headers for a browser; nil for every other response
	Private         bool                // the service specified that the response must not be cached
}

// stored is the head of a cached response. The unchanged body follows it. A placeholder only has Service.
type stored struct {
	Service      string `json:"n,omitempty"`
	Status       int    `json:"s"`
	ContentType  string `json:"t,omitempty"`
	Location     string `json:"l,omitempty"`
	ETag         string `json:"e,omitempty"`
	CacheControl string `json:"c,omitempty"`
}

const lengthSize = 4

// Placeholder returns the cacheable part of a response with a secret or personal data: the fact that its key was used, and the name
// of the service. Only that service can determine whether the request is the same, and return the response.
func Placeholder(service string) ([]byte, error) {
	return encode([32]byte{}, stored{Service: service}, nil)
}

// ErrStored reports that a cached response cannot be decoded. The caller ignores such a response.
var ErrStored = errors.New("malformed cached response")

// Encode returns the cached form of a response: fingerprint, length of the head, head, body.
func (a *Response) Encode(fingerprint [32]byte) ([]byte, error) {
	return encode(fingerprint, stored{
		Status: a.Status, ContentType: a.ContentType, Location: a.Location, ETag: a.ETag, CacheControl: a.CacheControl,
	}, a.Body)
}

func encode(fingerprint [32]byte, s stored, body []byte) ([]byte, error) {
	head, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	out := make([]byte, 0, len(fingerprint)+lengthSize+len(head)+len(body))
	out = append(out, fingerprint[:]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
	return append(append(out, head...), body...), nil
}

// CachedResponse is the cached entry of a key.
type CachedResponse struct {
	Same     bool   // the entry belongs to the same request
	Service  string // of a placeholder: the service that has the response
	Response Response
}

// Decode decodes the result of Encode or Placeholder, for a request with the given fingerprint.
func Decode(raw []byte, fingerprint [32]byte) (CachedResponse, error) {
	rest, found := cutLen(raw, len(fingerprint))
	size, ok := cutLen(rest, lengthSize)
	if !found || !ok {
		return CachedResponse{}, ErrStored
	}
	n := int(binary.BigEndian.Uint32(rest))
	body, ok := cutLen(size, n)
	var head stored
	if !ok || json.Unmarshal(size[:n], &head) != nil {
		return CachedResponse{}, ErrStored
	}
	return CachedResponse{
		Same: bytes.Equal(raw[:len(fingerprint)], fingerprint[:]), Service: head.Service,
		Response: Response{
			Status: head.Status, ContentType: head.ContentType, Location: head.Location, ETag: head.ETag,
			CacheControl: head.CacheControl, Replayed: true, Body: body,
		},
	}, nil
}

// cutLen returns b without its first n bytes, or false if b is shorter.
func cutLen(b []byte, n int) ([]byte, bool) {
	if n < 0 || len(b) < n {
		return nil, false
	}
	return b[n:], true
}

// Header returns the two fields of draft-ietf-httpapi-ratelimit-headers, RateLimit and RateLimit-Policy, for the credential. If a limit of
// the tenant rejected the request, name is its name: RateLimit is about that limit, and RateLimit-Policy lists it too.
func (r Rates) Header(name string) (limit, policy string) {
	policy = r.Credential.policy(LimitDefault)
	rejecting := r.Tenant
	switch name {
	case LimitDefault:
		return r.Credential.header(name), policy
	case LimitApps:
		rejecting = r.Apps
	}
	return rejecting.header(name), policy + ", " + rejecting.policy(name)
}

func (r Rate) header(name string) string {
	return `"` + name + `";r=` + strconv.FormatInt(r.Remaining, 10) + `;t=` + strconv.FormatInt(r.Reset, 10)
}

func (r Rate) policy(name string) string {
	return `"` + name + `";q=` + strconv.FormatInt(r.Limit, 10) + `;w=60`
}
