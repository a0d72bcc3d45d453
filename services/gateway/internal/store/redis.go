// Package store accesses Redis for the gateway: one script per request, and the cache of finished responses. Payments and bookings
// do not depend on it, so Redis may lose all data at any time.
package store

import (
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"holdfast.dev/services/gateway/internal/domain"
)

//go:embed window.lua
var windowScript string

// Revoked is the state of a credential that identity revoked.
const Revoked = "revoked"

// ErrDown reports that the credential's Redis node did not respond in time, or is marked as down. The caller must decide without Redis.
var ErrDown = errors.New("redis is down")

// Request contains the input of the script for one request of a client.
type Request struct {
	Credential string
	Limit      domain.Limit
	Key        string // Idempotency-Key whose cached response is requested; "" for none
	Now        int64  // microseconds; 0: use Redis's own clock
}

// Result is what Redis stores about a credential.
type Result struct {
	Passed   bool
	Window   domain.Window
	Now      int64  // Redis's clock, microseconds
	State    string // "", Revoked, or the version that identity wrote last
	Marker   string // changes when Redis loses its data
	Response []byte // the cached response, or nil
}

// windowKey returns a key with the credential as its hash tag, like the credential's other keys, so that all of them are on one
// node.
func windowKey(credential string) string { return "rl:{" + credential + "}" }

// StateKey returns the key to which identity writes Revoked or a version number.
func StateKey(credential string) string { return "st:{" + credential + "}" }

func markerKey(credential string) string { return "mem:{" + credential + "}" }

func responseKey(credential, key string) string {
	sum := sha256.Sum256([]byte(key))
	return "id:{" + credential + "}:" + hex.EncodeToString(sum[:])
}

// args returns the script's keys and arguments. The new marker is random, so two Redis servers that were flushed have
// different ones.
func (q *Request) args() ([]string, []any) {
	window := windowKey(q.Credential)
	look, cacheKey := "0", window // a key on the same node, which the script does not read
	if q.Key != "" {
		look, cacheKey = "1", responseKey(q.Credential, q.Key)
	}
	return []string{window, StateKey(q.Credential), markerKey(q.Credential), cacheKey},
		[]any{q.Now, q.Limit.Max, q.Limit.Per, rand.Text(), look}
}

// parse decodes the script's result.
func parse(v any) (Result, error) {
	row, ok := v.([]any)
	if !ok || len(row) != 8 {
		return Result{}, fmt.Errorf("window script returned %T", v)
	}
	var n [5]int64
	for i := range n {
		if n[i], ok = row[i].(int64); !ok {
			return Result{}, fmt.Errorf("window script returned %T in place %d", row[i], i)
		}
	}
	r := Result{Passed: n[0] == 1, Window: domain.Window{Start: n[1], Cur: n[2], Prev: n[3]}, Now: n[4]}
	r.State, _ = row[5].(string)
	r.Marker, _ = row[6].(string)
	if response, found := row[7].(string); found {
		r.Response = []byte(response)
	}
	return r, nil
}

// Close closes the connections.
func (r *Redis) Close() error {
	if err := r.client.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// cachedResponse is one response to cache.
type cachedResponse struct {
	key   string
	value []byte
	until time.Time
}

// maxCachedResponse limits the size of a cached response. The service replays a longer one.
const maxCachedResponse = 64 << 10
