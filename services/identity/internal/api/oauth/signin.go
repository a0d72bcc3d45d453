package oauth

import (
	"cmp"
	"errors"
	"net/http"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/pages"
)

// signIn requests the address and the password. Its query is that of the authorization request that redirected the operator.
func (s *Server) signIn(v *pageRequest) error {
	from, hint := s.signInOrigin(v)
	if v.r.Method == http.MethodGet {
		return v.show(http.StatusOK, pages.SignIn(v.frame(), from, hint, "", s.Resets != nil))
	}
	email := v.form.Get("email")
	if !v.validForm() {
		return v.show(http.StatusBadRequest, pages.SignIn(v.frame(), from, email, v.T("stale"), s.Resets != nil))
	}
	o, err := s.App.SignIn(v.r.Context(), app.SignIn{
		Email: email, Password: v.form.Get("password"), Browser: v.browser, Address: v.network(), By: originOf(v.r, "sign-in"),
	})
	if status, text := v.wrong(err, "wrong"); status != 0 {
		return v.show(status, pages.SignIn(v.frame(), from, email, text, s.Resets != nil))
	}
	if err != nil {
		return err
	}
	if o.TOTPSecret != nil {
		return s.half(v, o)
	}
	return s.enter(v, o)
}

// half records that an operator entered their password, and requests their second factor.
func (s *Server) half(v *pageRequest, o domain.Operator) error {
	ctx := v.r.Context()
	if err := s.sessions.RenewToken(ctx); err != nil {
		return err
	}
	s.begin(v, o)
	s.sessions.SetDeadline(ctx, s.Now().Add(domain.FactorTime))
	s.sessions.Remove(ctx, keyOperator)
	s.sessions.Put(ctx, keyPending, o.ID.String())
	return v.redirect("/oauth/second-factor" + v.query())
}

// secondFactor requests the code of the second factor.
func (s *Server) secondFactor(v *pageRequest) error {
	ctx := v.r.Context()
	id, err := ids.Parse[domain.OperatorPrefix](s.sessions.GetString(ctx, keyPending))
	if err != nil {
		return v.redirect("/oauth/sign-in" + v.query())
	}
	if v.r.Method == http.MethodGet {
		return v.show(http.StatusOK, pages.Factor(v.frame(), ""))
	}
	if !v.validForm() {
		return v.show(http.StatusBadRequest, pages.Factor(v.frame(), v.T("stale")))
	}
	o, err := s.App.SecondFactor(ctx, app.Factor{
		Operator: id, Version: s.sessions.GetInt64(ctx, keyVersion), Code: v.form.Get("code"),
		Browser: v.browser, Address: v.network(), By: originOf(v.r, id.String()),
	})
	if status, text := v.wrong(err, "wrong_code"); status != 0 {
		return v.show(status, pages.Factor(v.frame(), text))
	}
	if err != nil {
		return err
	}
	return s.enter(v, o)
}

// begin gives the session a new public id, and records the version of the account whose password was entered.
func (s *Server) begin(v *pageRequest, o domain.Operator) {
	ctx := v.r.Context()
	s.sessions.Put(ctx, keyID, domain.NewSessionID().String())
	s.sessions.Put(ctx, keyCreated, s.Now().Unix())
	s.sessions.Put(ctx, keyVersion, o.Version)
}

// enter signs in an operator. The session gets a new token, so a planted token is useless.
func (s *Server) enter(v *pageRequest, o domain.Operator) error {
	ctx := v.r.Context()
	if err := s.sessions.RenewToken(ctx); err != nil {
		return err
	}
	s.begin(v, o)
	s.sessions.Remove(ctx, keyPending)
	s.sessions.Put(ctx, keyOperator, o.ID.String())
	s.sessions.Put(ctx, keyFresh, v.requestHash())
	if err := s.App.SignedIn(ctx, originOf(v.r, o.ID.String()), o.ID, v.browser); err != nil {
		return err
	}
	return v.redirect(v.next())
}

// The destinations of an operator after the sign-in, other than an authorization request.
const (
	console     = "/admin" // the operators' console
	accountPage = "/oauth/account"
)

// next returns the destination of an operator after the sign-in: the page of the console or the authorization request that
// requested it, otherwise the console.
func (v *pageRequest) next() string {
	if v.r.URL.RawQuery == "" {
		return console
	}
	if query := v.r.URL.Query(); query.Has("to") && !query.Has("client_id") {
		return cmp.Or(httpx.Local(query.Get("to"), console), httpx.Local(query.Get("to"), accountPage), console)
	}
	return "/oauth/authorize" + v.query()
}

// signOut ends the session.
func (s *Server) signOut(v *pageRequest) error {
	if err := s.sessions.Destroy(v.r.Context()); err != nil {
		return err
	}
	return v.show(http.StatusOK, pages.Finished(v.frame(), v.T("sign_out"), v.T("signed_out")))
}

// link sets a password with a one-time link.
func (s *Server) link(v *pageRequest) error {
	ctx, token := v.r.Context(), v.c.Param("token")
	gone := func() error {
		return v.show(http.StatusNotFound, pages.Message(v.frame(), v.T("set_password"), v.T("link_gone"), ""))
	}
	o, err := s.App.LinkOperator(ctx, token)
	if errors.Is(err, domain.ErrLink) {
		return gone()
	}
	if err != nil {
		return err
	}
	showForm := func(status int, wrong string) error {
		return v.show(status, pages.Password(v.frame(), v.r.URL.Path, o.Email, wrong))
	}
	if v.r.Method == http.MethodGet {
		return showForm(http.StatusOK, "")
	}
	if !v.validForm() {
		return showForm(http.StatusBadRequest, v.T("stale"))
	}
	_, err = s.App.UseLink(ctx, originOf(v.r, o.ID.String()), token, v.form.Get("password"))
	var broken domain.PasswordError
	switch {
	case err == nil:
		return v.show(http.StatusOK, pages.Finished(v.frame(), v.T("set_password"), v.T("password_saved")))
	case errors.Is(err, domain.ErrLink):
		return gone()
	case errors.As(err, &broken):
		return showForm(http.StatusUnprocessableEntity, v.T(string(broken)))
	}
	return err
}
