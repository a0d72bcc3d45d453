package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ory/fosite"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/pages"
)

// authorization is an authorization request with a valid client and redirect URI. Its errors are sent to the app.
type authorization struct {
	app      domain.PublishedApp
	redirect string
	params   url.Values
	request  fosite.AuthorizeRequester
}

// authorize requests consent from an operator for an app, and sends the result to the app: RFC 6749, section 4.1.1.
func (s *Server) authorize(v *pageRequest) error {
	operator, err := v.operator()
	if err != nil {
		return err
	}
	a, err := s.readAuthorization(v, operator)
	var mistake mistakeError
	var unknown *notFetchedError
	switch {
	case errors.As(err, &unknown):
		return v.redirect("/oauth/sign-in" + v.query())
	case errors.As(err, &mistake):
		return v.show(http.StatusBadRequest, pages.Message(v.frame(), v.T("error"), v.T("error_app"), mistake.Error()))
	case err != nil:
		return err
	}
	var members []domain.MemberTenant
	if operator != nil {
		if members, err = s.App.Memberships(v.r.Context(), operator.ID); err != nil {
			return err
		}
	}
	if err := s.check(v.r.Context(), a); err != nil {
		return s.refuseRequest(v, a, members, err)
	}
	prompts := strings.Fields(a.params.Get("prompt"))
	again := slices.Contains(prompts, "login") && s.sessions.GetString(v.r.Context(), keyFresh) != v.requestHash()
	if operator == nil || again {
		return v.redirect("/oauth/sign-in" + v.query())
	}
	requested := s.consentRequest(a, *operator, members)
	if len(requested.Tenants) == 0 {
		return s.refuseRequest(v, a, members, fosite.ErrAccessDenied.WithHint("The operator cannot grant any of the scopes, or is not a member of an active tenant that can use the app."))
	}
	if v.r.Method == http.MethodGet {
		return v.show(http.StatusOK, pages.Consent(v.frame(), requested))
	}
	if !v.validForm() {
		return v.show(http.StatusBadRequest, pages.Consent(v.frame(), requested))
	}
	return s.decide(v, a, *operator, requested)
}

// mistakeError is an error of the app that makes its redirect URI unusable. It must be shown to the person (RFC 6749, section
// 4.1.2.1). It begins with the error's code.
type mistakeError string

func (e mistakeError) Error() string { return string(e) }

const (
	wrongClient   mistakeError = "invalid_client: client_id is missing or unknown"
	endedClient   mistakeError = "invalid_client: the publisher of the app is not active"
	wrongQuery    mistakeError = "invalid_request: the query is malformed"
	noRedirect    mistakeError = "invalid_request: redirect_uri is missing"
	wrongRedirect mistakeError = "invalid_request: redirect_uri is not one of those that the app has registered"
)

// readAuthorization reads the authorization request that a browser sends. operator is the signed-in one, if any.
func (s *Server) readAuthorization(v *pageRequest, operator *domain.Operator) (*authorization, error) {
	params, err := s.params(v)
	if err != nil {
		return nil, err
	}
	source := app.DocumentSource{}
	if operator != nil {
		source.Operator = operator.ID
	}
	a, err := s.appOf(v.r.Context(), params, source)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(a.redirect); err == nil {
		v.back = originOfURI(u)
	}
	return a, nil
}

// params returns the parameters of the query, or those that the app pushed before.
func (s *Server) params(v *pageRequest) (url.Values, error) {
	params, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		return nil, wrongQuery
	}
	if uri := params.Get("request_uri"); strings.HasPrefix(uri, pushedURI) {
		return s.pushed(uri, params["client_id"])
	}
	return params, nil
}

// appOf finds the app of an authorization request and checks the redirect URI.
func (s *Server) appOf(ctx context.Context, params url.Values, source app.DocumentSource) (*authorization, error) {
	for _, name := range []string{"client_id", "redirect_uri"} {
		if len(params[name]) > 1 {
			return nil, mistakeError("invalid_request: " + name + " appears twice")
		}
	}
	found, err := s.offeredApp(ctx, params.Get("client_id"), source)
	if errors.Is(err, app.ErrNotFetched) {
		return nil, notFetched(params)
	}
	if err != nil {
		return nil, err
	}
	exchangeOf(ctx).app = found.App                          // fosite also requests the app
	if found.SelfRegistered() && params.Get("scope") == "" { // clients of assistants can leave it out: RFC 6749, section 3.3
		params.Set("scope", strings.Join(found.Scopes, " "))
	}
	a := &authorization{app: found, redirect: params.Get("redirect_uri"), params: params}
	switch {
	case a.redirect == "" && len(found.RedirectURIs) == 1:
		a.redirect = found.RedirectURIs[0]
	case a.redirect == "":
		return nil, noRedirect
	case !found.Redirects(a.redirect):
		return nil, wrongRedirect
	}
	return a, nil
}

