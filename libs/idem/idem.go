// Package idem makes a POST or PATCH take effect once per Idempotency-Key: the record of the key and the
// stored answer are rows of the same transaction as the effect. It follows the IETF draft
// "The Idempotency-Key HTTP Header Field" where the specification is silent.
package idem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"
)

// Lifetime is how long a key is remembered, from its first use.
const Lifetime = 24 * time.Hour

// Reply is the answer of a write verb, as stored with its effect and sent unchanged.
type Reply struct {
	Status    int
	Location  string
	ETag      string
	Resource  string // id of the resource in the body, by which erasure finds the stored answer
	Body      []byte
	Replayed  bool      // read back from an earlier request with the same key
	ExpiresAt time.Time // end of the record's life; zero without a key
	Secret    bool      // the body holds a secret: encrypted in the table, never cached elsewhere
}

// Request is what identifies a write beside its caller.
type Request struct {
	Key         string
	Fingerprint [32]byte
	Secret      bool // the operation's answers hold a secret
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

// Fingerprint is SHA-256 over method, canonical path (under /api/v1), query and the JSON body with key
// order and white space ignored. A body that is no JSON counts byte for byte.
func Fingerprint(method, path, rawQuery string, body []byte) [32]byte {
	h := sha256.New()
	for _, part := range []string{method, path, rawQuery} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(canonical(body))
	return [32]byte(h.Sum(nil))
}

// canonical re-encodes JSON with sorted keys; numbers keep their lexeme, so 1 and 1.0 differ.
func canonical(body []byte) []byte {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		return body
	}
	out, err := json.Marshal(v) // maps marshal in key order
	if err != nil {
		return body
	}
	return out
}
