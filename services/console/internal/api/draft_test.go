package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// entered returns the form of a page as an operator fills it in, with text in each text input.
func (p *platform) entered(t *testing.T, at string) url.Values {
	t.Helper()
	form := p.changedForm(at)
	for name := range form {
		switch {
		case strings.HasSuffix(name, "secret_key") || strings.HasSuffix(name, "webhook_secret"):
			form.Set(name, "sk_hush")
		case name == "now":
			form.Set(name, "2027-03-05T10:00")
		}
	}
	return form
}

// expire ends all sessions; browsers keep their cookies.
func (p *platform) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.sessions)
}

// back returns the address to which the sign-in returns the browser.
func back(t *testing.T, location string) string {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil || u.Path != "/oauth/sign-in" {
		t.Fatalf("it leads to %q", location)
	}
	return u.Query().Get("to")
}

// same reports the values that differ between two forms. It compares all values except tokens, secrets, and buttons.
func same(t *testing.T, path string, was, is url.Values) {
	t.Helper()
	for name, values := range was {
		if slices.Contains([]string{"form", "lang", "secret_key", "webhook_secret"}, name) || path == "/clock" && name == "to" {
			continue
		}
		if got := strings.Join(is[name], "|"); got != strings.Join(values, "|") {
			t.Errorf("%s: %s was %q and is %q", path, name, values, got)
		}
	}
}

// late holds the ways in which a form is submitted too late: the session ended, with or without a cookie; the password was entered
// too long ago; the browser signed in again.
var late = map[string]func(p *platform, at string, form url.Values) (to, token string){
	"an expired session": func(p *platform, at string, form url.Values) (to, token string) {
		p.expire()
		w := p.post("owner", at, form)
		p.signIn("again", tenant(alpha, "alpha", "owner"))
		return back(p.t, w.Header().Get("Location")), "again"
	},
	"no cookie": func(p *platform, at string, form url.Values) (to, token string) {
		form = url.Values(cloned(form))
		form.Set("form", p.formToken("owner"))
		w := p.send(request{Method: http.MethodPost, Path: at, Body: form.Encode(), Header: map[string]string{"Sec-Fetch-Site": "same-origin"}})
		return back(p.t, w.Header().Get("Location")), "owner"
	},
	"a stale token": func(p *platform, at string, form url.Values) (to, token string) {
		p.signIn("again", tenant(alpha, "alpha", "owner"))
		form = url.Values(cloned(form))
		form.Set("form", p.formToken("owner"))
		w := p.send(request{Method: http.MethodPost, Path: at, Token: "again", Body: form.Encode()})
		if w.Code != http.StatusSeeOther {
			p.t.Errorf("%s with a stale token: %d", at, w.Code)
		}
		return w.Header().Get("Location"), "again"
	},
	"an old password": func(p *platform, at string, form url.Values) (to, token string) {
		p.signIn("owner", tenant(alpha, "alpha", "owner")).SignedInAt = noon.Add(-time.Hour)
		w := p.post("owner", at, form)
		p.signIn("owner", tenant(alpha, "alpha", "owner"))
		if !strings.HasPrefix(w.Header().Get("Location"), "/oauth/") { // an action that is not dangerous is executed
			return "", ""
		}
		return back(p.t, w.Header().Get("Location")), "owner"
	},
}

func cloned(form url.Values) map[string][]string {
	out := map[string][]string{}
	for name, values := range form {
		out[name] = slices.Clone(values)
	}
	return out
}

