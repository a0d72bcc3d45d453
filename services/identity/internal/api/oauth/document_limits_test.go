package oauth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/domain"
)

// TestDocumentFailuresAreRemembered checks that a document that cannot be used is fetched again only after a while.
func TestDocumentFailuresAreRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	client := s.base + "/client.json"
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	try := func() int { return b.get("/oauth/authorize?" + w.clientRequest(client).Encode()).StatusCode }
	if try() != 400 {
		t.Error("there is no document")
	}
	s.publishes("/client.json")
	if got := try(); got != 400 || s.requested() != 1 {
		t.Errorf("at once: %d", got)
	}
	w.pass(domain.FailureMemory)
	if got := try(); got != 200 || s.requested() != 1 {
		t.Errorf("later: %d", got)
	}
}

// TestDocumentLimits checks that each source can have only some documents fetched in a minute, that this concerns no other source, and that
// stored documents work all the time.
func TestDocumentLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	stored := s.publishes("/stored.json")
	dana, kim := w.browser(), w.browser()
	w.invite(w.tenant, "kim@example.com", "owner")
	dana.allow(w.clientRequest(stored), w.operator.Email)
	kim.signIn(w.clientRequest(stored), "kim@example.com")
	w.pass(time.Minute)
	s.requested()
	n := 0
	next := func() url.Values {
		n++
		return w.clientRequest(s.publishes(fmt.Sprintf("/%d.json", n)))
	}
	opens := func(b *browser, q url.Values) int { return b.get("/oauth/authorize?" + q.Encode()).StatusCode }
	pushes := func(address string) int { status, _ := w.pushFrom(address, next()); return status }
	start := w.now()
	w.pass(start.Truncate(time.Minute).Add(time.Minute).Sub(start)) // the beginning of a minute
	for range domain.DocumentsPerMinute {
		if got := opens(dana, next()); got != 200 {
			t.Fatalf("%d", got)
		}
		if got := pushes("198.51.100.1"); got != 201 {
			t.Fatalf("pushed: %d", got)
		}
	}
	if got := opens(dana, next()); got != 503 {
		t.Errorf("one more of the operator: %d", got)
	}
	if got := pushes("198.51.100.1"); got != 503 {
		t.Errorf("one more of the network: %d", got)
	}
	if got := s.requested(); got != 2*domain.DocumentsPerMinute {
		t.Errorf("%d requests", got)
	}
	if opens(kim, next()) != 200 || pushes("198.51.100.2") != 201 || opens(dana, w.clientRequest(stored)) != 200 {
		t.Error("others are limited too")
	}
	w.pass(time.Minute)
	if opens(dana, next()) != 200 || pushes("198.51.100.1") != 201 {
		t.Error("a minute later")
	}
}

// TestParallelFetchesOfADocument checks that requests for the same document share one fetch, and that a source can wait for a few only.
func TestParallelFetchesOfADocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	client := s.serves("/client.json", func(rw http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
		text("application/json; charset=utf-8", string(s.document("/client.json")))(rw, nil)
	})
	statuses := make(chan int, domain.DocumentPlacesEach+1)
	var all sync.WaitGroup
	for range domain.DocumentPlacesEach + 1 {
		all.Go(func() { status, _ := w.pushFrom("198.51.100.1", w.clientRequest(client)); statuses <- status })
	}
	<-arrived
	if got := <-statuses; got != 503 { // the others wait
		t.Errorf("one more: %d", got)
	}
	close(release)
	all.Wait()
	for range domain.DocumentPlacesEach {
		if got := <-statuses; got != 201 {
			t.Errorf("%d", got)
		}
	}
	if got := s.requested(); got != 1 {
		t.Errorf("%d requests", got)
	}
}

// TestPlacesOfDocuments checks that a source has a limited number of apps that nobody has used, and that other sources keep their apps.
func TestPlacesOfDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	registered := w.register(assistant, "198.51.100.1")
	used := s.publishes("/used.json")
	w.browser().allow(w.clientRequest(used), w.operator.Email)
	for i := range domain.NetworkPlaces + 1 {
		w.pass(time.Minute)
		if status, body := w.pushFrom("198.51.100.1", w.clientRequest(s.publishes(fmt.Sprintf("/%d.json", i)))); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
	}
	if got := w.rows(`select count(*)::text from oauth_apps where document_url is not null and network is not null`); got[0] != fmt.Sprint(domain.NetworkPlaces) {
		t.Errorf("%s apps", got[0])
	}
	if p := w.browser().get("/oauth/authorize?" + w.requestOf(registered).Encode()); p.StatusCode != http.StatusSeeOther {
		t.Errorf("documents have replaced an app that registered itself: %d", p.StatusCode)
	}
	w.pass(domain.UnusedLifetime)
	w.sweep()
	if got := w.rows(`select document_url from oauth_apps where tenant_id is null`); !slices.Equal(got, []string{used}) {
		t.Errorf("%v", got)
	}
}

// fetched is a fetcher whose result does not depend on the URL.
type fetched func(ctx context.Context, url string) (domain.ClientDocument, time.Duration, error)

func (f fetched) Fetch(ctx context.Context, url string) (domain.ClientDocument, time.Duration, error) {
	return f(ctx, url)
}

// TestLifetimesOfDocuments checks the bounds of the lifetimes, and that each fetch has a deadline that does not depend on the request.
func TestLifetimesOfDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for requested, want := range map[time.Duration]time.Duration{-time.Hour: domain.MinDocumentLifetime, 0: domain.MinDocumentLifetime, time.Hour: time.Hour, 1000 * time.Hour: domain.MaxDocumentLifetime} {
		client := fmt.Sprintf("https://assistant.example/%d", requested)
		w.fetcher.DocumentFetcher = fetched(func(ctx context.Context, url string) (domain.ClientDocument, time.Duration, error) {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) > domain.DocumentTimeout {
				t.Errorf("the deadline is %s", until)
			}
			return domain.ClientDocument{ClientID: url, ClientName: "Claude", RedirectURIs: []string{documentRedirect}}, requested, nil
		})
		if status, body := w.pushFrom("198.51.100.1", w.clientRequest(client)); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
		if got := w.rows(`select extract(epoch from document_fresh_until - document_fetched_at)::int::text from oauth_apps where document_url = $1`, client); got[0] != fmt.Sprint(want.Seconds()) {
			t.Errorf("%s: %s s, want %s", requested, got[0], want)
		}
	}
	if got := w.rows(`select distinct array_to_string(scopes, ' ') from oauth_apps where document_url is not null`); !slices.Equal(got, []string{strings.Join(proto.Scopes, " ")}) {
		t.Errorf("scopes %v", got)
	}
}
