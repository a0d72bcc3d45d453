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

// Holder is what requests are counted for: a credential of a tenant in one mode. Without a tenant, Credential is any name, such as
// that of a client's network.
type Holder struct {
	Tenant     string // tn_…, or ""
	Mode       string // live or test
	Credential string
}

// Request contains the input of the script for one request of a client.
type Request struct {
	Holder

	Limits domain.Limits // those of the tenant apply only to a holder with a tenant; all have the same period
	Key    string        // Idempotency-Key whose cached response is requested; "" for none
	Now    int64         // microseconds; 0: use Redis's own clock
}

// Result is what Redis stores about a holder.
type Result struct {
	Passed   bool
	Windows  domain.Windows
	Now      int64  // Redis's clock, microseconds
	State    string // "", Revoked, or the version that identity wrote last
	Marker   string // changes when Redis loses its data
	Response []byte // the cached response, or nil
}

// key returns a key of the credential. Its hash tag is the tenant, like that of the tenant's other keys, so that all of them are on
// one node.
func (h Holder) key(kind string) string {
	if h.Tenant == "" {
		return kind + ":{" + h.Credential + "}"
	}
	return kind + ":{" + h.Tenant + "}:" + h.Credential
}

func (h Holder) windowKey() string { return h.key("rl") }

// tenantKey returns the key of the window of all credentials in the mode.
func (h Holder) tenantKey() string { return "rl:{" + h.Tenant + "}:" + h.Mode }

// appsKey returns the key of the window of all OAuth grants in the mode.
func (h Holder) appsKey() string { return h.tenantKey() + ":apps" }

// StateKey returns the key to which identity writes Revoked or a version number.
func (h Holder) StateKey() string { return h.key("st") }

func (h Holder) markerKey() string {
	if h.Tenant == "" {
		return h.key("mem")
	}
	return "mem:{" + h.Tenant + "}"
}

func (h Holder) responseKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return h.key("id") + ":" + hex.EncodeToString(sum[:])
}

// args returns the script's keys and arguments. The new marker is random, so two Redis servers that were flushed have
// different ones.
func (q *Request) args() ([]string, []any) {
	window := q.windowKey()
	look, cacheKey := "0", window // a key on the same node, which the script does not read
	if q.Key != "" {
		look, cacheKey = "1", q.responseKey(q.Key)
	}
	keys := []string{window, q.StateKey(), q.markerKey(), cacheKey}
	if q.Tenant != "" {
		keys = append(keys, q.tenantKey())
		if q.Limits.HasApps() {
			keys = append(keys, q.appsKey())
		}
	}
	return keys, []any{q.Now, q.Limits.Credential.Max, q.Limits.Credential.Per, rand.Text(), look, q.Limits.Tenant.Max, q.Limits.Apps.Max}
}

// parse decodes the script's result.
func parse(v any) (Result, error) {
	row, ok := v.([]any)
	if !ok || len(row) != 14 {
		return Result{}, fmt.Errorf("window script returned %T", v)
	}
	var n [14]int64
	for _, i := range [...]int{0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13} {
		if n[i], ok = row[i].(int64); !ok {
			return Result{}, fmt.Errorf("window script returned %T in place %d", row[i], i)
		}
	}
	r := Result{Passed: n[0] == 1, Now: n[1], Windows: domain.Windows{
		Credential: domain.Window{Start: n[5], Cur: n[6], Prev: n[7]}, Tenant: domain.Window{Start: n[8], Cur: n[9], Prev: n[10]},
		Apps: domain.Window{Start: n[11], Cur: n[12], Prev: n[13]},
	}}
	r.State, _ = row[2].(string)
	r.Marker, _ = row[3].(string)
	if response, found := row[4].(string); found {
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
