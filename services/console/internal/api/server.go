// Package api contains the HTTP handlers of the pages.
package api

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/locale"
	"holdfast.dev/libs/web"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
)

// Options configure a Server. All fields except Beat are required.
type Options struct {
	App        *app.App
	Operations domain.Operations
	Messages   *locale.Messages
	Live       *app.Live
	LiveTime   time.Duration // how long a page receives updates before it must reconnect
	Beat       time.Duration // how often a live page checks its session; 0: 20 s
	PublicURL  string        // where browsers reach the gateway
	Now        func() time.Time
}

// Server serves the pages of the operators' area.
type Server struct {
	Options

	site     *web.Site
	assets   map[string]pages.Asset
	compress func(http.Handler) http.HandlerFunc
	shown    map[string]handler // the pages of workspaces, by their route
	stopping chan struct{}      // closed when the process stops

	streams, downloads *app.Places
}

// New builds the server.
func New(o Options) (*Server, error) {
	site, err := web.NewSite(o.PublicURL, "same-origin") // no-referrer makes browsers send Origin: null with forms
	if err != nil {
		return nil, err
	}
	o.Beat = cmp.Or(o.Beat, beat)
	s := &Server{Options: o, site: site, assets: pages.Assets(), stopping: make(chan struct{})}
	s.shown = s.get()
	s.streams, s.downloads = app.NewPlaces(streamsOfSession, streamsOfOperator), app.NewPlaces(downloadsOfSession, downloadsOfOperator)
	s.compress, err = gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.RandomJitter(64, 0, false)) // random padding hides the length of a form token in the page: BREACH
	return s, err
}

// Stop ends the streams of live pages. The graceful stop of the server would otherwise wait for them.
func (s *Server) Stop() { close(s.stopping) }

// workspaces is the path prefix of the pages of tenants and modes.
const workspaces = "/admin/:tenant/:mode"

// handler handles the request of a page.
type handler func(p *page) error

// Mount registers the pages. Only the gateway can request them.
func (s *Server) Mount(e *gin.Engine, internal func(h httpx.Handler, peers ...string) gin.HandlerFunc) {
	handle := func(method, path string, h httpx.Handler) { e.Handle(method, path, internal(h, "gateway")) }
	handle(http.MethodGet, "/admin", s.withSession(openFirstTenant))
	handle(http.MethodGet, "/admin/-/assets/:name", s.asset)
	handle(http.MethodPost, "/admin/-/preferences", s.withSession(savePreferences))
	post := s.post()
	for path, h := range s.shown {
		if post[path] != nil {
			h = withOnce(h)
		}
		handle(http.MethodGet, workspaces+path, s.inWorkspace(h))
	}
	for path, h := range post {
		handle(http.MethodPost, workspaces+path, s.inWorkspace(h))
	}
	e.NoRoute(internal(s.withSession(func(*page) error { return domain.ErrNotFound }), "gateway"))
}

// get returns the pages that show something.
func (s *Server) get() map[string]handler {
	out := map[string]handler{
		"": openToday, "/": openToday, "/today": today, "/calendar": calendar, "/departure": departure, "/search": search, "/board": board, "/live": live,
		"/quickstart": quickStart, "/clock": clockPage, "/availability": availability, "/prices": prices,
		"/business": settingsPage("business"), "/logo": showLogo, "/policy": settingsPage("policy"), "/gateway": gatewayPage, "/gateway/disconnect": disconnectPage,
		"/customers/suggest": suggestCustomers, "/endpoints/:id/deliveries/:delivery": delivery, "/invoices/:id/reverse": reversePage,
	}
	for i := range domain.Resources {
		r := &domain.Resources[i]
		out["/"+r.Name] = listPage(r)
		if r.HasPage() {
			out["/"+r.Name+"/:id"] = detailPage(r)
		}
		if r.New != nil {
			out["/"+r.Name+"/new"] = newPage(r)
		}
		if r.Update != "" {
			out["/"+r.Name+"/:id/edit"] = editPage(r)
		}
		for j := range r.Actions {
			if a := &r.Actions[j]; !a.Page {
				out["/"+r.Name+"/:id/"+a.Name] = actionPage(r, a)
			}
		}
		if r.PDF != "" {
			out["/"+r.Name+"/:id/pdf"] = pdf(r)
		}
		if s.Operations[r.List].CSV {
			out["/"+r.Name+".csv"] = exportCSV(r)
		}
	}
	return out
}

// post returns the pages that change something, at the same addresses as the forms.
func (s *Server) post() map[string]handler {
	out := map[string]handler{
		"/clock": setClock, "/business": saveSettings("business"), strings.TrimPrefix(logoPath, workspaces): saveLogo, "/policy": saveSettings("policy"), "/gateway": connectGateway, "/gateway/disconnect": disconnectGateway,
		"/quickstart": quickKey, "/audit/verify": verifyAudit, "/views": saveView, "/views/:id/delete": deleteView,
		"/bookings/:id/move": move, "/endpoints/:id/deliveries/:delivery": sendAgain, "/invoices/:id/reverse": reverse,
	}
	for i := range domain.Resources {
		r := &domain.Resources[i]
		if r.New != nil {
			out["/"+r.Name+"/new"] = create(r)
		}
		if r.Update != "" {
			out["/"+r.Name+"/:id/edit"] = update(r)
		}
		for j := range r.Actions {
			if a := &r.Actions[j]; !a.Page {
				out["/"+r.Name+"/:id/"+a.Name] = act(r, a)
			}
		}
	}
	return out
}

// asset serves a file that pages load. Its name changes with its content, so browsers cache it.
func (s *Server) asset(c *gin.Context) error {
	a, ok := s.assets[c.Param("name")]
	if !ok {
		return httpx.ErrNotFound
	}
	s.compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", a.Type)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(a.Body)
	})).ServeHTTP(c.Writer, c.Request)
	return nil
}

// openFirstTenant opens the operator's first tenant that is not suspended in test mode. If all are, it opens the first one, which
// shows why.
func openFirstTenant(p *page) error {
	if len(p.auth.Tenants) == 0 {
		return p.show(http.StatusForbidden, pages.Message(p.frame(""), p.T("no_tenant"), p.T("no_tenant_hint"), "/oauth/account", p.T("your_account")))
	}
	t, ok := p.auth.FirstActive()
	if !ok {
		t = p.auth.Tenants[0]
	}
	return p.redirect("/admin/" + t.Slug + "/test/today")
}

func openToday(p *page) error { return p.redirect(p.workspace.Path("today")) }

// savePreferences stores language and theme in cookies of the browser.
func savePreferences(p *page) error {
	for _, name := range []string{"language", "theme"} {
		value := p.posted.Get(name)
		if len(value) > 10 || strings.ContainsAny(value, " ;,\"\\") {
			value = ""
		}
		p.setCookie(name, value)
	}
	return p.redirect(ownAddress(p.posted.Get("to")))
}

// ownAddress returns an address of the operators' area. Any other address becomes its first page.
func ownAddress(to string) string { return cmp.Or(httpx.Local(to, "/admin"), "/admin") }
