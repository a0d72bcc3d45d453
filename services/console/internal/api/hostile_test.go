package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
)

// hostile is a text that runs as a script if a page does not escape it, and that reverses the direction of the following text.
var hostile = `"><img src=x onerror=alert(1)><script>alert(1)</script>{{.}}` + "\u202e\u2066'` onmouseover=alert(1) " + strings.Repeat("x", 5000)

// link is a hostile address.
const link = "javascript:alert(document.cookie)//"

// poison returns v with its texts replaced: all texts, or only those that a person can enter.
func poison(v any, field, with string, everything bool) any {
	switch value := v.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = poison(inner, name, with, everything)
		}
	case []any:
		for i, inner := range value {
			value[i] = poison(inner, field, with, everything)
		}
	case string:
		if everything || free(field) {
			return with
		}
	case nil:
		if free(field) && !slices.Contains([]string{"cancellation", "failure", "package_snapshot", "next_cursor", "opening_hours"}, field) && !strings.HasSuffix(field, "_minutes") {
			return with
		}
	}
	return v
}

// free reports whether a field holds text written by a person, and not an id, instant, status, type, or number.
func free(field string) bool {
	for _, ending := range []string{"id", "ids", "_at", "_date", "date_from", "date_to", "status", "currency", "object", "mode", "_type", "_time", "_bps", "types", "type", "count", "amount", "_value", "timezone", "active"} {
		if strings.HasSuffix(field, ending) {
			return false
		}
	}
	return true
}

// poisoned makes every service respond with the text.
func (p *platform) poisoned(with string, everything bool) {
	p.lax = true
	for _, op := range p.contract.Operations() {
		if op.Method != http.MethodGet || op.Stream {
			continue
		}
		p.setResponse(op.ID, func(c call) response {
			out := p.example(op, c)
			out.Body = poison(out.Body, "", with, everything)
			if o, ok := out.Body.(map[string]any); ok && !everything && c.Params != nil {
				o["metadata"] = map[string]any{with: with}
			}
			return out
		})
	}
	p.setResponse("listCalendar", func(call) response {
		b, _ := poison(calendarBooking(), "", with, false).(map[string]any)
		b["event_local_date"], b["number"], b["customer_name"] = "2027-03-01", with, with
		return response{http.StatusOK, map[string]any{"data": []any{b}, "timezone": "America/New_York", "truncated": true}}
	})
	for id, op := range parts().operations {
		if _, ok := internalExample(id); ok && op.Method == http.MethodGet && id != "listCalendar" && id != "listStatistics" {
			p.setResponse(id, func(call) response {
				body, _ := internalExample(id)
				out := poison(body, "", with, everything)
				if list, ok := out.(map[string]any)["data"].([]any); ok && strings.HasPrefix(id, "list") { // so that each page finds its object
					original, _ := internalExample(id)
					for i, one := range list {
						if known, ok := original.(map[string]any)["data"].([]any)[i].(map[string]any)["id"]; ok {
							one.(map[string]any)["id"] = known
						}
					}
				}
				return response{http.StatusOK, out}
			})
		}
	}
	own := tenant(alpha, "alpha", "owner")
	own.Name = with
	s := p.signIn("owner", own)
	s.Operator.Name, s.Operator.Email = with, with
}

// pagesOf returns all addresses whose pages show something, with the query parameters that a reader can add.
func (p *platform) pagesOf() []string {
	out := []string{
		"/admin/alpha/test/calendar?view=day&date=2027-03-01", "/admin/alpha/test/calendar?view=month&date=2027-03-01", "/admin/alpha/test/calendar?view=week&date=2027-03-01",
		"/admin/alpha/test/departure?unit_id=un" + oneID + "&starts_at=2027-03-01T14:00:00Z",
		"/admin/alpha/test/search?q=Ada", "/admin/alpha/test/today?days=90",
		"/admin/alpha/test/search?q=" + url.QueryEscape(hostile[:150]), "/admin/alpha/test/bookings/new?customer_id=" + url.QueryEscape(hostile[:150]),
		"/admin/alpha/test/bookings?number=" + url.QueryEscape(hostile[:50]) + "&" + url.QueryEscape(hostile[:50]) + "=1", "/admin/alpha/test/calendar?service_id=" + url.QueryEscape(link),
		"/admin/alpha/test/leads?q=Ada&done=" + url.QueryEscape(link),
	}
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		if method == http.MethodGet && strings.Trim(path, "/") != "" && !slices.ContainsFunc([]string{"/live", "/pdf", ".csv", "/suggest"}, func(s string) bool { return strings.HasSuffix(path, s) }) {
			out = append(out, address("alpha", "test", path))
		}
	}
	return out
}

