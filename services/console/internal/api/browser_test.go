package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// request is a browser's request, sent through the gateway.
type request struct {
	Method, Path string
	Token        string // of the session's cookie; "": none
	Cookie       string // its name; "": the name for http
	Body         string
	Header       map[string]string
}

// send passes a request, signed by the gateway, to the console and returns its response.
func (p *platform) send(in request) *httptest.ResponseRecorder {
	p.t.Helper()
	r := p.signed(in)
	w := p.serve(r)
	if to := w.Header().Get("Location"); in.Method == http.MethodGet && strings.HasPrefix(to, r.URL.EscapedPath()+"?") && !strings.Contains(in.Path, "once=") { // the address of the page with the key of its form
		in.Path = to
		return p.send(in)
	}
	return w
}

func (p *platform) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.engine.ServeHTTP(w, r)
	return w
}

func (p *platform) signed(in request) *http.Request {
	p.t.Helper()
	r := httptest.NewRequest(in.Method, in.Path, strings.NewReader(in.Body))
	r.Host = "console-internal:8080"
	if in.Body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if in.Token != "" {
		name := in.Cookie
		if name == "" {
			name = "holdfast_session"
		}
		r.AddCookie(&http.Cookie{Name: name, Value: in.Token})
	}
	for name, value := range in.Header {
		r.Header.Set(name, value)
	}
	signer := &caller.Signer{From: "gateway", Keys: caller.Keys{"console": {{ID: "k1", Secret: secretOf("gateway")}}}}
	header, err := signer.Sign(caller.Service("gateway", ids.Tenant{}, ""), "console", in.Method, r.URL.EscapedPath(), time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set(caller.Header, header)
	return r
}

// get requests a page with a session.
func (p *platform) get(token, path string) *httptest.ResponseRecorder {
	p.t.Helper()
	return p.send(request{Method: http.MethodGet, Path: path, Token: token})
}

// post sends a form with its token.
func (p *platform) post(token, path string, form url.Values) *httptest.ResponseRecorder {
	p.t.Helper()
	out := url.Values{"form": {p.formToken(token)}}
	for name, values := range form {
		out[name] = values
	}
	return p.send(request{Method: http.MethodPost, Path: path, Token: token, Body: out.Encode(), Header: map[string]string{"Sec-Fetch-Site": "same-origin"}})
}

// formToken returns the token of the forms of a session, read from a page that calls no service.
func (p *platform) formToken(token string) string {
	p.t.Helper()
	p.mu.Lock()
	known, s := p.tokens[token], p.sessions[sum(token)]
	p.mu.Unlock()
	if known != "" {
		return known
	}
	w := p.get(token, "/admin/"+s.Tenants[0].Slug+"/test/search")
	for _, n := range all(parse(p.t, w.Body.String()), "input") {
		if attr(n, "name") == "form" {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.tokens[token] = attr(n, "value")
			return attr(n, "value")
		}
	}
	p.t.Fatalf("no form on the page: %d", w.Code)
	return ""
}

// parse reads a page.
func parse(t *testing.T, page string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// all returns the elements of a tag, in order.
func all(n *html.Node, tags ...string) []*html.Node {
	var out []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && slices.Contains(tags, d.Data) {
			out = append(out, d)
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	value, _ := attrOf(n, name)
	return value
}

func attrOf(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// textOf returns the text of a node, with whitespace collapsed to single spaces.
func textOf(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// alerts returns the messages of a page that report a problem.
func alerts(doc *html.Node) string {
	var out []string
	for _, n := range all(doc, "p", "div") {
		if attr(n, "role") == "alert" {
			out = append(out, textOf(n))
		}
	}
	return strings.Join(out, " ")
}

// formOf returns the form of a page that is sent to its address, with the values that a browser would send.
func formOf(t *testing.T, doc *html.Node, action string) url.Values {
	t.Helper()
	for _, f := range all(doc, "form") {
		if attr(f, "action") == action && attr(f, "method") == "post" {
			return sent(f)
		}
	}
	t.Fatalf("no form to %s in %s", action, textOf(doc))
	return nil
}

// sent returns the values that a browser submits for an unchanged form.
func sent(form *html.Node) url.Values {
	out := url.Values{}
	for _, n := range all(form, "input", "textarea", "select") {
		name := attr(n, "name")
		if name == "" {
			continue
		}
		switch n.Data {
		case "textarea":
			text := ""
			if n.FirstChild != nil {
				text = n.FirstChild.Data
			}
			out.Add(name, strings.ReplaceAll(text, "\n", "\r\n"))
		case "select":
			out.Add(name, selectedValue(n))
		default:
			_, checked := attrOf(n, "checked")
			if attr(n, "type") != "checkbox" || checked {
				out.Add(name, attr(n, "value"))
			}
		}
	}
	return out
}

// selectedValue returns the value of the selected option, or else of the first one.
func selectedValue(n *html.Node) string {
	options := all(n, "option")
	for _, o := range options {
		if _, ok := attrOf(o, "selected"); ok {
			return attr(o, "value")
		}
	}
	if len(options) == 0 {
		return ""
	}
	return attr(options[0], "value")
}

// named returns the input, select, or textarea with a name.
func named(doc *html.Node, name string) *html.Node {
	for _, n := range all(doc, "input", "textarea", "select", "fieldset") {
		if attr(n, "name") == name {
			return n
		}
	}
	return nil
}
