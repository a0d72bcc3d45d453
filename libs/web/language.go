package web

import (
	"net/http"

	"holdfast.dev/libs/locale"
)

// LanguageCookie is the name of the cookie with the language that a person selected: a BCP 47 tag.
const LanguageCookie = "holdfast_language"

// Text returns the texts in the language that the person selected in this browser, otherwise in the one that the browser prefers.
func Text(r *http.Request, m *locale.Messages) locale.Text {
	return m.For(Cookie(r, LanguageCookie), r.Header.Get("Accept-Language"))
}