// unsafeParts returns the parts of a page that execute data.
func unsafeParts(doc *html.Node) []string {
	var out []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" && (n.FirstChild != nil || !strings.HasPrefix(attr(n, "src"), "/admin/-/assets/")) || n.Data == "style" && sourceOf(n) != pages.StyleSource() || n.Data == "iframe" || n.Data == "base" || n.Data == "img" && attr(n, "src") != "/admin/alpha/test/logo" {
			out = append(out, "<"+n.Data+">")
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
				out = append(out, n.Data+" "+a.Key)
			case slices.Contains([]string{"href", "src", "action", "formaction"}, a.Key) && !own(n, a.Val):
				out = append(out, n.Data+" "+a.Key+"="+a.Val[:min(len(a.Val), 60)])
			}
		}
	}
	return out
}

// sourceOf returns the source that allows the text of an element in a content security policy.
func sourceOf(n *html.Node) string {
	var text strings.Builder
	for c := range n.ChildNodes() {
		text.WriteString(c.Data)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// own reports whether an address belongs to this site.
func own(n *html.Node, address string) bool {
	u, err := url.Parse(address)
	if n.Data == "link" && address == "data:," || strings.HasPrefix(address, "#") {
		return true
	}
	return err == nil && u.Scheme == "" && u.Host == "" && (strings.HasPrefix(u.Path, "/admin") || strings.HasPrefix(u.Path, "/oauth/") || u.Path == "/docs") && !strings.Contains(u.Path, "/../")
}

// TestHostileContent checks that any content in a service's response or in an address is shown as text.
func TestHostileContent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		with       string
		everything bool
	}{"texts": {hostile, false}, "every text": {hostile, true}, "links": {link, false}, "every link": {link, true}, "ids": {"bk_" + hostile, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, options{})
			p.poisoned(tc.with, tc.everything)
			shown := 0
			for _, path := range p.pagesOf() {
				w := p.get("owner", path)
				page := w.Body.String()
				gone := w.Code == http.StatusNotFound && (tc.everything && (strings.Contains(path, "/deliveries/") || strings.Contains(path, "/reverse")) || strings.HasSuffix(path, "/logo")) // the response contains another id, or no image
				if w.Code != http.StatusOK && !gone && (w.Code != http.StatusUnprocessableEntity || !strings.Contains(path, "?")) {
					t.Errorf("%s: %d", path, w.Code)
				}
				if strings.Contains(page, "<img src=x") || strings.Contains(page, "<script>alert") {
					t.Errorf("%s has markup of the data", path)
				}
				for _, bad := range unsafeParts(parse(t, page)) {
					t.Errorf("%s: %s", path, bad)
				}
				if strings.Contains(page, "alert") {
					shown++
				}
			}
			if shown < 60 {
				t.Errorf("only %d pages show the text", shown)
			}
		})
	}
}

// TestHostileForms checks that form input is also shown as text.
func TestHostileForms(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for i := range domain.Resources {
		r := &domain.Resources[i]
		for _, op := range []string{r.Create, r.Update} {
			if op != "" {
				p.setResponse(op, refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{hostile[:100]: {hostile}, "name": {hostile}, "notes": {hostile}, "description": {hostile}}))
			}
		}
	}
	p.setResponse("createApiKey", refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{"name": {hostile}, "scopes": {hostile}}))
	n := 0
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		where := address("alpha", "test", path)
		if method != http.MethodPost || !strings.HasSuffix(path, "/new") && !strings.HasSuffix(path, "/edit") {
			continue
		}
		form := formOf(t, parse(t, p.get("owner", where).Body.String()), where)
		for name := range form {
			if name != "form" && name != "version" {
				form.Set(name, hostile)
			}
		}
		w := p.post("owner", where, form)
		if w.Code != http.StatusUnprocessableEntity || strings.Contains(w.Body.String(), "<img src=x") {
			t.Errorf("%s: %d", where, w.Code)
		}
		for _, bad := range unsafeParts(parse(t, w.Body.String())) {
			t.Errorf("%s: %s", where, bad)
		}
		n++
	}
	if n < 15 {
		t.Errorf("only %d forms", n)
	}
}

// TestHostileSuggestions checks that suggestions are rendered as text, in the values of options.
func TestHostileSuggestions(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.poisoned(hostile, false)
	w := p.get("owner", "/admin/alpha/test/customers/suggest?customer_id=Ada")
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "<img") || !strings.Contains(w.Body.String(), "onerror") || !strings.Contains(w.Body.String(), "<option") {
		t.Errorf("%d %s", w.Code, w.Body.String())
	}
}
