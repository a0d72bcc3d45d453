package oauth_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/dnstest"
	"holdfast.dev/libs/egress"
	"holdfast.dev/libs/tlstest"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
)

// site is a TLS server with the documents of clients. Its name and its address can change.
type site struct {
	*httptest.Server

	base  string // URL without a path
	count atomic.Int64
	zone  atomic.Pointer[netip.Addr] // address of its name

	mu    sync.Mutex
	pages map[string]http.HandlerFunc // guarded by mu: by path
}

// newSite starts a site that the world's documents come from. Only 127.0.0.1 is allowed in addition to public addresses.
func (w *world) newSite() *site {
	w.t.Helper()
	s := &site{pages: map[string]http.HandlerFunc{}}
	s.zone.Store(new(netip.MustParseAddr("127.0.0.1")))
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.count.Add(1)
		s.mu.Lock()
		page := s.pages[r.URL.Path]
		s.mu.Unlock()
		if page == nil {
			page = http.NotFound
		}
		page(rw, r)
	}))
	authority := tlstest.New(w.t)
	certFile, keyFile := authority.Leaf(w.t, "assistant.example")
	leaf, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		w.t.Fatal(err)
	}
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{leaf}}
	s.StartTLS()
	w.t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	s.base = "https://assistant.example:" + port
	w.fetchWith(authority, func(string) []netip.Addr { return []netip.Addr{*s.zone.Load()} }, "127.0.0.1/32")
	return s
}

// fetchWith makes the world fetch documents with names of a zone, within the guard.
func (w *world) fetchWith(authority *tlstest.Authority, zone dnstest.Zone, allowed ...string) {
	w.t.Helper()
	guard, err := egress.NewGuard("", allowed)
	if err != nil {
		w.t.Fatal(err)
	}
	ca, err := os.ReadFile(authority.CAFile)
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	w.fetcher.DocumentFetcher = peers.NewClientDocuments(guard, zone.Resolver(), roots)
}

// serves sets what the site returns at a path, and returns its URL.
func (s *site) serves(path string, page http.HandlerFunc) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = page
	return s.base + path
}

// publishes sets a document at a path. Each pair of changes replaces a member; nil removes it.
func (s *site) publishes(path string, changes ...any) string {
	return s.serves(path, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(s.document(path, changes...))
	})
}

const documentRedirect = "https://assistant.example/callback"

