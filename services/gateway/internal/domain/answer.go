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

// Answer is what a service answered, as far as clients see it.
type Answer struct {
	Status          int
	ContentType     string
	Location        string
	ETag            string
	CacheControl    string
	WWWAuthenticate string
	RetryAfter      string
	Replayed        bool
	Body            []byte
	KeepUntil       time.Time // end of the idempotency record; zero: must not be cached
}

// stored is the head of a cached answer; the body follows it byte for byte.
type stored struct {
	Status       int    `json:"s"`
	ContentType  string `json:"t,omitempty"`
	Location     string `json:"l,omitempty"`
	ETag         string `json:"e,omitempty"`
	CacheControl string `json:"c,omitempty"`
}

const lengthSize = 4

// ErrStored says that a cached answer cannot be read; it counts as none.
var ErrStored = errors.New("malformed cached answer")

// Encode is the cached form of a finished answer: fingerprint, length of the head, head, body.
func (a *Answer) Encode(fingerprint [32]byte) ([]byte, error) {
	head, err := json.Marshal(stored{a.Status, a.ContentType, a.Location, a.ETag, a.CacheControl})
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	out := make([]byte, 0, len(fingerprint)+lengthSize+len(head)+len(a.Body))
	out = append(out, fingerprint[:]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(head))) //nolint:gosec // a few hundred bytes
	return append(append(out, head...), a.Body...), nil
}

// DecodeAnswer reads what Encode wrote; same reports whether it answered a request of that fingerprint.
func DecodeAnswer(raw []byte, fingerprint [32]byte) (a Answer, same bool, err error) {
	rest, found := cutLen(raw, len(fingerprint))
	size, ok := cutLen(rest, lengthSize)
	if !found || !ok {
		return Answer{}, false, ErrStored
	}
	n := int(binary.BigEndian.Uint32(rest))
	body, ok := cutLen(size, n)
	var head stored
	if !ok || json.Unmarshal(size[:n], &head) != nil {
		return Answer{}, false, ErrStored
	}
	return Answer{
		Status: head.Status, ContentType: head.ContentType, Location: head.Location, ETag: head.ETag,
		CacheControl: head.CacheControl, Replayed: true, Body: body,
	}, bytes.Equal(raw[:len(fingerprint)], fingerprint[:]), nil
}

// cutLen returns what follows the first n bytes.
func cutLen(b []byte, n int) ([]byte, bool) {
	if n < 0 || len(b) < n {
		return nil, false
	}
	return b[n:], true
}

// Header returns the two fields of draft-ietf-httpapi-ratelimit-headers, RateLimit and RateLimit-Policy.
func (r Rate) Header() (limit, policy string) {
	limit = `"default";r=` + strconv.FormatInt(r.Remaining, 10) + `;t=` + strconv.FormatInt(r.Reset, 10)
	return limit, `"default";q=` + strconv.FormatInt(r.Limit, 10) + `;w=60`
}
