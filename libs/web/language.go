package web

import (
	"net/http"

	"holdfast.dev/libs/words"
)

// LanguageCookie names the cookie that holds the language which a person has chosen: a BCP 47 tag.
const LanguageCookie = "holdfast_language"

// Text returns the texts in the language that the browser's person has chosen, else in the one that the browser prefers.
func Text(r *http.Request, w *words.Words) words.Text {
	return w.For(Cookie(r, LanguageCookie), r.Header.Get("Accept-Language"))
}