func (s *site) document(path string, changes ...any) []byte {
	d := map[string]any{
		"client_id": s.base + path, "client_name": "Claude", "client_uri": "https://assistant.example", "logo_uri": "http://127.0.0.1/logo.png",
		"redirect_uris": []string{documentRedirect, "http://localhost/callback", "cursor://callback"}, "token_endpoint_auth_method": "none",
		"grant_types": []string{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"}, "response_types": []string{"code"},
	}
	for i := 0; i < len(changes); i += 2 {
		name, _ := changes[i].(string)
		if d[name] = changes[i+1]; changes[i+1] == nil {
			delete(d, name)
		}
	}
	raw, _ := json.Marshal(d) // of strings
	return raw
}

// requested returns how often the site was requested since the last call.
func (s *site) requested() int64 { return s.count.Swap(0) }

func (w *world) clientRequest(client string, pairs ...string) url.Values {
	return w.request(append([]string{"client_id", client, "redirect_uri", documentRedirect}, pairs...)...)
}

// pushFrom pushes an authorization request from an address.
func (w *world) pushFrom(address string, form url.Values) (status int, body string) {
	w.t.Helper()
	b := w.browser()
	b.header.Set("X-Forwarded-For", address)
	p := b.do(http.MethodPost, "/oauth/par", form)
	return p.StatusCode, p.body
}

// TestClientDocument checks the life of a client whose client_id is the URL of a document: nothing is fetched for strangers, the pages warn,
// and codes, tokens, refreshes and revocations name the URL. A second tenant uses the same app.
func TestClientDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	client := s.publishes("/oauth/client.json")
	if body := w.browser().get("/.well-known/oauth-authorization-server").body; !strings.Contains(body, `"client_id_metadata_document_supported":true`) {
		t.Error(body)
	}
	b := w.browser()
	signIn := b.follow(b.get("/oauth/authorize?" + w.clientRequest(client).Encode()))
	host := strings.TrimPrefix(s.base, "https://")
	if !strings.Contains(signIn.body, "to continue to "+host) || !strings.Contains(signIn.body, "nobody has verified its name") || strings.Contains(signIn.body, "Claude") || s.requested() != 0 {
		t.Fatalf("%d %s", signIn.StatusCode, signIn.body)
	}
	p := b.follow(b.submit(signIn, "email", w.operator.Email, "password", password))
	if !strings.Contains(p.body, "Claude requests access") || !strings.Contains(p.body, "The site "+host+" describes this app, and nobody has verified its name") ||
		!strings.Contains(p.body, "You will return to assistant.example.") || strings.Contains(p.body, "published by") || strings.Contains(p.body, "a program on your computer") {
		t.Fatalf("%d %s", p.StatusCode, p.body)
	}
	code := w.sent(b.submit(p, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code")
	w.exchange(code, "client_id", s.base+"/other.json").is(t, 401, "invalid_client")
	granted := w.exchange(code, "client_id", client).is(t, 200, "")
	if scopes, ok := w.alive(granted.Access); !ok || scopes != "read:bookings write:bookings" {
		t.Errorf("%q %t", scopes, ok)
	}
	if got := w.introspect(granted.Access); got["client_id"] != client {
		t.Errorf("%v", got)
	}
	next := w.refresh(granted.Refresh, "client_id", client).is(t, 200, "")
	local := b.get("/oauth/authorize?" + w.clientRequest(client, "redirect_uri", "http://localhost:4711/callback").Encode())
	if local.StatusCode != 200 || !strings.Contains(local.body, "You will return to localhost:4711.") || !strings.Contains(local.body, "a program on your computer") {
		t.Errorf("%d %s", local.StatusCode, local.body)
	}
	for _, redirect := range []string{"cursor://callback", documentRedirect + "/", "https://assistant.example", "http://localhost:4711/other"} {
		if p := b.get("/oauth/authorize?" + w.clientRequest(client, "redirect_uri", redirect).Encode()); p.StatusCode != 400 || !strings.Contains(p.body, "redirect_uri is not one of those") {
			t.Errorf("%s: %d", redirect, p.StatusCode)
		}
	}
	stranger := w.browser() // the document is stored now
	if p := stranger.follow(stranger.get("/oauth/authorize?" + w.clientRequest(client).Encode())); !strings.Contains(p.body, "to continue to "+host) || strings.Contains(p.body, "Claude") {
		t.Errorf("%d %s", p.StatusCode, p.body)
	}
	second := w.newTenant("Bikes")
	w.invite(second, "kim@example.com", "owner")
	kim := w.browser()
	code = w.sent(kim.submit(kim.signIn(w.clientRequest(client), "kim@example.com"), "tenant", second.ID.String(), "mode", "live", "decision", "allow")).Get("code")
	w.exchange(code, "client_id", client).is(t, 200, "")
	if got := w.rows(`select name from oauth_apps where tenant_id is null`); !slices.Equal(got, []string{"Claude"}) || s.requested() != 1 {
		t.Errorf("apps %v", got)
	}
	if grants, err := w.app.Grants(t.Context(), second.ID, nil); err != nil || len(grants) != 1 || grants[0].AppName != "Claude" {
		t.Errorf("%+v, %v", grants, err)
	}
	if list, err := w.app.RegisteredApps(t.Context()); err != nil || len(list) != 1 || list[0].DocumentURL != client || list[0].UsedAt == nil {
		t.Errorf("%+v, %v", list, err)
	}
	if id, err := w.app.AppOfClient(t.Context(), client); err != nil || w.browser().get("/oauth/authorize?"+w.clientRequest(id.String()).Encode()).StatusCode != 400 {
		t.Errorf("the id of the app is a client_id too: %v", err)
	}
	w.post("/oauth/revoke", url.Values{"token": {next.Refresh}, "client_id": {client}}).is(t, 200, "")
	if _, ok := w.alive(next.Access); ok {
		t.Error("a revoked token works")
	}
}

// TestDocumentErrorsStayHere checks that an error of a request with a document redirects no browser, and that a pushed request works.
func TestDocumentErrorsStayHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	client := s.publishes("/client.json")
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	for _, pairs := range [][]string{{"response_type", "token"}, {"scope", "unknown"}, {"code_challenge", ""}, {"prompt", "none"}} {
		if p := b.get("/oauth/authorize?" + w.clientRequest(client, pairs...).Encode()); p.StatusCode != 400 || p.Header.Get("Location") != "" {
			t.Errorf("%v: %d %s", pairs, p.StatusCode, p.Header.Get("Location"))
		}
	}
	status, body := w.pushFrom("198.51.100.1", w.clientRequest(client))
	var pushed tokens
	if err := json.Unmarshal([]byte(body), &pushed); err != nil || status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	p := b.get("/oauth/authorize?" + url.Values{"client_id": {client}, "request_uri": {pushed.RequestURI}}.Encode())
	code := w.sent(b.submit(p, "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code")
	w.exchange(code, "client_id", client).is(t, 200, "")
	if p := b.get("/oauth/authorize?" + url.Values{"client_id": {s.base + "/x"}, "request_uri": {pushed.RequestURI}}.Encode()); p.StatusCode != 400 {
		t.Errorf("of another client: %d", p.StatusCode)
	}
}

// text returns a page with a content type.
func text(kind, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		_, _ = rw.Write([]byte(body))
	}
}

// TestRefusedDocuments checks that an invalid document is refused with its reason, and is not stored.
func TestRefusedDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	valid := s.publishes("/valid.json")
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	n := 0
	refused := func(why string, publish func(path string) string) {
		t.Helper()
		n++
		client := publish(fmt.Sprintf("/%d.json", n))
		w.pass(time.Minute) // for the limit of the source
		p := b.get("/oauth/authorize?" + w.clientRequest(client).Encode())
		if p.StatusCode != 400 || !strings.Contains(p.body, why) || p.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", why, p.StatusCode, p.body)
		}
		w.pass(domain.FailureMemory)
		if status, body := w.pushFrom("198.51.100.1", w.clientRequest(client)); status != 401 || !strings.Contains(body, "invalid_client") || !strings.Contains(body, why) {
			t.Errorf("%s, pushed: %d %s", why, status, body)
		}
	}
	with := func(why string, changes ...any) {
		t.Helper()
		refused(why, func(path string) string { return s.publishes(path, changes...) })
	}
	serving := func(why string, page func(path string) http.HandlerFunc) {
		t.Helper()
		refused(why, func(path string) string { return s.serves(path, page(path)) })
	}
	for _, other := range []any{nil, "", valid, s.base, s.base + "/", strings.ToUpper(s.base) + "/9.json"} {
		with("client_id in the document is not the URL of the document", "client_id", other)
	}
	with("client_secret", "client_secret", "s")
	with("client_secret", "client_secret_expires_at", 0)
	for _, method := range []string{"client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt", "tls_client_auth"} {
		with("token_endpoint_auth_method must be none", "token_endpoint_auth_method", method)
	}
	for _, uris := range []any{
		nil,
		[]string{},
		[]string{"http://a.example/cb"},
		[]string{"javascript:alert(1)"},
		[]string{"cursor://x"},
		[]string{"com.example.app:/cb"},
		[]string{"https://a.example/cb#x"},
		[]string{"https://a.example;script-src/cb"},
		slices.Repeat([]string{"https://a.example/cb"}, 21),
	} {
		with("redirect_uris must have 1 to 20", "redirect_uris", uris)
	}
	with("client_name must be", "client_name", strings.Repeat("x", 61))
	with("client_name must be", "client_name", "a\nb")
	with("grant_types", "grant_types", []string{"client_credentials"})
	with("response_types", "response_types", []string{"token"})
	with("scope has none", "scope", "openid profile")
	with("not a JSON object", "client_name", 7)
	with("larger than 16 KiB", "x", strings.Repeat("x", domain.MaxClientDocument))
	serving("not a JSON object", func(string) http.HandlerFunc { return text("application/json", `[]`) })
	serving("not a JSON object", func(path string) http.HandlerFunc { return text("application/json", string(s.document(path))+"{}") })
	serving("content type", func(path string) http.HandlerFunc { return text("text/html", string(s.document(path))) })
	serving("content type", func(path string) http.HandlerFunc { return text("", string(s.document(path))) })
	serving("status 404", func(string) http.HandlerFunc { return http.NotFound })
	serving("status 500", func(string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) }
	})
	serving("not a JSON object", func(path string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(rw)
			_, _ = z.Write(s.document(path))
			_ = z.Close()
		}
	})
	s.requested()
	serving("redirects", func(string) http.HandlerFunc { return http.RedirectHandler(valid, http.StatusFound).ServeHTTP })
	if got := s.requested(); got != 2 {
		t.Errorf("%d requests: a redirect was followed", got)
	}
	if got := w.rows(`select count(*)::text from oauth_apps where tenant_id is null`); got[0] != "0" {
		t.Errorf("%s rows", got[0])
	}
	if p := b.get("/oauth/authorize?" + w.clientRequest(valid).Encode()); p.StatusCode != 200 {
		t.Errorf("the valid document: %d", p.StatusCode)
	}
}

