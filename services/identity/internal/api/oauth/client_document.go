package oauth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/ory/fosite"

	"holdfast.dev/libs/obs"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/pages"
)

// offeredApp returns the app of a client_id for an authorization request. The document of a client_id that is a URL is fetched on behalf of
// the source.
func (s *Server) offeredApp(ctx context.Context, clientID string, source app.DocumentSource) (domain.PublishedApp, error) {
	found, err := s.appByClientID(ctx, clientID, source)
	var wrong domain.DocumentError
	switch {
	case errors.As(err, &wrong):
		obs.Add(ctx, slog.String("client_document", wrong.Error()))
		return found, mistakeError("invalid_client: " + wrong.Error())
	case errors.Is(err, domain.ErrAppNotFound):
		return found, wrongClient
	case err == nil && !found.Offered():
		return found, endedClient
	}
	return found, err
}

func (s *Server) appByClientID(ctx context.Context, clientID string, source app.DocumentSource) (domain.PublishedApp, error) {
	if domain.IsClientURL(clientID) {
		return s.Documents.Fresh(ctx, clientID, source)
	}
	id, err := domain.ParseAppID(clientID)
	if err != nil {
		return domain.PublishedApp{}, err
	}
	found, err := s.App.AppByID(ctx, id)
	if err == nil && found.DocumentURL != "" {
		err = domain.ErrAppNotFound // its client_id is the URL
	}
	return found, err
}

// exchange is form for the endpoints that know apps by their id. For a client_id that is a URL, it is the id of the stored app: tokens do
// not depend on the site of the app.
func (s *Server) exchange(c *gin.Context) (context.Context, *http.Request, error) {
	ctx, r, err := s.form(c)
	if err != nil || !domain.IsClientURL(r.PostForm.Get("client_id")) {
		return ctx, r, err
	}
	found, err := s.Documents.Stored(ctx, r.PostForm.Get("client_id"))
	if errors.Is(err, domain.ErrAppNotFound) {
		return ctx, r, fosite.ErrInvalidClient
	}
	if err != nil {
		return ctx, r, exchangeOf(ctx).failed(err, nil)
	}
	exchangeOf(ctx).app = found.App
	r.PostForm.Set("client_id", found.ID.String())
	return ctx, r, nil
}

// signInOrigin returns what the sign-in page says about the app that sent the person. Nobody is signed in, so only the platform's
// verification counts, and the name in a document does not.
func (s *Server) signInOrigin(v *pageRequest) (from pages.Origin, hint string) {
	if v.r.URL.RawQuery == "" || v.r.URL.Query().Has("to") {
		return pages.Origin{}, ""
	}
	a, err := s.readAuthorization(v, nil)
	var unknown *notFetchedError
	switch {
	case errors.As(err, &unknown):
		return described(unknown.client), unknown.hint
	case err != nil:
		return pages.Origin{}, "" // authorize reports the error
	}
	hint = a.params.Get("login_hint")
	if a.app.DocumentURL != "" {
		return described(a.app.DocumentURL), hint
	}
	return pages.Origin{App: a.app.Name, Warning: warning(a.app, a.app.VerifiedAt != nil), Host: hostOf(a.redirect)}, hint
}

// described returns the origin for a client_id that is a URL.
func described(clientID string) pages.Origin {
	return pages.Origin{App: hostOf(clientID), Client: hostOf(clientID), Warning: pages.Described}
}

// notFetchedError is an authorization request whose client_id is a URL, of a person who is not signed in.
type notFetchedError struct{ client, hint string }

func (e *notFetchedError) Error() string { return app.ErrNotFetched.Error() }

func notFetched(params url.Values) error {
	return &notFetchedError{params.Get("client_id"), params.Get("login_hint")}
}
