package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/ory/fosite"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/identity/internal/domain"
)

// maxForm is the maximum size of a form in bytes.
const maxForm = 64 << 10

// token exchanges a code or a refresh token: RFC 6749, sections 4.1.3 and 6.
func (s *Server) token(c *gin.Context) error {
	ctx, r, err := s.exchange(c)
	if err != nil {
		return s.refuse(ctx, c.Writer, err)
	}
	switch grant := r.PostForm.Get("grant_type"); {
	case grant == "":
		return s.refuse(ctx, c.Writer, fosite.ErrInvalidRequest.WithHint("The parameter grant_type is missing."))
	case !slices.Contains(grantTypes, grant):
		return s.refuse(ctx, c.Writer, unsupportedGrant)
	}
	if err := s.checkResources(r.PostForm["resource"]); err != nil {
		return s.refuse(ctx, c.Writer, err)
	}
	request, err := s.provider.NewAccessRequest(ctx, r, newSession())
	if err != nil {
		return s.refuse(ctx, c.Writer, err)
	}
	response, err := s.provider.NewAccessResponse(ctx, request)
	if err != nil {
		return s.refuse(ctx, c.Writer, s.revokeReused(ctx, r, err))
	}
	if sess, ok := request.GetSession().(*session); ok && sess.replay == nil {
		response.SetExpiresIn(accessLifetime) // fosite subtracts the time that the exchange took
	}
	s.provider.WriteAccessResponse(ctx, c.Writer, request, response)
	return nil
}

var unsupportedGrant = &fosite.RFC6749Error{
	ErrorField: "unsupported_grant_type", CodeField: http.StatusBadRequest,
	DescriptionField: "The grant type is not supported. It must be authorization_code or refresh_token.",
}

// revokeReused ends the grant of a code that another request exchanged first: the code was used twice.
func (s *Server) revokeReused(ctx context.Context, r *http.Request, err error) error {
	e := exchangeOf(ctx)
	if !e.superseded || e.failure != nil {
		return err
	}
	if code := r.PostForm.Get("code"); r.PostForm.Get("grant_type") == "authorization_code" {
		_, _ = s.tokens.GetAuthorizeCodeSession(ctx, sign(code), nil) // ends the grant; an error is in e.failure
	}
	return fosite.ErrInvalidGrant
}

// form reads the form of an app's request. The form identifies the app by client_id.
func (s *Server) form(c *gin.Context) (context.Context, *http.Request, error) {
	r := c.Request
	e := &exchange{source: r.Header.Get("X-Forwarded-For"), form: url.Values{}}
	ctx := context.WithValue(r.Context(), exchangeKey{}, e)
	form, err := s.client(c.Writer, r)
	if err != nil { // no app is known yet
		s.allowRegistered(ctx, c.Writer.Header(), r.Header.Get("Origin"))
		return ctx, r, err
	}
	r.Header.Del("Authorization")
	e.form = form
	s.allowOrigin(ctx, c.Writer.Header(), r.Header.Get("Origin"), form.Get("client_id"))
	r = r.WithContext(ctx)
	r.Form, r.PostForm = form, form
	return ctx, r, nil
}

// client reads the form of a request and checks that it identifies the client in only one way.
func (s *Server) client(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	form, err := readForm(w, r)
	if err != nil {
		return nil, err
	}
	if id, secret, ok := r.BasicAuth(); ok {
		if secret != "" {
			return nil, fosite.ErrInvalidClient.WithHint("A public client has no secret.")
		}
		id, err = url.QueryUnescape(id)
		if err != nil || form.Get("client_id") != "" && form.Get("client_id") != id {
			return nil, fosite.ErrInvalidRequest.WithHint("The request names two clients.")
		}
		form.Set("client_id", id) // libraries that guess send an empty secret in the header
	}
	if form.Get("client_secret") != "" || form.Get("client_assertion") != "" {
		return nil, fosite.ErrInvalidClient.WithHint("A public client has no secret and no key.")
	}
	return form, nil
}

// allowRegistered lets scripts of a registered origin read an error that belongs to no app.
func (s *Server) allowRegistered(ctx context.Context, h http.Header, origin string) {
	if origin == "" {
		return
	}
	h.Add("Vary", "Origin")
	if registered, err := s.App.OriginRegistered(ctx, origin); err == nil && registered {
		h.Set("Access-Control-Allow-Origin", origin)
	}
}

// allowOrigin lets the scripts of an app's own pages read the response: the CORS protocol of the Fetch standard. Cookies are
// ignored here.
func (s *Server) allowOrigin(ctx context.Context, h http.Header, origin, clientID string) {
	if origin == "" {
		return
	}
	h.Add("Vary", "Origin")
	if _, err := s.tokens.GetClient(ctx, clientID); err == nil && slices.Contains(exchangeOf(ctx).app.BrowserOrigins, origin) {
		h.Set("Access-Control-Allow-Origin", origin)
	}
}

