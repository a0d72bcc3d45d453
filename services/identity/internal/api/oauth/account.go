package oauth

import (
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/mileusna/useragent"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/pages"
)

// recently is how long after the sign-in an operator can change how they sign in.
const recently = 15 * time.Minute

// maxShownGrants is the maximum number of grants on a page, newest first.
const maxShownGrants = 200

// keyFactor is the key of the secret of a second factor that is being set up.
const keyFactor = "factor"

// account shows an operator their second factor, grants, and sessions, and changes them.
func (s *Server) account(v *pageRequest) error {
	operator, err := v.operator()
	if err != nil {
		return err
	}
	if operator == nil {
		return v.redirect("/oauth/sign-in?to=" + accountPage)
	}
	page := pages.AccountView{Email: operator.Email}
	status := http.StatusOK
	switch {
	case v.r.Method == http.MethodGet:
	case !v.validForm():
		status, page.Wrong = http.StatusBadRequest, v.T("stale")
	default:
		if status, err = s.change(v, operator, &page); status == 0 || err != nil {
			return err
		}
	}
	grants, err := s.App.OwnGrants(v.r.Context(), operator.ID)
	if err != nil {
		return err
	}
	for _, g := range grants[:min(len(grants), maxShownGrants)] {
		page.Grants = append(page.Grants, pages.Access{
			ID: g.ID.String(), App: g.App, Tenant: g.Tenant, Mode: string(caller.ModeOf(g.Livemode)), Scopes: g.Scopes, Since: g.CreatedAt.UTC().Format(time.DateOnly),
		})
	}
	sessions, err := s.App.Sessions(v.r.Context(), operator.ID)
	if err != nil {
		return err
	}
	this := s.sessions.GetString(v.r.Context(), keyID)
	for _, one := range sessions {
		page.Sessions = append(page.Sessions, pages.SignedIn{
			ID: one.ID.String(), Agent: v.agent(one.Agent), Address: one.Address, Seen: one.SeenAt.UTC().Format("2006-01-02 15:04 UTC"), This: one.ID.String() == this,
		})
	}
	page.Factor = operator.TOTPSecret != nil
	return v.show(status, pages.Account(v.frame(), page))
}

// change processes the operator's request for their account. Status 0 means that the response was already written.
func (s *Server) change(v *pageRequest, o *domain.Operator, page *pages.AccountView) (status int, err error) {
	ctx := v.r.Context()
	by := originOf(v.r, o.ID.String())
	switch do := v.form.Get("do"); do {
	case "end_session", "end_others":
		var one domain.SessionID
		if do == "end_session" {
			if one, err = ids.Parse[domain.SessionPrefix](v.form.Get("id")); err != nil {
				return http.StatusOK, nil // it no longer exists
			}
		}
		this := sha256.Sum256([]byte(s.sessions.Token(ctx)))
		_, err = s.App.EndSessions(ctx, o.ID, one, this[:])
		return http.StatusOK, err
	case "end_grant":
		if id, err := domain.ParseGrantID(v.form.Get("id")); err == nil {
			return http.StatusOK, s.App.EndOwnGrant(ctx, by, o.ID, id)
		}
		return http.StatusOK, nil // it no longer exists
	case "factor_begin", "factor_set", "factor_end":
		if s.Now().Sub(time.Unix(s.sessions.GetInt64(ctx, keyCreated), 0)) > recently {
			return 0, v.redirect("/oauth/sign-in?to=" + accountPage)
		}
		return s.changeFactor(v, by, o, page)
	}
	return http.StatusOK, nil
}

func (s *Server) changeFactor(v *pageRequest, by domain.Origin, o *domain.Operator, page *pages.AccountView) (status int, err error) {
	ctx := v.r.Context()
	switch v.form.Get("do") {
	case "factor_begin":
		page.Secret = app.NewFactor()
		s.sessions.Put(ctx, keyFactor, page.Secret)
	case "factor_end":
		err = s.App.EndFactor(ctx, by, o.ID)
		o.TOTPSecret = nil
	case "factor_set":
		page.Secret = s.sessions.GetString(ctx, keyFactor)
		page.Recovery, err = s.App.SetFactor(ctx, by, o.ID, page.Secret, v.form.Get("code"))
		if status, text := v.wrong(err, "wrong_code"); status != 0 {
			page.Wrong = text
			return status, nil
		}
		if err == nil {
			s.sessions.Remove(ctx, keyFactor)
			page.Secret, o.TOTPSecret = "", []byte{1} // the operator has a second factor now
		}
	}
	return http.StatusOK, err
}

// agent returns the name of a browser and its system from its User-Agent. A header without either is returned unchanged.
func (v *pageRequest) agent(header string) string {
	if ua := useragent.Parse(header); ua.Name != "" && ua.OS != "" {
		return v.T("agent", "Browser", ua.Name, "System", ua.OS)
	}
	return header
}
