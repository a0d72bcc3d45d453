package main

import (
	"encoding/hex"
	"errors"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/peers"
)

// TestLookupsAtTheSameTime looks up API keys, access tokens and unknown keys at once. Each gets its own result, in few calls. The previous
// release of identity has no batches, and receives a call per credential.
func TestLookupsAtTheSameTime(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"this release": false, "previous release": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, identity := newLookups(t)
			f.old, f.pause = old, 30*time.Millisecond
			const each = 50
			expected := map[string]string{} // the ID of each credential; unknown: empty
			for range each {
				key, token := f.newKey(), f.newToken(time.Now().Add(time.Hour))
				expected[key], expected[token] = f.change(key, nil).ID, f.change(token, nil).ID
				expected[apikey.New(caller.Test)] = ""
			}
			lookUpAll(t, identity, expected)
			if f.lookups != len(expected) {
				t.Errorf("%d lookups of %d credentials", f.lookups, len(expected))
			}
			if limit := len(expected) / 5; !old && f.calls > limit {
				t.Errorf("%d calls, at most %d are allowed", f.calls, limit)
			}
		})
	}
}

func lookUpAll(t *testing.T, identity *peers.Identity, expected map[string]string) {
	t.Helper()
	var all sync.WaitGroup
	for token, id := range expected {
		all.Go(func() {
			p, err := identity.Lookup(t.Context(), apikey.Hash(token), domain.KindOf(token))
			if missing := errors.Is(err, domain.ErrInvalid); missing != (id == "") || !missing && err != nil || p.Caller.Credential != id {
				t.Errorf("%q was looked up as %q: %v", id, p.Caller.Credential, err)
			}
		})
	}
	all.Wait()
}

// TestFailedLookups checks that no credential is unknown because identity is not available, and that it then gets few calls.
func TestFailedLookups(t *testing.T) {
	t.Parallel()
	f, identity := newLookups(t)
	f.down, f.pause = true, 30*time.Millisecond
	const keys = 40
	var all sync.WaitGroup
	for range keys {
		key := f.newKey()
		all.Go(func() {
			if _, err := identity.Lookup(t.Context(), apikey.Hash(key), domain.KindKey); err == nil || errors.Is(err, domain.ErrInvalid) {
				t.Errorf("the lookup returned %v", err)
			}
		})
	}
	all.Wait()
	if f.calls > keys/2 { // two for each batch
		t.Errorf("%d calls for %d credentials", f.calls, keys)
	}
}

// TestALookupThatFailsAffectsNoOther checks that others in the same batch still get their principals.
func TestALookupThatFailsAffectsNoOther(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(f *fakeIdentity, key string){
		"the principal is wrong": func(f *fakeIdentity, key string) {
			f.change(key, func(p *internalapi.Principal) { p.TenantID = "tn_wrong" })
		},
		"identity fails": func(f *fakeIdentity, key string) { f.broken = hash(key) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, identity := newLookups(t)
			f.pause = 30 * time.Millisecond
			bad := f.newKey()
			spoil(f, bad)
			expected := map[string]string{}
			for range 40 {
				key := f.newKey()
				expected[key] = f.change(key, nil).ID
			}
			var one sync.WaitGroup
			one.Go(func() {
				time.Sleep(f.pause / 2)
				if _, err := identity.Lookup(t.Context(), apikey.Hash(bad), domain.KindKey); err == nil || errors.Is(err, domain.ErrInvalid) {
					t.Errorf("the lookup returned %v", err)
				}
			})
			lookUpAll(t, identity, expected)
			one.Wait()
		})
	}
}

// newLookups returns an identity service and a client of it.
func newLookups(t *testing.T) (*fakeIdentity, *peers.Identity) {
	t.Helper()
	secret := hex.EncodeToString(make([]byte, 32))
	keys, err := caller.ParseKeys("identity=k1:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeIdentity(t, secret)
	return f, &peers.Identity{Client: &peer.Client{Target: "identity", BaseURL: f.url, Signer: &caller.Signer{From: "gateway", Keys: keys}}}
}
