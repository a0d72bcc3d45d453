package oauth

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/gin-gonic/gin"
	"github.com/ory/fosite"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/locale"
	"holdfast.dev/libs/web"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/pages"
)

// Options are the dependencies of a Server.
type Options struct {
	App       *app.App
	Documents *app.ClientDocuments
	Box       *crypt.Box          // seals the tokens that a rotation stores for its leeway
	AuthURL   string              // URL of the pages and endpoints for people and apps: the issuer, without a trailing slash
	PublicURL string              // URL of the gateway, without a path. The tokens are for the API and the tools for assistants below it
	Resets    *app.PasswordResets // mails links that reset a password; nil: mail is not configured
	Now       func() time.Time
}

// Server handles the requests that reach the authorization server through the gateway.
type Server struct {
	Options

	tokens   *tokenStore
	provider fosite.OAuth2Provider
	sessions *scs.SessionManager
	messages *locale.Messages
	site     *web.Site
}

// New builds the server.
func New(o Options) (*Server, error) {
	u, err := url.Parse(o.AuthURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("AUTH_URL must be https://host, without a path: %q", o.AuthURL)
	}
	messages, err := pages.NewMessages()
	if err != nil {
		return nil, err
	}
	site, err := web.NewSite(o.AuthURL, "no-referrer") // an address can contain an authorization request or a one-time link: RFC 9700, section 4.2
	if err != nil {
		return nil, fmt.Errorf("AUTH_URL: %w", err)
	}
	s := &Server{Options: o, messages: messages, site: site}
	s.tokens = &tokenStore{App: o.App, Box: o.Box, Now: o.Now}
	s.provider = newProvider(s.tokens)
	s.sessions = newSessions(&sessionStore{app: o.App, now: o.Now}, site)
	return s, nil
}

// Mount registers the endpoints and pages. Only the gateway may call them.
func (s *Server) Mount(e *gin.Engine, internal func(h httpx.Handler, peers ...string) gin.HandlerFunc) {
	api := func(method, path string, h httpx.Handler) { e.Handle(method, path, internal(h, gateway)) }
	page := func(path string, h func(v *pageRequest) error, methods ...string) {
		for _, m := range methods {
			api(m, path, s.pageHandler(h))
		}
	}
	api(http.MethodPost, "/oauth/token", s.token)
	api(http.MethodPost, "/oauth/revoke", s.revoke)
	api(http.MethodPost, "/oauth/par", s.push)
	api(http.MethodPost, "/oauth/register", s.register)
	api(http.MethodPost, "/internal/v1/oauth/introspect", s.introspect)
	api(http.MethodGet, "/.well-known/oauth-authorization-server", s.serverMetadata)
	for path, docs := range resources {
		api(http.MethodGet, "/.well-known/oauth-protected-resource"+path, s.resourceMetadata(path, docs))
	}
	api(http.MethodGet, "/oauth/style.css", style)
	page("/oauth/authorize", s.authorize, http.MethodGet, http.MethodPost)
	page("/oauth/sign-in", s.signIn, http.MethodGet, http.MethodPost)
	page("/oauth/forgot-password", s.forgotPassword, http.MethodGet, http.MethodPost)
	page("/oauth/second-factor", s.secondFactor, http.MethodGet, http.MethodPost)
	page("/oauth/sign-out", s.signOut, http.MethodPost)
	page("/oauth/account", s.account, http.MethodGet, http.MethodPost)
	page("/oauth/link/:token", s.link, http.MethodGet, http.MethodPost)
}

// gateway is the only process that may call the endpoints.
const gateway = "gateway"

func style(c *gin.Context) error {
	c.Header("Cache-Control", "public, max-age=3600")
	c.Data(http.StatusOK, "text/css; charset=utf-8", pages.Style())
	return nil
}

// originOf returns the actor and the source of a request, for the audit log.
func originOf(r *http.Request, actor string) domain.Origin {
	return domain.Origin{Actor: actor, Source: r.Header.Get("X-Forwarded-For")}
}