// check returns an error for an invalid authorization request of the app.
func (s *Server) check(ctx context.Context, a *authorization) error {
	for name, values := range a.params {
		if len(values) > 1 && slices.Contains(authorizeParams, name) {
			return fosite.ErrInvalidRequest.WithHintf("The parameter %s appears twice.", printable(name))
		}
	}
	if a.params.Get("request") != "" {
		return fosite.ErrRequestNotSupported
	}
	if a.params.Get("request_uri") != "" {
		return fosite.ErrRequestURINotSupported
	}
	for _, p := range strings.Fields(a.params.Get("prompt")) {
		switch p {
		case "login", "consent":
		case "none":
			return fosite.ErrInteractionRequired.WithHint("Consent is required every time.")
		default:
			return fosite.ErrInvalidRequest.WithHint("prompt must be login, consent or none.")
		}
	}
	if a.params.Get("response_type") != responseCode { // fosite ignores the case
		return fosite.ErrUnsupportedResponseType.WithHint("response_type must be code.")
	}
	if err := s.checkResources(a.params["resource"]); err != nil {
		return err
	}
	request, err := s.request(ctx, a)
	if err != nil {
		return err
	}
	a.request = request
	switch challenge := a.params.Get("code_challenge"); {
	case challenge == "":
		return fosite.ErrInvalidRequest.WithHint("code_challenge is missing: PKCE is mandatory.")
	case a.params.Get("code_challenge_method") != methodS256:
		return fosite.ErrInvalidRequest.WithHint("code_challenge_method must be S256.")
	case len(challenge) != 43 || strings.Trim(challenge, challengeDigits) != "":
		return fosite.ErrInvalidRequest.WithHint("code_challenge must be a SHA-256 in base64url without padding.")
	case len(request.GetRequestedScopes()) == 0:
		return fosite.ErrInvalidScope.WithHint("scope is missing.")
	}
	return nil
}

// authorizeParams are the known parameters. Each may appear at most once, and others are ignored.
var authorizeParams = []string{
	"response_type", "response_mode", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "prompt", "login_hint",
	"request", "request_uri",
}

const challengeDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// request makes fosite read only the query, because the fields of a form must not replace the app's request. fosite requires a
// state. The response contains it only if the app sent one.
func (s *Server) request(ctx context.Context, a *authorization) (fosite.AuthorizeRequester, error) {
	params := url.Values{}
	for name, values := range a.params {
		if values[0] != "" {
			params[name] = values[:1]
		}
	}
	if !params.Has("state") {
		params.Set("state", "none")
	}
	params.Set("redirect_uri", a.redirect)
	params.Set("client_id", a.app.ID.String()) // not the URL of its document
	exchangeOf(ctx).redirect = a.redirect
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.AuthURL+"/oauth/authorize?"+params.Encode(), nil)
	if err != nil {
		return nil, fosite.ErrInvalidRequest.WithWrap(err)
	}
	return s.provider.NewAuthorizeRequest(ctx, r)
}

// consentRequest returns the content of the consent page: the tenants at which the operator can grant at least one of the scopes.
func (s *Server) consentRequest(a *authorization, o domain.Operator, members []domain.MemberTenant) pages.ConsentRequest {
	scopes := domain.Intersect(s.App.Scopes, a.request.GetRequestedScopes())
	out := pages.ConsentRequest{
		App: a.app.Name, Publisher: a.app.Publisher, Warning: warning(a.app, a.app.Trusted(members)), Client: hostOf(a.app.DocumentURL),
		Host: hostOf(a.redirect), Local: domain.LocalURL(a.redirect), Email: o.Email, Scopes: scopes,
	}
	for _, m := range members {
		given := m.Role.Scopes(scopes)
		if !a.app.Serves(m.TenantID) || !m.Status.Consents() || len(given) == 0 {
			continue
		}
		c := pages.Choice{ID: m.TenantID.String(), Name: m.TenantName, Role: string(m.Role)}
		for _, scope := range scopes {
			if !slices.Contains(given, scope) {
				c.Withheld = append(c.Withheld, scope)
			}
		}
		out.Tenants = append(out.Tenants, c)
	}
	return out
}

