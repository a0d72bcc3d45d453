package oauth

import (
	"net/http"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/pages"
)

// forgotPassword mails a link that sets a new password. The response is the same whether or not the address has an account.
func (s *Server) forgotPassword(v *pageRequest) error {
	if s.Resets == nil {
		return v.show(http.StatusNotFound, pages.Message(v.frame(), v.T("forgot"), v.T("link_gone"), ""))
	}
	if v.r.Method == http.MethodGet {
		return v.show(http.StatusOK, pages.ForgotPassword(v.frame(), "", ""))
	}
	email := v.form.Get("email")
	if !v.validForm() {
		return v.show(http.StatusBadRequest, pages.ForgotPassword(v.frame(), email, v.T("stale")))
	}
	text := v.Text
	err := s.Resets.Request(v.r.Context(), app.PasswordReset{
		Email: email, Network: v.network(), By: originOf(v.r, "sign-in"),
		Message: func(link string) (subject, body string) {
			return text.T("reset_subject"), text.T("reset_mail", "Link", link)
		},
	})
	if status, text := v.wrong(err, "stale"); status != 0 {
		return v.show(status, pages.ForgotPassword(v.frame(), email, text))
	}
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, pages.Finished(v.frame(), v.T("forgot"), v.T("reset_sent", "Email", email)))
}