// TestFormsAreRestored checks that after the operator signs in again, each form has the entered values and its key, and that only
// this operator can submit it.
func TestFormsAreRestored(t *testing.T) {
	t.Parallel()
	for how, send := range late {
		restored := 0
		for _, route := range newPlatform(t, options{}).routes() {
			method, path, _ := strings.Cut(route, " ")
			if method != http.MethodPost || slices.Contains(reads, route) || slices.Contains(elsewhere, route) {
				continue
			}
			p := newPlatform(t, options{})
			p.lax = true
			at := address("alpha", "test", path)
			form := p.entered(t, at)
			p.formToken("owner")
			p.forget()
			to, token := send(p, at, form)
			if token == "" {
				continue
			}
			restored++
			if n := len(p.written()); n != 0 {
				t.Fatalf("%s, %s: %d writes", how, path, n)
			}
			w := p.get(token, to)
			doc := parse(t, w.Body.String())
			if w.Code != http.StatusOK || !strings.Contains(textOf(doc), "Check it and submit it again.") || len(p.written()) != 0 {
				t.Errorf("%s, %s: %s: %d, %d writes", how, path, to, w.Code, len(p.written()))
				continue
			}
			again := formOf(t, doc, at)
			for _, name := range []string{"shown_customer_id", "id_customer_id"} { // of the customer before the change
				form.Del(name)
			}
			same(t, how+" "+path, form, again)
			if strings.Contains(w.Body.String(), "sk_hush") {
				t.Errorf("%s, %s: a secret is stored", how, path)
			}
			for name := range form { // the browser does not submit these from the restored page
				if !again.Has(name) {
					again[name] = form[name]
				}
			}
			again.Del("form")
			p.forget()
			if w := p.post(token, at, again); w.Code >= http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s, %s: then %d", how, path, w.Code)
			}
			if c := p.only(t); c.Method != http.MethodDelete && !strings.HasPrefix(c.Header.Get("Idempotency-Key"), form.Get("once")) {
				t.Errorf("%s, %s: the key is %s, was %s", how, path, c.Header.Get("Idempotency-Key"), form.Get("once"))
			}
		}
		if restored < 40 && how != "an old password" || restored < 25 {
			t.Errorf("%s: %d forms", how, restored)
		}
	}
}

// TestSecretsAreNotStored checks that the console does not store secrets from form input.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	for _, route := range p.routes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodGet || strings.HasSuffix(path, "/live") {
			continue
		}
		for _, n := range all(parse(t, p.get("owner", address("alpha", "test", path)).Body.String()), "input") {
			if attr(n, "type") == "password" && !slices.Contains([]string{"secret_key", "webhook_secret"}, attr(n, "name")) {
				t.Errorf("%s has the secret %s: is it stored?", path, attr(n, "name"))
			}
		}
	}
	form := p.fill("owner", where+"gateway", url.Values{"publishable_key": {"pk_test_1"}, "secret_key": {"sk_hush"}, "webhook_secret": {"whsec_hush"}})
	token := p.formToken("owner")
	p.expire()
	p.post("owner", where+"gateway", form)
	if len(p.drafts) != 1 {
		t.Fatalf("%d drafts", len(p.drafts))
	}
	for _, d := range p.drafts {
		if d.Values["secret_key"] != nil || d.Values["webhook_secret"] != nil || d.Values["form"] != nil || len(d.Values["publishable_key"]) != 1 || strings.Contains(token, "hush") {
			t.Errorf("%v", d.Values)
		}
	}
}

// TestDraftsAreOfOneOperator checks that an operator's form input is not shown to another operator, on another page, or in another
// workspace.
func TestDraftsAreOfOneOperator(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := where + "customers/new"
	form := p.fill("owner", path, url.Values{"first_name": {"Grace"}, "company": {"Hush & Co"}})
	p.formToken("owner")
	p.expire()
	to := back(t, p.post("owner", path, form).Header().Get("Location"))
	p.signIn("both", tenant(alpha, "alpha", "owner"), tenant(beta, "beta", "owner"))
	erik := p.signIn("erik", tenant(alpha, "alpha", "owner"))
	erik.Operator.ID = "op_01k00000000000000000000002"
	erik.FormProof = proofOf(erik.Operator.ID)
	for name, page := range map[string]string{
		"another operator": p.get("erik", to).Body.String(),
		"another page":     p.get("both", strings.Replace(to, "customers", "leads", 1)).Body.String(),
		"another mode":     p.get("both", strings.Replace(to, "/test/", "/live/", 1)).Body.String(),
		"another tenant":   p.get("both", strings.Replace(to, "/alpha/", "/beta/", 1)).Body.String(),
		"another key":      p.get("both", strings.Replace(to, "once=", "once=x", 1)).Body.String(),
		"a plain address":  p.get("both", path).Body.String(),
	} {
		if strings.Contains(page, "Hush") || strings.Contains(page, "Check it and submit") {
			t.Errorf("%s is shown it", name)
		}
	}
	w := p.serve(p.signed(request{Method: http.MethodGet, Path: to, Token: "erik"}))
	if again := w.Header().Get("Location"); strings.Contains(again, form.Get("once")) || strings.Contains(again, "draft") {
		t.Errorf("another operator is sent to %s", again)
	}
	if page := p.get("both", to).Body.String(); !strings.Contains(page, "Hush") {
		t.Error("the operator is not shown it")
	}
}