// TestRefusedClientURLs checks that a client_id that is no URL of a document is refused, and nothing is fetched.
func TestRefusedClientURLs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	for _, client := range []string{
		"http://assistant.example/c.json", s.base, s.base + "/c?x=1", s.base + "/c?", s.base + "/c#x", s.base + "/c#", s.base + "/a/../c", s.base + "/./c", s.base + "/%2e%2e/c",
		strings.Replace(s.base, "https://", "https://u@", 1) + "/c", strings.Replace(s.base, "https://", "https://u:p@", 1) + "/c", "HTTPS://assistant.example/c", "https://Assistant.example/c",
		"https://assistant.example./c", "https://assistant.example:/c", "https:///c", "https://assistant.example;x/c", "https://holdfast-login.example/c", "https://assistant.example/" + strings.Repeat("x", 500),
		"https://assistant.example/c\\d", "https://assistant.example/ü", "https://assistant.example/a b", "https://", "https:assistant.example/c", "file:///etc/passwd", "ftp://assistant.example/c",
	} {
		p := b.get("/oauth/authorize?" + w.clientRequest(client).Encode())
		if p.StatusCode != 400 || !strings.Contains(p.body, "invalid_client: ") {
			t.Errorf("%s: %d %s", client, p.StatusCode, p.body)
		}
		if status, _ := w.pushFrom("198.51.100.1", w.clientRequest(client)); status != 401 {
			t.Errorf("%s, pushed: %d", client, status)
		}
	}
	if got := s.requested(); got != 0 {
		t.Errorf("%d requests", got)
	}
}

