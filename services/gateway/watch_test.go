package main

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/store"
)

// An open stream ends soon after its credential does, whatever ends it. A running download is aborted, because half a list must not look
// complete.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, w *world, credential string){
		"revoked": func(t *testing.T, w *world, credential string) {
			w.identity.change(credential, revoke)
			w.setState(t, credential, store.Revoked)
		},
		"revoked, and Redis was flushed": func(t *testing.T, w *world, credential string) {
			w.identity.change(credential, revoke)
			w.forget(t, credential)
		},
		"without a scope": func(t *testing.T, w *world, credential string) {
			w.identity.change(credential, func(p *internalapi.Principal) { p.Version, p.Scopes = 2, []string{"read:webhooks", "read:customers"} })
			w.setState(t, credential, "2")
		},
		"suspended": func(t *testing.T, w *world, credential string) {
			w.identity.change(credential, inState(internalapi.TenantSuspended))
			w.setState(t, credential, "2")
		},
		"expired": func(*testing.T, *world, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.start(t)
			lifetime := time.Hour
			if name == "expired" {
				lifetime = 5 * time.Second
			}
			credential := w.identity.newToken(time.Now().Add(lifetime))
			w.service.streaming(t)
			events := g.listen(t, bearer(credential))
			service := w.downloads(t)
			list := g.listen(t, to(customers), bearer(credential), header("Accept", "text/csv"))
			service.sends(t, "id\r\n")
			list.hears(t, "id\r\n")
			end(t, w, credential)
			if err := events.ends(t); err != nil {
				t.Errorf("the stream ended with %v", err)
			}
			if err := list.ends(t); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the download ended with %v", err)
			}
			eventually(t, "no stream is open", func() bool { return count(g.server.Pipeline.Metrics.Streams) == 0 })
		})
	}
}

// A new version of a credential that has all of its scopes changes nothing for its streams, and the checks are not counted as requests.
func TestAStreamContinuesAfterAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.service.streaming(t)
	key := w.identity.newKey()
	l := g.listen(t, bearer(key))
	for _, version := range []int64{2, 3} {
		before := w.identity.lookupCount()
		w.identity.change(key, func(p *internalapi.Principal) { p.Version = version })
		w.setState(t, key, strconv.FormatInt(version, 10))
		eventually(t, "the credential is read again", func() bool { return w.identity.lookupCount() > before })
	}
	service.sends(t, "data: 1\n")
	l.hears(t, "data: 1\n")
	if a := g.send(t, "GET", oneCu, "", bearer(key)); a.Header.Get("RateLimit-Remaining") != "598" {
		t.Errorf("after the checks: %v", a.Header)
	}
}

// A credential that ends before its stream has begun gets the response of a request.
func TestAStreamThatHasNotBegunEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	w.service.set(func(f *fakeService) {
		f.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			w.identity.change(key, revoke)
			w.setState(t, key, store.Revoked)
			<-r.Context().Done()
			return true
		}
	})
	want(t, g.send(t, "GET", stream, "", bearer(key)), 401, "revoked_credential")
}
