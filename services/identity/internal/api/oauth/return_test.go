package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestFinishedPagesLeadToTheSignIn checks that pages that end a session lead back to the sign-in.
func TestFinishedPagesLeadToTheSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, token, err := w.app.ResetOperator(t.Context(), by, w.operator.Email, false)
	if err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	for name, p := range map[string]*page{
		"sign-out": b.do(http.MethodPost, "/oauth/sign-out", url.Values{}),
		"link":     b.submit(b.get("/oauth/link/"+token), "password", password),
	} {
		if p.StatusCode != http.StatusOK || !strings.Contains(p.body, `<a href="/oauth/sign-in">Sign in</a>`) {
			t.Errorf("%s: %d %s", name, p.StatusCode, p.body)
		}
	}
}