// TestPlantedFormsAreNotStored checks that a form that did not come from a page of the console is not stored, so that an attacker
// cannot prefill a form for an operator.
func TestPlantedFormsAreNotStored(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := where + "customers/new"
	form := p.fill("owner", path, url.Values{"first_name": {"Mallory"}})
	right := p.formToken("owner")
	erik := p.signIn("erik", tenant(alpha, "alpha", "owner"))
	erik.Operator.ID = "op_01k00000000000000000000002"
	erik.FormProof = proofOf(erik.Operator.ID)
	foreign := formOf(t, parse(t, p.get("erik", path).Body.String()), path).Get("form")
	for name, tc := range map[string]struct {
		token  string
		header map[string]string
		ends   bool // the session ended
	}{
		"no token": {"", nil, true}, "a session's part alone": {right[strings.LastIndexByte(right, '.'):], nil, true}, "a made-up proof": {"op_01k00000000000000000000001.x", nil, true},
		"another site": {right, map[string]string{"Sec-Fetch-Site": "cross-site"}, true}, "another origin": {right, map[string]string{"Origin": "https://evil.test"}, true},
		"another site, signed in": {right + "x", map[string]string{"Sec-Fetch-Site": "cross-site"}, false}, "no token, signed in": {"", nil, false},
	} {
		if p.signIn("owner", tenant(alpha, "alpha", "owner")); tc.ends {
			p.expire()
		}
		form.Set("form", tc.token)
		w := p.send(request{Method: http.MethodPost, Path: path, Token: "owner", Body: form.Encode(), Header: tc.header})
		if len(p.drafts) != 0 || len(p.written()) != 0 || strings.Contains(w.Header().Get("Location"), "draft") {
			t.Errorf("%s: %d to %s, %d drafts", name, w.Code, w.Header().Get("Location"), len(p.drafts))
		}
	}
	// A form of another operator is stored for that operator.
	p.signIn("owner", tenant(alpha, "alpha", "owner"))
	form.Set("form", foreign)
	to := p.send(request{Method: http.MethodPost, Path: path, Token: "owner", Body: form.Encode()}).Header().Get("Location")
	if page := p.get("owner", to).Body.String(); to == "" || strings.Contains(page, "Mallory") {
		t.Errorf("the form of another operator is filled in at %s", to)
	}
}

// TestUnstorableFormsAreReported checks that a page reports a form that cannot be stored. If identity does not respond, the
// operator gets an empty form.
func TestUnstorableFormsAreReported(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := where + "quotes/new"
	form := p.fill("owner", path, url.Values{"notes": {strings.Repeat("x", 300_000)}})
	p.formToken("owner")
	p.expire()
	to := back(t, p.post("owner", path, form).Header().Get("Location"))
	p.signIn("owner", tenant(alpha, "alpha", "owner"))
	if says := alerts(parse(t, p.get("owner", to).Body.String())); !strings.Contains(says, "too long to be stored") {
		t.Errorf("%s: %q", to, says)
	}
	p.expire()
	p.setResponse("saveDraft", refusal(http.StatusServiceUnavailable, "unavailable", nil))
	if to := back(t, p.post("owner", path, form).Header().Get("Location")); to != path {
		t.Errorf("%s", to)
	}
}

// TestViewNameIsRestored checks that the name of a view, entered on the page of a list, is restored with the filters.
func TestViewNameIsRestored(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	form := formOf(t, parse(t, p.get("owner", where+"bookings?status=pending").Body.String()), where+"views")
	form.Set("name", "Holds")
	form.Del("form")
	p.expire()
	p.tokens["owner"] = proofOf("op_01k00000000000000000000001") + ".x"
	to := back(t, p.post("owner", where+"views", form).Header().Get("Location"))
	p.signIn("again", tenant(alpha, "alpha", "owner"))
	again := formOf(t, parse(t, p.get("again", to).Body.String()), where+"views")
	if again.Get("name") != "Holds" || again.Get("query") != "status=pending" || again.Get("once") != form.Get("once") {
		t.Errorf("%s: %v", to, again)
	}
}
