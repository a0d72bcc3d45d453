package api_test

import (
	"bytes"
	"encoding/base64"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

const logoForm = where + "business/logo"

// upload sends the form with a file as a browser does.
func (p *platform) upload(token, path string, form url.Values, field string, file []byte) *httptest.ResponseRecorder {
	p.t.Helper()
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for name, values := range form {
		for _, value := range values {
			if err := parts.WriteField(name, value); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	part, err := parts.CreateFormFile(field, "logo.png")
	if err == nil {
		_, err = part.Write(file)
	}
	if err == nil {
		err = parts.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return p.send(request{Method: http.MethodPost, Path: path, Token: token, Body: body.String(), Header: map[string]string{
		"Sec-Fetch-Site": "same-origin", "Content-Type": parts.FormDataContentType(),
	}})
}

// uploadForm returns the values of the form on the business page that uploads a logo, and its input for the file.
func (p *platform) uploadForm(token string) (form url.Values, file *html.Node) {
	p.t.Helper()
	doc := parse(p.t, p.get(token, where+"business").Body.String())
	for _, f := range all(doc, "form") {
		if attr(f, "action") == logoForm && attr(f, "enctype") == "multipart/form-data" {
			for _, n := range all(f, "input") {
				if attr(n, "type") == "file" {
					file = n
				}
			}
			form = sent(f)
			form.Del("logo")
		}
	}
	if file == nil {
		p.t.Fatal("no form to upload a logo")
	}
	p.forget()
	return form, file
}

// TestLogoForms checks that the business page sends the selected file and shows the current logo, which it can remove.
func TestLogoForms(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form, input := p.uploadForm("owner")
	if attr(input, "name") != "logo" || attr(input, "accept") != "image/png,image/jpeg" || attr(input, "aria-describedby") != "hint-logo" {
		t.Errorf("the input is %+v", input.Attr)
	}
	file := []byte("\x89PNG\r\n\x00\xff\xfe&form=x")
	w := p.upload("owner", logoForm, form, "logo", file)
	got := p.only(t)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != where+"business?done=saved" || got.ID != "setTenantLogo" || got.body(t)["logo"] != base64.StdEncoding.EncodeToString(file) {
		t.Errorf("%d to %s: %s %s", w.Code, to, got.ID, got.Body)
	}

	page := parse(t, p.get("owner", where+"business").Body.String())
	images := all(page, "img")
	if len(images) != 1 || attr(images[0], "src") != where+"logo" || attr(images[0], "alt") != "Current logo" {
		t.Fatalf("%d images", len(images))
	}
	w = p.get("owner", where+"logo")
	want, _ := base64.StdEncoding.DecodeString(onePixel)
	if h := w.Header(); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), want) || h.Get("Content-Type") != "image/png" || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, h)
	}
	p.forget()
	w = p.post("owner", logoForm, url.Values{"remove": {"true"}})
	if got := p.only(t); w.Code != http.StatusSeeOther || strings.TrimSpace(string(got.Body)) != `{"logo":null}` {
		t.Errorf("%d: %s", w.Code, got.Body)
	}

	p.setResponse("lookupTenant", object(map[string]any{"name": "Alpha", "logo_hash": ""}))
	page = parse(t, p.get("owner", where+"business").Body.String())
	if strings.Contains(textOf(page), "Current logo") || len(all(page, "img")) != 0 || strings.Contains(p.get("owner", where+"business").Body.String(), `name="remove"`) {
		t.Error("a tenant without a logo has one to remove")
	}
	if strings.Contains(p.get("owner", where+"policy").Body.String(), logoForm) {
		t.Error("another page has the form")
	}
}

// TestLogoOfAnotherTenant checks that an operator cannot see or change the logo of a tenant of which they are not a member.
func TestLogoOfAnotherTenant(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.signIn("stranger", tenant(beta, "beta", "owner"))
	form, _ := p.uploadForm("owner")
	form.Set("form", p.formToken("stranger"))
	p.forget()
	if w := p.upload("stranger", logoForm, form, "logo", []byte("x")); w.Code != http.StatusNotFound {
		t.Errorf("upload: %d", w.Code)
	}
	if w := p.get("stranger", where+"logo"); w.Code != http.StatusNotFound {
		t.Errorf("logo: %d", w.Code)
	}
	if calls := p.recordedCalls(); len(calls) != 0 {
		t.Errorf("%d calls", len(calls))
	}
	if p.get("stranger", "/admin/beta/test/logo"); len(p.recordedCalls()) != 1 || p.recordedCalls()[0].Params[0] != beta.String() || p.recordedCalls()[0].Who.Tenant != beta {
		t.Errorf("%+v", p.recordedCalls())
	}
}

