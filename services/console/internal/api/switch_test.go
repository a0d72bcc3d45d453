package api_test

import (
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// ways returns two addresses that a page links to: the target of the mode switch and the return address of the language selection.
func ways(doc *html.Node) (out []string) {
	for _, n := range all(doc, "nav") {
		if strings.Contains(attr(n, "class"), "join") && attr(n, "aria-label") == "Data" {
			for _, a := range all(n, "a") {
				out = append(out, attr(a, "href"))
			}
		}
	}
	for _, n := range all(doc, "form") {
		if attr(n, "action") == "/admin/-/preferences" {
			out = append(out, sent(n).Get("to"))
		}
	}
	return out
}

// TestEachPageLeadsToOneThatExists checks that the mode switch and the language selection lead to pages that exist, from every
// page of both modes, including pages returned by a form.
func TestEachPageLeadsToOneThatExists(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"owner", "viewer"} {
		p := newPlatform(t, options{})
		p.lax = true
		codes := map[string]int{}
		for _, mode := range []string{"test", "live"} {
			for _, route := range p.routes() {
				method, path, _ := strings.Cut(route, " ")
				if strings.HasSuffix(path, "/live") || strings.HasSuffix(path, ".csv") || strings.HasSuffix(path, "/pdf") {
					continue
				}
				from := address("alpha", mode, path)
				var w *httptest.ResponseRecorder
				if method == http.MethodGet {
					w = p.get(role, from)
				} else {
					w = p.post(role, from, url.Values{"list": {"nothing"}})
				}
				for _, to := range ways(parse(t, w.Body.String())) {
					if codes[to] == 0 {
						codes[to] = p.get(role, to).Code
					}
					if itself := w.Code == http.StatusNotFound && strings.HasPrefix(to, from); codes[to] == http.StatusNotFound && !itself {
						t.Errorf("%s: %s %s (%d) leads to %s: %d", role, method, from, w.Code, to, codes[to])
					}
				}
			}
		}
		if len(codes) < 100 {
			t.Errorf("only %d addresses", len(codes))
		}
	}
}

// TestSwitchFromATestPage checks that the switch to live leads from the test clock, which exists only in test mode, to the first
// page.
func TestSwitchFromATestPage(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	to := ways(parse(t, p.get("owner", where+"clock").Body.String()))
	if !slices.Contains(to, "/admin/alpha/live/today") || slices.Contains(to, "/admin/alpha/live/clock") {
		t.Errorf("%v", to)
	}
	if to := ways(parse(t, p.get("owner", where+"bookings/bk"+oneID).Body.String())); !slices.Contains(to, "/admin/alpha/live/bookings") {
		t.Errorf("%v", to)
	}
}

// TestCSVBeginsWithAByteOrderMark checks that a list as CSV begins with a byte order mark, by which spreadsheet programs detect
// its encoding, and otherwise equals the API's response.
func TestCSVBeginsWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	n := 0
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodGet || !strings.HasSuffix(path, ".csv") {
			continue
		}
		n++
		list := "id,name\r\nx_1,Müller 日本\r\n"
		for id, op := range parts().operations {
			if op.CSV && strings.HasPrefix(id, "list") {
				p.setResponse(id, func(call) response { return response{http.StatusOK, []byte(list)} })
			}
		}
		body := p.get("viewer", address("alpha", "test", path)).Body.String()
		rest, ok := strings.CutPrefix(body, "\xEF\xBB\xBF")
		if !ok || rest != list || !utf8.ValidString(body) {
			t.Errorf("%s: %q", path, body)
		}
		if rows, err := csv.NewReader(strings.NewReader(rest)).ReadAll(); err != nil || len(rows) != 2 {
			t.Errorf("%s: %v %v", path, rows, err)
		}
	}
	if n != 5 {
		t.Errorf("%d lists have CSV", n)
	}
	if pdf := p.get("viewer", address("alpha", "test", "/invoices/:id/pdf")).Body.String(); strings.HasPrefix(pdf, "\xEF\xBB\xBF") {
		t.Error("a PDF begins with a mark")
	}
}