// TestDocumentsOfPrivateAddresses checks that no connection is made to an address that the guard refuses: neither for a name that resolves to
// one, nor for one that did not when its document was stored. Tokens remain valid in the meantime.
func TestDocumentsOfPrivateAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	client := s.publishes("/client.json")
	b := w.browser()
	code := w.sent(b.submit(b.signIn(w.clientRequest(client), w.operator.Email), "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code")
	granted := w.exchange(code, "client_id", client).is(t, 200, "")
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	private, err := net.Listen("tcp4", "127.9.8.7:"+port) //nolint:noctx // in a test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = private.Close() }()
	var reached atomic.Int64
	go func() {
		for {
			c, err := private.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	s.zone.Store(new(netip.MustParseAddr("127.9.8.7")))
	w.pass(domain.DocumentLifetime)
	if p := b.get("/oauth/authorize?" + w.clientRequest(client).Encode()); p.StatusCode != 400 || !strings.Contains(p.body, "cannot be reached at a public address") {
		t.Errorf("after the name has changed: %d %s", p.StatusCode, p.body)
	}
	w.refresh(granted.Refresh, "client_id", client).is(t, 200, "")
	names := map[string]string{
		"loopback.example": "127.9.8.7", "v6.example": "::1", "mapped.example": "::ffff:127.9.8.7", "private.example": "10.0.0.7", "shared.example": "100.64.0.1", "metadata.example": "169.254.169.254", "unique.example": "fd00::1",
	}
	w.fetchWith(tlstest.New(t), func(name string) []netip.Addr {
		if a, err := netip.ParseAddr(names[name]); err == nil {
			return []netip.Addr{a}
		}
		return nil
	})
	for _, host := range append(slices.Sorted(maps.Keys(names)), "127.9.8.7", "[::1]", "2130706433", "0x7f.1", "localhost") {
		for _, at := range []string{host, host + ":" + port, host + ":8443"} {
			w.pass(time.Minute)
			if p := b.get("/oauth/authorize?" + w.clientRequest("https://"+at+"/c.json").Encode()); p.StatusCode != 400 || !strings.Contains(p.body, "cannot be reached at a public address") {
				t.Errorf("%s: %d %s", at, p.StatusCode, p.body)
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections reached a private address", n)
	}
}

// published counts the invalidations of grants that the gateways receive.
type published struct {
	app.Publisher

	grants atomic.Int64
}

func (p *published) Publish(ctx context.Context, list []domain.Invalidation) error {
	p.grants.Add(int64(len(list)))
	return p.Publisher.Publish(ctx, list)
}

// TestDocumentsAreFetchedAgain checks that a changed document takes effect when the stored one is no longer fresh, for redirect URIs and for
// the scopes of tokens, that a document that has become invalid does not replace it, and that tokens survive both.
func TestDocumentsAreFetchedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	cached := func(header string, changes ...any) string {
		return s.serves("/client.json", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Cache-Control", header)
			text("application/json", string(s.document("/client.json", changes...)))(rw, nil)
		})
	}
	client := cached("public, max-age=600")
	b := w.browser()
	code := w.sent(b.submit(b.signIn(w.clientRequest(client), w.operator.Email), "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code")
	granted := w.exchange(code, "client_id", client).is(t, 200, "")
	open := func() *page { return b.get("/oauth/authorize?" + w.clientRequest(client).Encode()) }
	cached("no-store", "scope", "read:bookings", "client_name", "Renamed", "redirect_uris", []string{"http://localhost/callback"})
	w.pass(9 * time.Minute)
	if p := open(); p.StatusCode != 200 || s.requested() != 1 {
		t.Errorf("while it is fresh: %d", p.StatusCode)
	}
	w.pass(2 * time.Minute)
	gateways := &published{Publisher: w.app.Redis}
	w.app.Redis = gateways
	if p := open(); p.StatusCode != 400 || !strings.Contains(p.body, "redirect_uri is not one of those") || s.requested() != 1 {
		t.Errorf("after the redirect URI was removed: %d", p.StatusCode)
	}
	if got := gateways.grants.Load(); got != 1 {
		t.Errorf("the gateways learn of %d changed grants", got)
	}
	if scopes, ok := w.alive(granted.Access); !ok || scopes != "read:bookings" {
		t.Errorf("%q %t", scopes, ok)
	}
	if grants, err := w.app.Grants(t.Context(), w.tenant.ID, nil); err != nil || grants[0].AppName != "Renamed" {
		t.Errorf("%+v, %v", grants, err)
	}
	w.pass(domain.MinDocumentLifetime - time.Minute)
	if open(); s.requested() != 0 {
		t.Error("a document that must not be stored is fetched each time")
	}
	cached("max-age=60", "client_id", "https://assistant.example/other")
	w.pass(2 * time.Minute)
	if p := open(); p.StatusCode != 400 || !strings.Contains(p.body, "client_id in the document") {
		t.Errorf("an invalid document: %d", p.StatusCode)
	}
	granted = w.refresh(granted.Refresh, "client_id", client).is(t, 200, "")
	s.Close()
	w.pass(time.Minute)
	if p := open(); p.StatusCode != 400 || !strings.Contains(p.body, "cannot be reached") {
		t.Errorf("without the site: %d", p.StatusCode)
	}
	w.refresh(granted.Refresh, "client_id", client).is(t, 200, "")
}

// TestNamesInDocuments checks that a name that poses as the platform is replaced by the host.
func TestNamesInDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	b := w.browser()
	b.signIn(w.request(), w.operator.Email)
	for name, want := range map[any]string{"Holdfast": "assistant.example", "H0ldfast Support": "assistant.example", nil: "assistant.example", "  Claude ": "Claude"} {
		client := s.publishes("/"+url.PathEscape(fmt.Sprint(name)), "client_name", name)
		s.publishes("/"+fmt.Sprint(name), "client_name", name, "client_id", client)
		if p := b.get("/oauth/authorize?" + w.clientRequest(client).Encode()); p.StatusCode != 200 || !strings.Contains(p.body, "<h1>"+want+" requests access") {
			t.Errorf("%v: %d %s", name, p.StatusCode, p.body)
		}
	}
}

// TestDeletedClients checks that the deletion by the platform ends the tokens of a client with a document, that its client_id is refused
// without a fetch, also after the sweep, and that the platform can allow it again.
func TestDeletedClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite()
	client := s.publishes("/client.json")
	b := w.browser()
	code := w.sent(b.submit(b.signIn(w.clientRequest(client), w.operator.Email), "tenant", w.tenant.ID.String(), "mode", "test", "decision", "allow")).Get("code")
	granted := w.exchange(code, "client_id", client).is(t, 200, "")
	id, err := w.app.AppOfClient(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.app.AllowClient(t.Context(), client); err == nil {
		t.Error("a client that was not deleted is allowed")
	}
	if _, _, err := w.app.DeleteApp(t.Context(), by, id); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.alive(granted.Access); ok {
		t.Error("a token of a deleted client works")
	}
	w.refresh(granted.Refresh, "client_id", client).is(t, 401, "invalid_client")
	s.requested()
	if p := b.get("/oauth/authorize?" + w.clientRequest(client).Encode()); p.StatusCode != 400 || !strings.Contains(p.body, "client_id is missing or unknown") || s.requested() != 0 {
		t.Errorf("%d %s", p.StatusCode, p.body)
	}
	w.pass(400 * 24 * time.Hour) // its grants are deleted
	w.sweep()
	if status, body := w.pushFrom("198.51.100.1", w.clientRequest(client)); status != 401 || s.requested() != 0 {
		t.Errorf("%d %s", status, body)
	}
	if err := w.app.AllowClient(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if status, body := w.pushFrom("198.51.100.1", w.clientRequest(client)); status != 201 {
		t.Errorf("allowed again: %d %s", status, body)
	}
	w.refresh(granted.Refresh, "client_id", client).is(t, 400, "invalid_grant")
}
