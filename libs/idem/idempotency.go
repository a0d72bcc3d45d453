// Package idem holds what identifies a request with an Idempotency-Key, and its response; idemstore stores them. Where the
// specification says nothing, both follow the IETF draft "The Idempotency-Key HTTP Header Field".
package idem

import (
	"context"
	"crypto/sha256"
	"time"
)

// Lifetime is how long a key is remembered, from its first use.
const Lifetime = 24 * time.Hour

// Response is the response of a write, as stored in the write's transaction and sent unchanged.
type Response struct {
	Status    int
	Location  string
	ETag      string
	Resource  string // id of the resource in the body, by which erasure finds the stored response
	Body      []byte
	Replayed  bool      // read back from an earlier request with the same key
	ExpiresAt time.Time // end of the record's life; zero without a key
	Secret    bool      // the body holds a secret: encrypted in the table, never cached elsewhere
}

// Request identifies a write of a caller.
type Request struct {
	Key         string
	Fingerprint [32]byte
	Secret      bool // the operation's responses hold a secret
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

// Fingerprint is SHA-256 over the method, the canonical path (under /api/v1), the query and the body in the canonical
// form of contract.Canonical, which is empty without a body.
func Fingerprint(method, path, rawQuery string, canonical []byte) [32]byte {
	h := sha256.New()
	for _, part := range []string{method, path, rawQuery} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(canonical)
	return [32]byte(h.Sum(nil))
}