// warning returns what a page warns of about an app.
func warning(a domain.PublishedApp, trusted bool) pages.Warning {
	switch {
	case a.DocumentURL != "":
		return pages.Described
	case a.SelfRegistered():
		return pages.SelfRegistered
	case !trusted:
		return pages.Unverified
	}
	return 0
}

// decide processes the operator's decision.
func (s *Server) decide(v *pageRequest, a *authorization, o domain.Operator, requested pages.ConsentRequest) error {
	s.sessions.Remove(v.r.Context(), keyFresh)
	if v.form.Get("decision") != "allow" {
		return s.respondError(v, a, fosite.ErrAccessDenied.WithHint("The operator denied access."))
	}
	tenant, err := ids.Parse[ids.TenantPrefix](v.form.Get("tenant"))
	mode := caller.Mode(v.form.Get("mode"))
	offered := slices.ContainsFunc(requested.Tenants, func(c pages.Choice) bool { return c.ID == v.form.Get("tenant") })
	if err != nil || !offered || mode != caller.Live && mode != caller.Test {
		return v.show(http.StatusUnprocessableEntity, pages.Consent(v.frame(), requested))
	}
	selected := newSession()
	selected.operator, selected.tenant, selected.mode, selected.by = o.ID, tenant, mode, originOf(v.r, o.ID.String())
	ctx := v.r.Context()
	response, err := s.provider.NewAuthorizeResponse(ctx, a.request, selected)
	if errors.Is(err, app.ErrNothingGranted) {
		return s.respondError(v, a, fosite.ErrAccessDenied.WithHint(app.ErrNothingGranted.Error()))
	}
	if errors.Is(err, domain.ErrAppNotFound) { // deleted since the request began
		return v.show(http.StatusBadRequest, pages.Message(v.frame(), v.T("error"), v.T("error_app"), wrongClient.Error()))
	}
	if err != nil {
		return err
	}
	return s.respond(v, a, url.Values{"code": {response.GetParameters().Get("code")}})
}

// refuseRequest sends an error to the app if the app is trusted by the signed-in operator. Otherwise it shows the error with a link,
// because anybody can register an app and use this server to redirect a browser to it: RFC 9700, section 4.11.2.
func (s *Server) refuseRequest(v *pageRequest, a *authorization, members []domain.MemberTenant, err error) error {
	if a.app.Trusted(members) {
		return s.respondError(v, a, err)
	}
	with, err := errorParams(err)
	if err != nil {
		return err
	}
	detail := with.Get("error") + ": " + with.Get("error_description")
	return v.show(http.StatusBadRequest, pages.AppError(v.frame(), detail, hostOf(a.redirect), s.responseURI(a, with)))
}

// respondError sends an error to the app: RFC 6749, section 4.1.2.1.
func (s *Server) respondError(v *pageRequest, a *authorization, err error) error {
	with, err := errorParams(err)
	if err != nil {
		return err
	}
	return s.respond(v, a, with)
}

// errorParams returns the parameters of an error response. An error of this server is returned as it is.
func errorParams(err error) (url.Values, error) {
	rfc := fosite.ErrorToRFC6749Error(err)
	if rfc.CodeField >= http.StatusInternalServerError {
		return nil, err
	}
	return url.Values{"error": {rfc.ErrorField}, "error_description": {printable(rfc.GetDescription())}}, nil
}

// respond redirects the browser to the app.
func (s *Server) respond(v *pageRequest, a *authorization, with url.Values) error {
	return v.redirect(s.responseURI(a, with))
}

// responseURI returns the redirect URI with a response, the issuer (RFC 9207) and the state that the app sent.
func (s *Server) responseURI(a *authorization, with url.Values) string {
	with.Set("iss", s.AuthURL)
	if state := a.params.Get("state"); state != "" {
		with.Set("state", state)
	}
	separator := "?"
	if strings.Contains(a.redirect, "?") {
		separator = "&" // the registered URI is not changed
	}
	return a.redirect + separator + with.Encode()
}

// originOfURI returns a redirect URI's origin, as a source of a content security policy. For a private-use scheme, this is the
// scheme itself.
func originOfURI(u *url.URL) string {
	if u.Host == "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}

// hostOf returns the redirect destination in a readable form.
func hostOf(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil || u.Host == "" {
		return redirect
	}
	return u.Host
}
