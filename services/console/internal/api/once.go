package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
)

// A form has an Idempotency-Key: the field once. The address of its page also contains the key, so Back and Reload show the form
// with the same key. The key stays until a definite refusal. Then the form gets the next key: KEY, KEY-2, KEY-3.

const onceDigits = 20 // number of random digits

var (
	onceForm    = regexp.MustCompile(`^[0-9A-Za-z-]{16,120}$`)
	onceAttempt = regexp.MustCompile(`-([0-9]{1,4})$`)
)

// newOnce creates a key for an operator.
func newOnce(operator string) string {
	random := apikey.Random(onceDigits)
	return random + onceCheck(operator, random)
}

// onceCheck binds a key in an address to an operator. A key in a link from another operator is replaced.
func onceCheck(operator, random string) string {
	sum := sha256.Sum256([]byte("once\x00" + operator + "\x00" + random))
	return hex.EncodeToString(sum[:6])
}

// ownOnce reports whether a key, with or without a suffix for attempts and a version, belongs to an operator.
func ownOnce(operator, key string) bool {
	own, _, _ := strings.Cut(key, "-")
	return len(own) > onceDigits && own[onceDigits:] == onceCheck(operator, own[:onceDigits]) && onceForm.MatchString(key)
}

// nextOnce returns the key of a form after a definite refusal of the previous one.
func nextOnce(key string) string {
	attempt := 2
	if found := onceAttempt.FindStringSubmatch(key); found != nil {
		n, _ := strconv.Atoi(found[1])
		key, attempt = strings.TrimSuffix(key, found[0]), n+1
	}
	return key + "-" + strconv.Itoa(attempt)
}

// withOnce shows a page with forms at an address that contains their key.
func withOnce(h handler) handler {
	return func(p *page) error {
		q := p.r.URL.Query()
		if p.once = q.Get("once"); !ownOnce(p.auth.Operator.ID, p.once) {
			q.Del("draft")
			q.Set("once", newOnce(p.auth.Operator.ID))
			return p.redirect(p.r.URL.EscapedPath() + "?" + q.Encode())
		}
		return h(p)
	}
}

// saveDraft stores the input of the submitted form in identity, for the operator whose page it came from. It returns the address
// of the page that then shows the form, and whether the input was stored. A form without a key or a proof of its operator is not
// stored.
func (f *form) saveDraft() (to string, stored bool) {
	path, query := f.formPage()
	proof, _, proven := strings.Cut(f.posted.Get("form"), ".")
	key := f.posted.Get("once")
	switch genuine := proven && proof != "" && onceForm.MatchString(key) && path != ""; {
	case genuine && f.c.FullPath() == logoPath: // a file is not stored, and the page shows another form
		query.Set("done", "logo_unchanged")
	case genuine:
		err := f.app.Services.SaveDraft(f.r.Context(), httpx.RequestID(f.c), key, proof, domain.Draft{Page: path, Values: domain.Keepable(f.posted)})
		switch {
		case err == nil:
			stored = true
			query.Set("once", key)
			query.Set("draft", "1")
		case apperr.As(err).Kind == apperr.TooLarge:
			query.Set("done", "not_kept")
		default: // without the input the operator gets an empty form
			obs.Add(f.r.Context(), slog.String("draft", err.Error()))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, stored
}

// formPage returns the path and query of the page that contains the submitted form.
func (f *form) formPage() (path string, query url.Values) {
	path, raw, _ := strings.Cut(f.address(), "?")
	query, _ = url.ParseQuery(raw)
	query.Del("draft")
	switch strings.TrimPrefix(f.c.FullPath(), workspaces) {
	case "/views", "/views/:id/delete": // on the page of the list
		if r := domain.ResourceNamed(f.posted.Get("list")); r != nil {
			query, _ = url.ParseQuery(f.posted.Get("query"))
			return path + "/" + r.Name, query
		}
	case "/bookings/:id/move": // in the calendar, without any input
		if to := httpx.Local(f.posted.Get("to"), "/admin"); to != "" {
			return to, url.Values{}
		}
	}
	return path, query
}

// restoreDraft fills the form of a page with the input that its operator entered before they had to sign in again, and reports
// whether it did. It does not show input of another operator or for another page.
func (f *form) restoreDraft() bool {
	key := f.r.URL.Query().Get("once")
	if f.r.Method != http.MethodGet || !f.r.URL.Query().Has("draft") || !ownOnce(f.auth.Operator.ID, key) {
		return false
	}
	d, err := f.app.Services.Draft(f.r.Context(), httpx.RequestID(f.c), key, f.auth.Operator.ID)
	if err != nil {
		obs.Add(f.r.Context(), slog.String("draft", err.Error()))
		return false
	}
	if d.Page != f.r.URL.EscapedPath() {
		return false
	}
	f.once, f.draft, f.Text = key, d.Values, f.server.Messages.For(d.Values.Get("lang"), f.Lang)
	return true
}

// postedOnce returns the key of the submitted form.
func (f *form) postedOnce() string {
	if key := f.posted.Get("once"); onceForm.MatchString(key) {
		return key
	}
	return newOnce(f.auth.Operator.ID)
}

// submit makes the call of a form with its key. After a definite refusal, the form gets the next key.
func (f *form) submit(in domain.Request) (domain.Object, error) {
	in.Key = cmp.Or(in.Key, f.once)
	o, err := f.app.Submit(f.r.Context(), in)
	if err != nil && !app.Unknown(err) && in.Key == f.once && apperr.As(err).Kind != apperr.Forbidden {
		f.once = nextOnce(f.once)
	}
	return o, err
}

// onceFor returns the key of a form that can be submitted more than once from the same page: one key for each content.
func (f *form) onceFor(content string) string {
	sum := sha256.Sum256([]byte(content))
	return f.once + "-" + hex.EncodeToString(sum[:6])
}
