package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestDiscover checks that the metadata must name the server from which it was read (RFC 8414), and that a redirect is not followed.
func TestDiscover(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ resource, issuer, want string }{
		"equal":       {`{"authorization_servers":["ORIGIN"]}`, "ORIGIN", ""},
		"other":       {`{"authorization_servers":["ORIGIN"]}`, "https://evil.example", `says that it is "https://evil.example"`},
		"none":        {`{}`, "ORIGIN", "names no authorization server"},
		"not JSON":    {`<html>`, "ORIGIN", "returned no JSON"},
		"a redirect":  {"", "ORIGIN", "returned status 302"},
		"unreachable": {`{"authorization_servers":["http://127.0.0.1:1"]}`, "ORIGIN", "cannot reach http://127.0.0.1:1"},
	} {
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := func(text string) string { return strings.ReplaceAll(text, "ORIGIN", server.URL) }
			switch {
			case strings.HasSuffix(r.URL.Path, "oauth-authorization-server"):
				_, _ = fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"https://a.example/token","scopes_supported":["read:bookings"]}`, at(tc.issuer))
			case tc.resource == "":
				http.Redirect(w, r, "https://evil.example", http.StatusFound)
			default:
				_, _ = fmt.Fprint(w, at(tc.resource))
			}
		}))
		s, err := Discover(t.Context(), server.URL)
		server.Close()
		if tc.want == "" && (err != nil || s.Token != "https://a.example/token" || !slices.Equal(s.Offered([]string{"read:bookings", "new:scope"}), []string{"read:bookings"})) {
			t.Errorf("%s: %+v %v", name, s, err)
		}
		if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