// readForm reads a form from the body. Parameters in the query are ignored (RFC 6749, section 3.2), empty ones are absent, and
// none may appear twice.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		return nil, fosite.ErrInvalidRequest.WithHint("The body must be application/x-www-form-urlencoded.")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if err != nil {
		return nil, fosite.ErrInvalidRequest.WithHint("The body is incomplete or larger than 64 KiB.")
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, fosite.ErrInvalidRequest.WithHint("The body is not a valid form.")
	}
	return once(form)
}

// formParams are the known parameters, in addition to those of an authorization request. Others are ignored.
var formParams = []string{"grant_type", "code", "code_verifier", "refresh_token", "token", "token_type_hint", "client_secret", "client_assertion", "client_assertion_type"}

// once drops empty parameters, and rejects a parameter that appears twice. Only resource may: RFC 8707, section 2.
func once(form url.Values) (url.Values, error) {
	for name, values := range form {
		if name != "resource" {
			form[name] = values[:1]
		}
		if len(values) > 1 && (slices.Contains(formParams, name) || slices.Contains(authorizeParams, name)) {
			return nil, fosite.ErrInvalidRequest.WithHintf("The parameter %s appears twice.", printable(name))
		}
		if values[0] == "" {
			delete(form, name)
		}
	}
	return form, nil
}

// refuse writes an error of the token endpoint: RFC 6749, section 5.2. An error that the request did not cause is 503 or 500.
func (s *Server) refuse(ctx context.Context, w http.ResponseWriter, err error) error {
	e := exchangeOf(ctx)
	if e.failure != nil {
		return unavailable(w, e.failure)
	}
	rfc := fosite.ErrorToRFC6749Error(err)
	if rfc.CodeField >= http.StatusInternalServerError {
		return unavailable(w, err)
	}
	obs.Add(ctx, slog.String("oauth_error", rfc.ErrorField))
	if rfc.CodeField == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="holdfast"`)
	}
	s.provider.WriteAccessError(ctx, w, nil, err)
	return nil
}

// unavailable responds that the request could not be evaluated, and returns the reason for the log.
func unavailable(w http.ResponseWriter, err error) error {
	code, status := "server_error", http.StatusInternalServerError
	if apperr.As(err).Kind == apperr.Unavailable {
		code, status = "temporarily_unavailable", http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": "The request was not completed. Try again."})
	return nil
}

// revoke ends a grant: RFC 7009.
func (s *Server) revoke(c *gin.Context) error {
	ctx, r, err := s.exchange(c)
	if err == nil && r.PostForm.Get("token") == "" {
		err = fosite.ErrInvalidRequest.WithHint("The parameter token is missing.")
	}
	if err == nil {
		err = s.provider.NewRevocationRequest(ctx, r)
	}
	if err != nil || exchangeOf(ctx).failure != nil {
		return s.refuse(ctx, c.Writer, err)
	}
	s.provider.WriteRevocationResponse(ctx, c.Writer, nil)
	return nil
}

// revoker ends a grant by any of its tokens. A token of another app, or an invalid one, changes nothing and is not an error.
type revoker struct{ *tokenStore }

// RevokeToken implements fosite.RevocationHandler.
func (v revoker) RevokeToken(ctx context.Context, token string, _ fosite.TokenType, by fosite.Client) error {
	e := exchangeOf(ctx)
	id, err := v.grantOf(ctx, token, by.GetID())
	if err != nil || id == nil {
		return e.failed(err, nil)
	}
	_, err = v.App.RevokeGrant(ctx, domain.Origin{Actor: by.GetID(), Source: e.source}, *id, domain.ByApp)
	return e.failed(err, nil)
}

// grantOf returns the grant of an app to which a token belongs, or nil if it belongs to none.
func (v revoker) grantOf(ctx context.Context, token, clientID string) (*domain.GrantID, error) {
	var g domain.Grant
	var err error
	switch {
	case domain.IsRefreshToken(token):
		g, err = v.App.GrantByHash(ctx, nil, domain.FamilyHash(token))
	case domain.IsAccessToken(token):
		g, err = v.App.GrantByAccessToken(ctx, domain.SecretHash(token))
	default:
		return nil, nil
	}
	if errors.Is(err, domain.ErrGrantNotFound) || err == nil && g.AppID.String() != clientID {
		return nil, nil
	}
	return &g.ID, err
}

// introspect returns the state of an access token: RFC 7662, section 2.2. Only other processes may call it.
func (s *Server) introspect(c *gin.Context) error {
	form, err := readForm(c.Writer, c.Request)
	if err != nil {
		return apperr.Field("token", "Must be sent in a form.").WithCause(err)
	}
	out, err := s.App.Introspect(c.Request.Context(), form.Get("token"))
	if err != nil {
		return err
	}
	return rest.Object(c, out)
}

// printable replaces the characters that an error_description must not contain: RFC 6749, section 5.2.
func printable(s string) string {
	s = s[:min(len(s), 200)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '?'
		}
		return r
	}, s)
}
