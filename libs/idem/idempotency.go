// Package idem defines what identifies a request with an Idempotency-Key, and its response. idemstore stores them. Where the
// specification is silent, both follow the IETF draft "The Idempotency-Key HTTP Header Field".
package idem

import (
	"context"
	"crypto/sha256"
	"time"
)

// Lifetime is how long a key is stored, from its first use.
const Lifetime = 24 * time.Hour

// Response is the response of a write, as stored in the write's transaction and sent unchanged.
type Response struct {
	Status    int
	Location  string
	ETag      string
	Resource  string // id of the resource in the body; erasure finds the stored response by it
	Body      []byte
	Replayed  bool      // stored by an earlier request with the same key
	ExpiresAt time.Time // expiry of the record; zero without a key
	Secret    bool      // the body contains a secret: encrypted in the table, never cached elsewhere
}

// Request identifies a write of a caller.
type Request struct {
	Key         string
	Fingerprint [32]byte
	Secret      bool // the operation's responses contain a secret
}

type requestKey struct{}

// WithRequest returns ctx with the request's key and fingerprint.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom returns what WithRequest stored; false when the request carries no key.
func RequestFrom(ctx context.Context) (Request, bool) {
	r, ok := ctx.Value(requestKey{}).(Request)
	return r, ok
}

// Fingerprint returns the SHA-256 of the method, the canonical path (under /api/v1), the query and the body in the form of
// contract.Canonical, which is empty without a body.
func Fingerprint(method, path, rawQuery string, canonical []byte) [32]byte {
	h := sha256.New()
	for _, part := range []string{method, path, rawQuery} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(canonical)
	return [32]byte(h.Sum(nil))
}