// TestRefusedLogos checks that the page says why a file is not accepted, in the operator's language, and leaves the other settings as they are.
func TestRefusedLogos(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status              int
		message, lang, want string
	}{
		{422, "Must be a PNG or JPEG image.", "en", "Image: Must be a PNG or JPEG image."},
		{422, "Must be at most 2,000 pixels wide and 2,000 pixels high.", "de", "Bild: Darf höchstens 2.000 Pixel breit und 2.000 Pixel hoch sein."},
		{422, "Must be at most 256 KiB.", "de", "Bild: Darf höchstens 256 KiB groß sein."},
		{422, "The image is damaged.", "de", "Bild: Das Bild ist beschädigt."},
		{422, "The image has too many scans. Save it as PNG.", "de", "Bild: Das Bild hat zu viele Durchgänge. Speichern Sie es als PNG."},
		{413, "", "en", "The request is too large."},
	} {
		p := newPlatform(t, options{})
		code, fields := "invalid_request", map[string][]string{"logo": {c.message}}
		if c.status == 413 {
			code, fields = "request_too_large", nil
		}
		p.setResponse("setTenantLogo", refusal(c.status, code, fields))
		form, _ := p.uploadForm("owner")
		form.Set("lang", c.lang)
		w := p.upload("owner", logoForm, form, "logo", []byte("x"))
		doc := parse(t, w.Body.String())
		if got := alerts(doc); w.Code != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%d: %q, want %q", w.Code, got, c.want)
		}
		if formOf(t, doc, where+"business").Get("legal_name") != "Alpha Ltd" {
			t.Errorf("the settings are %v", formOf(t, doc, where+"business"))
		}
	}
	p := newPlatform(t, options{})
	form, _ := p.uploadForm("owner")
	if w := p.upload("owner", logoForm, form, "logo", make([]byte, 1<<20)); w.Code != http.StatusRequestEntityTooLarge || len(p.written()) != 0 {
		t.Errorf("too large for the console: %d", w.Code)
	}
	if w := p.upload("owner", logoForm, url.Values{"form": {"x"}}, "logo", []byte("x")); w.Code != http.StatusBadRequest || len(p.written()) != 0 {
		t.Errorf("without the token of the form: %d", w.Code)
	}
}

// TestWrongContentIsNoLogo checks that the console shows only images of the two types, and 404 for anything else.
func TestWrongContentIsNoLogo(t *testing.T) {
	t.Parallel()
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, body := range map[string]map[string]any{
		"a script":     {"media_type": "text/html", "logo": encode("<script>alert(1)</script>")},
		"SVG as PNG":   {"media_type": "image/png", "logo": encode("<svg xmlns='http://www.w3.org/2000/svg'/>")},
		"a GIF":        {"media_type": "image/gif", "logo": encode("GIF89a")},
		"another type": {"media_type": "image/jpeg", "logo": onePixel},
		"not Base64":   {"media_type": "image/png", "logo": "*"},
		"nothing":      {},
	} {
		p := newPlatform(t, options{})
		p.setResponse("lookupTenantLogo", object(body))
		if w := p.get("owner", where+"logo"); w.Code != http.StatusNotFound || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d as %s", name, w.Code, w.Header().Get("Content-Type"))
		}
	}
	p := newPlatform(t, options{})
	p.setResponse("lookupTenantLogo", refusal(http.StatusNotFound, "logo_not_found", nil))
	if w := p.get("owner", where+"logo"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "Page not found.") {
		t.Errorf("without a logo: %d", w.Code)
	}
}

// TestLogoAfterSignIn checks that an operator who must sign in again returns to the business page with its current settings, and learns that
// the file was not sent.
func TestLogoAfterSignIn(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form, _ := p.uploadForm("owner")
	p.signIn("owner", tenant(alpha, "alpha", "owner")).SignedInAt = noon.Add(-16 * time.Minute)
	w := p.upload("owner", logoForm, form, "logo", []byte("x"))
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || to.Path != "/oauth/sign-in" || to.Query().Get("to") != where+"business?done=logo_unchanged" || len(p.written()) != 0 || len(p.drafts) != 0 {
		t.Fatalf("%d to %s, %d drafts: %v", w.Code, to, len(p.drafts), err)
	}
	p.signIn("owner", tenant(alpha, "alpha", "owner"))
	doc := parse(t, p.get("owner", to.Query().Get("to")).Body.String())
	if formOf(t, doc, where+"business").Get("legal_name") != "Alpha Ltd" || !strings.Contains(alerts(doc), "The logo was not changed.") {
		t.Errorf("%s", alerts(doc))
	}
}
