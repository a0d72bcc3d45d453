package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/peer/peertest"
)

// A process of a service has vanished, but the address still routes to it, so packets that open a connection are dropped. No
// request is lost, regardless of its method, and none is sent twice. Streams also reach a running process.
func TestAVanishedProcessCostsNoRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	target, err := url.Parse(w.service.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	address := peertest.Dropping(t, 3, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/stream") {
			w.Header().Set("Connection", "close") // so that each request makes a connection
		}
		proxy.ServeHTTP(w, r)
	}))
	g := w.start(t, at("customers", "http://"+address), at("webhooks", "http://"+address))
	key := w.identity.newKey()
	const each = 15
	var all sync.WaitGroup
	for method, path := range map[string]string{"POST": customers, "GET": oneCu, "PATCH": oneCu} {
		for range each {
			all.Go(func() {
				body := ""
				if method == "POST" || method == "PATCH" {
					body = ada
				}
				a, err := g.try(t, method, path, body, bearer(key))
				if err != nil || a.StatusCode >= 300 {
					t.Errorf("%s: %v %v", method, a, err)
				}
			})
		}
	}
	all.Wait()
	if handled, _ := w.service.calls(); handled != 3*each {
		t.Errorf("%d requests were handled %d times", 3*each, handled)
	}
	w.service.streaming(t)
	var open []*listener
	for range 12 {
		key := w.identity.newKey()
		open = append(open, g.listen(t, bearer(key)))
	}
	for _, l := range open {
		l.leave()
	}
}
